package why

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// longest bounds the words of an error in a sentence; the field of the controller has all.
const longest = 400

// Reference names an object.
type Reference struct {
	Namespace, Name string
	UID             types.UID
}

// Work is that a controller works on the objects of a kind.
type Work struct {
	// Controller is its canonical name.
	Controller string
	// Loop is the name of the one loop that does, of a controller that has several;
	// empty for all of them.
	Loop string
	// Key is the printed key of an object; nil for namespace/name.
	Key func(Reference) string
	// Aside: its view is shown only of objects that it remembers.
	Aside bool
}

// key is what the controller knows the object by.
func (w Work) key(r Reference) string {
	if w.Key != nil {
		return w.Key(r)
	}
	return strings.TrimPrefix(r.Namespace+"/"+r.Name, "/")
}

// Loop is what a controller runs: a runner, or a group of them.
type Loop interface {
	Known(printed string) []runner.Known
}

// Running is a controller of the process: its state, and what it runs; nil when it does not.
type Running struct {
	debug.Controller
	Loop Loop
	// Paused is why nothing is written for it, or for the namespace of the object; empty
	// when it may write.
	Paused string
}

// view is what a controller makes of an object. Known is what its loop remembers; nil
// when that is nothing.
func (w Work) view(r Reference, running Running, known *runner.Known, since, now time.Time) Controller {
	key := w.key(r)
	c := Controller{Name: w.Controller, Verdict: Unknown}
	if running.State != debug.Started {
		c.away = true
		c.Why = fmt.Sprintf("it does not run here (%s)", strings.TrimSpace(string(running.State)+" "+running.Why))
		return c
	}
	c.Page = "/debug/controllers/" + w.Controller + "?key=" + url.QueryEscape(key)
	if known == nil {
		c.Page, c.Why = "", "it remembers nothing of it"
		if running.Paused != "" {
			c.Verdict, c.Why = Paused, running.Paused
			return c
		}
		if !since.IsZero() {
			c.Why = fmt.Sprintf("it remembers nothing of it; it has looked for %s", inWords(now.Sub(since)))
		}
		return c
	}
	c.Failures, c.LastError, c.GaveUp = known.Failures, known.LastError, known.GaveUp
	c.LastLook, c.NextTry, c.NextLook = known.LastLook.UTC(), known.NextTry.UTC(), known.NextLook.UTC()
	c.Braked = known.Braked
	c.WaitingFor, c.Decisions = known.WaitingFor, decisions(known.Decisions)
	c.Why = reason(c.Decisions, known.Plan)
	switch {
	case known.Paused != "" || running.Paused != "":
		c.Verdict, c.Why = Paused, cmp.Or(known.Paused, running.Paused)
	case c.LastError != "":
		c.Verdict = Blocked
	case c.Braked != "":
		c.Verdict = Waiting
	case len(c.WaitingFor) > 0:
		c.Verdict = Waiting
	case !known.InFlightSince.IsZero() || underWay(c.Decisions):
		c.Verdict = Progressing
	default:
		c.Verdict = Complete
	}
	return c
}

// decisions returns the latest first.
func decisions(known any) []act.Decision {
	all, ok := known.([]act.Decision)
	if !ok {
		return nil
	}
	all = slices.Clone(all)
	slices.Reverse(all)
	for i := range all {
		all[i].At, all[i].LastAt = all[i].At.UTC(), all[i].LastAt.UTC()
	}
	return all
}

func underWay(all []act.Decision) bool {
	return len(all) > 0 && slices.Equal(all[0].Became, []string{"under way"})
}

// reason is that of the last decision, or of the plan of a loop that keeps no decisions.
func reason(all []act.Decision, plan any) string {
	if len(all) > 0 {
		return all[0].Why
	}
	raw, err := json.Marshal(plan)
	if err != nil {
		return ""
	}
	var said struct {
		Why string `json:"why"`
	}
	if json.Unmarshal(raw, &said) != nil { // a plan of another shape says it on its page
		return ""
	}
	return said.Why
}

// trouble says in a clause why a controller does not get on; empty if it does.
func (c *Controller) trouble(now time.Time) string {
	switch c.Verdict {
	case Blocked:
		return c.Name + " " + c.failed(now) + ": " + short(c.LastError)
	case Paused:
		return c.Why
	case Waiting:
		if c.Braked != "" {
			return c.Name + " waits for its turn: " + c.Braked
		}
		return c.Name + " waits for its caches: " + strings.Join(c.WaitingFor, ", ")
	}
	return ""
}

// failed says how often it has failed, and when it tries again.
func (c *Controller) failed(now time.Time) string {
	if c.GaveUp {
		return "has failed, and does not try again until the object changes"
	}
	said := fmt.Sprintf("has failed %d times in a row", c.Failures)
	if c.Failures == 1 {
		said = "has failed once"
	}
	if c.NextTry.IsZero() {
		return said + ", and tries again now"
	}
	return said + ", and tries again in " + inWords(c.NextTry.Sub(now))
}

// short cuts what is too long for a sentence.
func short(words string) string {
	words = strings.Join(strings.Fields(words), " ")
	if runes := []rune(words); len(runes) > longest {
		return string(runes[:longest]) + " ..."
	}
	return words
}

// conclude gives an object its verdict: what it says of itself, or what holds a controller up.
func (o *Object) conclude(f finding, now time.Time) {
	o.Verdict, o.Sentence, o.Until, o.Facts = f.verdict, f.sentence, f.until.UTC(), f.facts
	at := -1
	for i := range o.Controllers {
		c := &o.Controllers[i]
		if c.trouble(now) != "" && (at < 0 || c.Verdict.Worse(o.Controllers[at].Verdict)) {
			at = i
		}
	}
	if len(o.Controllers) > 0 && o.Controllers[0].away && o.Verdict == Progressing && at < 0 {
		c := &o.Controllers[0]
		o.Verdict = Unknown
		o.Sentence += "; of " + c.Name + ": " + c.Why
		return
	}
	if at < 0 || o.Verdict.Worse(o.Controllers[at].Verdict) {
		if f.cause != "" {
			o.Sentence += ": " + short(f.cause)
		}
		return
	}
	c := &o.Controllers[at]
	o.Verdict = c.Verdict
	o.Sentence += "; " + c.trouble(now)
	if c.Verdict == Blocked || c.Braked != "" {
		o.Until = c.NextTry
	}
}
