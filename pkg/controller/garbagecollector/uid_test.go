package garbagecollector

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// replace puts another object of the same name where one is, before the watch tells.
func (s *server) replace(at location) {
	told := s.told
	defer func() { s.told = told }()
	s.told = func(*kind, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadata) {}
	other := s.objects[at].DeepCopy()
	other.UID = "other"
	s.put(at, other)
}

// An object that took the name of another is none of those that a decision was about,
// at whichever request that comes to light.
func TestAnotherObjectOfTheNameIsSpared(t *testing.T) {
	for name, tc := range map[string]struct {
		kind *kind
		// verb is the request that meets the other object, with a conflict if it is a
		// write; without one the other object is there from the start.
		verb string
		// foreground and orphan say how it is being deleted; if not at all, an owner is
		// gone, and kept says that another one is there.
		foreground, orphan, kept bool
		// cached: a cache has the other object already.
		cached bool
		after  time.Duration
	}{
		"an owner is gone, found out when it is read":          {kind: boxes, after: again},
		"found out in a cache":                                 {kind: boxes, cached: true, after: again},
		"found out when it is deleted":                         {kind: boxes, verb: "delete", after: again},
		"found out when an owner is taken off":                 {kind: boxes, verb: "patch", kept: true, after: again},
		"found out when an owner is taken off as read":         {kind: globes, verb: "patch", kept: true, after: again},
		"it waits for nobody, found out when it is read":       {kind: boxes, foreground: true, after: again},
		"it waits for nobody, found out when it is let go":     {kind: boxes, foreground: true, verb: "patch", after: again},
		"its dependents stay, found out when it is read":       {kind: boxes, orphan: true, after: again},
		"its dependents stay, found out when its finalizer is": {kind: boxes, orphan: true, verb: "patch", after: again},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := lone()
			namespace := map[bool]string{true: "a"}[tc.kind.namespaced]
			at := location{tc.kind.resource, namespace, "o"}
			gone, there := s.create(tc.kind, namespace, "gone"), s.create(tc.kind, namespace, "there")
			refs := []metav1.OwnerReference{ref(tc.kind, gone)}
			if tc.kept {
				refs = append(refs, ref(tc.kind, there))
			}
			o := s.create(tc.kind, namespace, "o", refs...)
			look := c.look
			switch {
			case tc.foreground:
				s.ask(t, at, metav1.DeletePropagationForeground)
			case tc.orphan:
				s.ask(t, at, metav1.DeletePropagationOrphan)
				look = c.part
			default:
				s.put(location{tc.kind.resource, namespace, "gone"}, nil)
			}
			s.odd = func(verb string, met *metav1.PartialObjectMetadata) error {
				if verb == tc.verb && met.UID == o.UID {
					s.replace(at)
					return errConflict
				}
				return nil
			}
			if tc.verb == "" {
				s.replace(at)
			}
			if tc.cached {
				c.cached = func(view) *metav1.PartialObjectMetadata { return s.objects[at].DeepCopy() }
			}
			got := look(t.Context(), keyOf(o))
			if got.Err() != nil || got.After() != tc.after {
				t.Errorf("%v, again after %v", got.Err(), got.After())
			}
			other := s.objects[at]
			if other == nil || other.UID != "other" || len(other.OwnerReferences) != len(refs) || !slices.Equal(other.Finalizers, finalizers(tc.foreground, tc.orphan)) {
				t.Errorf("the other object is now %+v", other)
			}
		})
	}
}

// A dependent that was made again under its name names its owner still, and would be
// deleted once that is gone.
func TestAnOwnerStaysWhileADependentIsAnotherOne(t *testing.T) {
	for _, k := range []*kind{boxes, globes} {
		s, c := lone()
		namespace := map[bool]string{true: "a"}[k.namespaced]
		owner := s.create(k, namespace, "owner")
		s.create(k, namespace, "o", ref(k, owner))
		at := location{k.resource, namespace, "owner"}
		s.ask(t, at, metav1.DeletePropagationOrphan)
		s.replace(location{k.resource, namespace, "o"})
		if got := c.part(t.Context(), keyOf(owner)); got.Err() == nil {
			t.Errorf("%s: no error, again after %v", k.resource.Resource, got.After())
		}
		if now := s.objects[at]; now == nil || !slices.Equal(now.Finalizers, finalizers(false, true)) {
			t.Errorf("%s: the owner is now %+v", k.resource.Resource, now)
		}
	}
}

// ask deletes an object as a user does.
func (s *server) ask(t *testing.T, at location, policy metav1.DeletionPropagation) {
	t.Helper()
	if err := s.delete(context.Background(), at, metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		t.Fatal(err)
	}
}

func finalizers(foreground, orphan bool) []string {
	switch {
	case foreground:
		return []string{metav1.FinalizerDeleteDependents}
	case orphan:
		return []string{metav1.FinalizerOrphanDependents}
	}
	return nil
}

// asked notes the options of deletions.
type asked struct {
	*server
	options []metav1.DeleteOptions
}

