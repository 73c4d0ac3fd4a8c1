package main

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kube-kcm/kube-controller-manager/pkg/why"
)

// printText writes an answer as text: the sentence, then one line for each object of the
// chain, and what the controllers of the object itself and of those in trouble do.
func printText(to io.Writer, a *why.Answer) error {
	var out strings.Builder
	printf(&out, "%s\n\n", a.Sentence)
	for _, o := range a.Objects {
		in := strings.Repeat("  ", o.Depth-a.Objects[0].Depth)
		printf(&out, "%s%-11s  %s %s: %s\n", in, o.Verdict, o.Kind, o.Name, o.Sentence)
		if o.Depth == 0 {
			for _, fact := range o.Facts {
				printf(&out, "%s  %s\n", in, fact)
			}
		}
		for _, c := range o.Controllers {
			if o.Depth == 0 || inTrouble(c) {
				printController(&out, in+"  ", c, a.At)
			}
		}
		for _, left := range a.LeftOut {
			if left.Owner == (why.Owner{Kind: o.Kind, Name: o.Name}) {
				printf(&out, "%s  and %d more of kind %s, the worst of them %s\n", in, left.Count, left.Kind, left.Verdict)
			}
		}
	}
	for n, near := range a.Nearest {
		if n == 0 {
			out.WriteString("\nKnown, with a similar name:\n")
		}
		printf(&out, "  %s\n", strings.TrimPrefix(near.Namespace+"/"+near.Name, "/"))
	}
	by := strings.TrimSpace("the manager " + a.Process.Identity)
	if a.Process.Shadow {
		by = "a shadow (it writes nothing, and says what its controllers would do)"
	}
	printf(&out, "\nAnswered by %s", by)
	if !a.Process.Since.IsZero() {
		printf(&out, ", which has looked for %s", duration.HumanDuration(a.At.Sub(a.Process.Since)))
	}
	out.WriteString(".\n")
	_, err := io.WriteString(to, out.String())
	return err
}

// printf writes to a terminal. Texts of an answer hold what users have written, in which
// control characters are shown and not obeyed.
func printf(to io.Writer, format string, args ...any) {
	for i, arg := range args {
		if text, is := arg.(string); is {
			args[i] = printable(text)
		}
	}
	fmt.Fprintf(to, format, args...)
}

func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// inTrouble reports whether a controller does not get on with an object.
func inTrouble(c why.Controller) bool {
	return c.Failures > 0 || c.LastError != "" || c.Braked != "" || len(c.WaitingFor) > 0
}

func printController(to io.Writer, in string, c why.Controller, now time.Time) {
	printf(to, "%s%s: %s%s\n", in, c.Name, c.Why, next(c, now))
	for _, said := range [][2]string{
		{"last error", c.LastError}, {"held back", c.Braked}, {"waits for its caches", strings.Join(c.WaitingFor, ", ")},
	} {
		if words := strings.Join(strings.Fields(said[1]), " "); words != "" {
			printf(to, "%s  %s: %s\n", in, said[0], words)
		}
	}
}

// next says when a controller comes back to an object, and after how many failures.
func next(c why.Controller, now time.Time) string {
	in := func(t time.Time) string {
		if !t.After(now) {
			return "now"
		}
		return "in " + duration.HumanDuration(t.Sub(now))
	}
	switch {
	case c.GaveUp:
		return " (failed, and is not tried again until the object changes)"
	case c.Failures == 1:
		return " (failed once, tries again " + in(c.NextTry) + ")"
	case c.Failures > 0:
		return fmt.Sprintf(" (failed %d times, tries again %s)", c.Failures, in(c.NextTry))
	case c.Braked != "":
		return " (waits for its turn, tries again " + in(c.NextTry) + ")"
	case !c.NextLook.IsZero():
		return " (looks again " + in(c.NextLook) + ")"
	}
	return ""
}
