package resourcequota

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// frozen is a resource that cannot be read, and the names that count it.
type frozen struct {
	of    schema.GroupResource
	names []corev1.ResourceName
	err   error
	since time.Time
	// broken: it is out of reach; else its first list is under way.
	broken bool
}

// lasting returns the resources that have been out of reach for long enough to say so,
// and when there may be more of them.
func lasting(all []frozen, now time.Time) (broken map[schema.GroupResource]bool, more time.Duration) {
	broken = map[schema.GroupResource]bool{}
	for _, f := range all {
		switch wait := f.since.Add(brokenFor).Sub(now); {
		case !f.broken:
		case wait > 0:
			more = act.Soonest(more, wait)
		default:
			broken[f.of] = true
		}
	}
	return broken, more
}

// events name the broken resources that have no event yet, and those that are
// broken no more.
func (o observed) events(broken map[schema.GroupResource]bool) []act.Event {
	var events []act.Event
	for _, f := range o.frozen {
		if broken[f.of] && !o.told[f.of] {
			events = append(events, act.Event{On: o.quota, Type: corev1.EventTypeWarning, Reason: "UsageFrozen",
				Message: fmt.Sprintf("Usage of %s is not updated because %s cannot be read: %v", words(f.names), f.of, f.err)})
		}
	}
	for _, of := range slices.SortedFunc(maps.Keys(o.told), func(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) }) {
		if !broken[of] {
			events = append(events, act.Event{On: o.quota, Type: corev1.EventTypeNormal, Reason: "UsageCounted",
				Message: fmt.Sprintf("%s can be read again; its usage is updated", of)})
		}
	}
	return events
}

// inWords says which names are not counted now, and why.
func inWords(all []frozen) string {
	var b strings.Builder
	for _, f := range all {
		since := f.since.UTC().Format(time.RFC3339)
		if f.err == nil {
			fmt.Fprintf(&b, "; %s stays: %s is not listed yet, since %s", words(f.names), f.of, since)
		} else {
			fmt.Fprintf(&b, "; %s stays: %s cannot be read since %s: %v", words(f.names), f.of, since, f.err)
		}
	}
	return b.String()
}

func words(names []corev1.ResourceName) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = string(name)
	}
	return strings.Join(texts, ", ")
}

// quantities lists a usage by name, after a colon.
func quantities(used corev1.ResourceList) string {
	var b strings.Builder
	before := ": "
	for _, name := range slices.Sorted(maps.Keys(used)) {
		quantity := used[name]
		fmt.Fprintf(&b, "%s%s=%s", before, name, quantity.String())
		before = ", "
	}
	return b.String()
}