func (a *asked) delete(ctx context.Context, at location, o metav1.DeleteOptions) error {
	a.options = append(a.options, o)
	return a.server.delete(ctx, at, o)
}

func TestADeletionNamesTheObjectThatWasJudged(t *testing.T) {
	s, c := lone()
	owner := s.create(boxes, "a", "owner")
	child := s.create(boxes, "a", "child", ref(boxes, owner))
	s.put(location{boxes.resource, "a", "owner"}, nil)
	a := &asked{server: s}
	c = newCollector(handOf(s, a), mapper{server: s}, c.graph, c.cached, c.missed)
	if got := c.look(t.Context(), keyOf(child)); got.Err() != nil || len(a.options) != 1 {
		t.Fatalf("%v, %d deletions", got.Err(), len(a.options))
	}
	p := a.options[0].Preconditions
	if p == nil || p.UID == nil || *p.UID != child.UID || p.ResourceVersion == nil || *p.ResourceVersion != child.ResourceVersion {
		t.Errorf("deleted with preconditions %+v", p)
	}
}

// Nobody asked for the dependents to stay: nothing is parted.
func TestOnlyAnOwnerThatOrphansIsParted(t *testing.T) {
	s, c := lone()
	owner := s.create(boxes, "a", "owner")
	child := s.create(boxes, "a", "child", ref(boxes, owner))
	heardOf := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "heard", UID: "heard"}}
	s.create(boxes, "a", "other", ref(boxes, heardOf))
	unknown := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "unknown", UID: "unknown"}}
	for _, o := range []*metav1.PartialObjectMetadata{owner, child, heardOf, unknown} {
		if got := c.part(t.Context(), keyOf(o)); got.Err() != nil || got.After() != 0 || len(s.requests) != 0 {
			t.Errorf("%s: %v, again after %v, asked for %v", o.Name, got.Err(), got.After(), s.requests)
		}
	}
}

// What a cache shows is not read again when it does.
func TestAnObjectThatItsCacheShowsIsNotRead(t *testing.T) {
	s, c := lone()
	gone := s.create(boxes, "a", "gone")
	child := s.create(boxes, "a", "child", ref(boxes, gone))
	s.put(location{boxes.resource, "a", "gone"}, nil)
	c.cached = func(view) *metav1.PartialObjectMetadata { return child.DeepCopy() }
	if got := c.look(t.Context(), keyOf(child)); got.Err() != nil || s.requests["get"] != 0 || s.requests["delete"] != 1 {
		t.Errorf("%v, asked for %v", got.Err(), s.requests)
	}
	c.gone.Range(func(k, _ any) bool {
		t.Errorf("a dependent is said to be gone of %v", k)
		return true
	})
}

// A cached object that is not the latest does not do: the latest is read, and judged.
// TestAnOwnerIsTakenOffByWhatIsRead holds that an object goes which its cache shows with an
// owner more than it has: without its last owner nothing would look at it again.
func TestAnOwnerIsTakenOffByWhatIsRead(t *testing.T) {
	s, c := lone()
	gone, there := s.create(boxes, "a", "gone"), s.create(boxes, "a", "there")
	child := s.create(boxes, "a", "child", ref(boxes, there), ref(boxes, gone))
	s.put(location{boxes.resource, "a", "gone"}, nil)
	cached := child.DeepCopy()
	c.cached = func(view) *metav1.PartialObjectMetadata { return cached.DeepCopy() }
	s.told = func(*kind, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadata) {}
	at := location{boxes.resource, "a", "child"}
	s.change(at, func(o *metav1.PartialObjectMetadata) { o.OwnerReferences = []metav1.OwnerReference{ref(boxes, gone)} })
	if got := c.look(t.Context(), keyOf(child)); got.Err() != nil || s.objects[at] != nil {
		t.Errorf("%v, %s, left %v", got.Err(), c.why(keyOf(child)), s.objects[at])
	}
}

func TestAnObjectThatItsCacheShowsAsItWasIsReadAgain(t *testing.T) {
	s, c := lone()
	gone, there := s.create(boxes, "a", "gone"), s.create(boxes, "a", "there")
	child := s.create(boxes, "a", "child", ref(boxes, gone))
	s.put(location{boxes.resource, "a", "gone"}, nil)
	cached, told := child.DeepCopy(), s.told
	c.cached = func(view) *metav1.PartialObjectMetadata { return cached.DeepCopy() }
	s.told = func(*kind, *metav1.PartialObjectMetadata, *metav1.PartialObjectMetadata) {}
	at := location{boxes.resource, "a", "child"}
	s.change(at, func(o *metav1.PartialObjectMetadata) { o.OwnerReferences = []metav1.OwnerReference{ref(boxes, there)} })
	s.told = told
	got := c.look(t.Context(), keyOf(child))
	if why := c.why(keyOf(child)); got.Err() != nil || !strings.HasPrefix(why, "its owners are there") || s.objects[at] == nil {
		t.Errorf("%v, %s, left %v", got.Err(), why, s.objects[at])
	}
}
