package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kube-kcm/kube-controller-manager/pkg/why"
)

// printText writes an answer as text: the sentence, then one line for each object of the
// chain, and what the controllers of the object itself and of those in trouble do.
func printText(to io.Writer, a *why.Answer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n\n", a.Sentence)
	for _, o := range a.Objects {
		in := strings.Repeat("  ", o.Depth-a.Objects[0].Depth)
		fmt.Fprintf(&out, "%s%-11s  %s %s: %s\n", in, o.Verdict, o.Kind, o.Name, o.Sentence)
		if o.Depth == 0 {
			for _, fact := range o.Facts {
				fmt.Fprintf(&out, "%s  %s\n", in, fact)
			}
		}
		for _, c := range o.Controllers {
			if o.Depth == 0 || c.Failures > 0 || len(c.WaitingFor) > 0 {
				fmt.Fprintf(&out, "%s  %s: %s%s\n", in, c.Name, c.Why, next(c, a.At))
			}
		}
		for _, left := range a.LeftOut {
			if left.Owner == (why.Owner{Kind: o.Kind, Name: o.Name}) {
				fmt.Fprintf(&out, "%s  and %d more of kind %s, the worst of them %s\n", in, left.Count, left.Kind, left.Verdict)
			}
		}
	}
	for n, near := range a.Nearest {
		if n == 0 {
			out.WriteString("\nKnown, with a similar name:\n")
		}
		fmt.Fprintf(&out, "  %s\n", strings.TrimPrefix(near.Namespace+"/"+near.Name, "/"))
	}
	by := strings.TrimSpace("the manager " + a.Process.Identity)
	if a.Process.Shadow {
		by = "a shadow (it writes nothing, and says what its controllers would do)"
	}
	fmt.Fprintf(&out, "\nAnswered by %s", by)
	if !a.Process.Since.IsZero() {
		fmt.Fprintf(&out, ", which has looked for %s", duration.HumanDuration(a.At.Sub(a.Process.Since)))
	}
	out.WriteString(".\n")
	_, err := io.WriteString(to, out.String())
	return err
}

// next says when a controller comes back to an object, and after how many failures.
func next(c why.Controller, now time.Time) string {
	switch {
	case c.Failures > 0 && c.NextTry.IsZero():
		return fmt.Sprintf(" (failed %d times, tries again now)", c.Failures)
	case c.Failures > 0:
		return fmt.Sprintf(" (failed %d times, tries again in %s)", c.Failures, duration.HumanDuration(c.NextTry.Sub(now)))
	case !c.NextLook.IsZero():
		return fmt.Sprintf(" (looks again in %s)", duration.HumanDuration(c.NextLook.Sub(now)))
	}
	return ""
}
