package garbagecollector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// lone is a collector with a server whose watch shows every object.
func lone() (*server, *collector) {
	s, g := newServer(), newGraph()
	c := newCollector(handOf(s, s), mapper{server: s}, g, func(view) *metav1.PartialObjectMetadata { return nil }, func(key) {})
	s.told = func(k *kind, before, now *metav1.PartialObjectMetadata) {
		if now == nil {
			g.remove(k, before.UID, true)
			return
		}
		g.upsert(k, now)
	}
	return s, c
}

// why is what was planned last about an object, and what became of it.
func (c *collector) why(k key) string {
	said := func(actor *act.Actor[key]) string {
		all := actor.Decisions(k)
		if len(all) == 0 {
			return ""
		}
		return fmt.Sprint(all[len(all)-1].Why, all[len(all)-1].Became)
	}
	return said(c.looking) + said(c.parting)
}

func keyOf(o *metav1.PartialObjectMetadata) key {
	return key{Namespace: o.Namespace, Name: string(o.UID)}
}

// refusing answers all reads with an error.
type refusing struct {
	client.Reader
	err error
}

func (r refusing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return r.err
}

func TestWhatIsNotFound(t *testing.T) {
	resource, boxes := boxes.resource, boxes.resource.GroupResource()
	unserved := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", boxes, "o", "404 page not found", 0, true)
	bare := apierrors.NewNotFound(boxes, "o")
	bare.ErrStatus.Details = nil
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"an object of the name":              {apierrors.NewNotFound(boxes, "o"), true},
		"a path that is not served":          {unserved, false},
		"what a proxy does not find":         {bare, false},
		"another object":                     {apierrors.NewNotFound(boxes, "p"), false},
		"a namespace of that name":           {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "o"), false},
		"a method that is not served":        {apierrors.NewMethodNotSupported(boxes, "get"), false},
		"an object that was there before":    {apierrors.NewResourceExpired("gone"), false},
		"a server that does not answer well": {apierrors.NewInternalError(errBroken), false},
	} {
		_, got := readAt(t.Context(), refusing{err: tc.err}, location{resource, "a", "o"})
		if errors.Is(got, errAbsent) != tc.want || !errors.Is(got, tc.err) {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// A name with a slash is nobody's; of one that the API server refuses to look for,
// or that leads elsewhere, nothing is known.
func TestNamesThatCannotBeAskedFor(t *testing.T) {
	for name, want := range map[string]error{
		"a/b": errAbsent, "..": errAbsent, "a%2Fb": errNoName, "%": errNoName, "a/%": errNoName, ".": errNoName,
		"../boxes/a": errNoName, "/a": errNoName, "a/": errNoName, "a//b": errNoName, "a/..": errNoName, "./a": errNoName,
	} {
		_, got := readAt(t.Context(), refusing{err: errBroken}, location{boxes.resource, "a", name})
		if !errors.Is(got, want) || errors.Is(got, errBroken) {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}

// TestAnOwnerThatIsNamedWithAPathLives has a reference to the status of an owner that is there:
// the original reads it there, and keeps what it owns.
func TestAnOwnerThatIsNamedWithAPathLives(t *testing.T) {
	s, c := lone()
	owner := s.create(boxes, "a", "owner")
	to := ref(boxes, owner)
	to.Name += "/status"
	child := s.create(boxes, "a", "child", to)
	if got := c.look(t.Context(), keyOf(child)); !errors.Is(got.Err(), errShown) || s.requests["delete"] > 0 {
		t.Errorf("%v, %d deletions", got.Err(), s.requests["delete"])
	}
}

func TestARefusalIsNoDeletion(t *testing.T) {
	s, c := lone()
	owner := s.create(boxes, "a", "owner")
	child := s.create(boxes, "a", "child", ref(boxes, owner))
	s.change(location{boxes.resource, "a", "owner"}, func(o *metav1.PartialObjectMetadata) {
		now := metav1.Now()
		o.DeletionTimestamp = &now
	})
	c.graph.missed(owner.UID)
	refusals := 2
	s.odd = func(verb string, _ *metav1.PartialObjectMetadata) error {
		if verb == "delete" && refusals > 0 {
			refusals--
			return errConflict
		}
		return nil
	}
	for range 2 {
		before := s.requests["delete"]
		if got := c.look(t.Context(), keyOf(child)); !errors.Is(got.Err(), act.ErrRefused) {
			t.Fatalf("a refusal is answered with %v, %+v", got.Err(), c.why(keyOf(child)))
		}
		if n := s.requests["delete"] - before; n != 1 {
			t.Errorf("what is refused is asked for %d times at once", n)
		}
	}
	if got := c.look(t.Context(), keyOf(child)); got.Err() != nil || len(s.objects) != 0 {
		t.Errorf("when nobody refuses any more: %v, left %d", got.Err(), len(s.objects))
	}
}

func TestAnObjectThatIsSaidToBeGoneIsLookedAtAgain(t *testing.T) {
	s, c := lone()
	owner := s.create(boxes, "a", "owner")
	child := s.create(boxes, "a", "child", ref(boxes, owner))
	at := location{boxes.resource, "a", "owner"}
	s.put(at, nil)
	for _, verb := range []string{"get", "delete"} {
		s.odd = func(asked string, _ *metav1.PartialObjectMetadata) error {
			if asked == verb {
				return errAbsent
			}
			return nil
		}
		if got := c.look(t.Context(), keyOf(child)); got.Err() != nil || got.After() != again {
			t.Errorf("%s is answered with 404: %v, again after %v", verb, got.Err(), got.After())
		}
	}
}

func TestAnOwnerThatItsWatchShowsIsThere(t *testing.T) {
	for name, tc := range map[string]struct{ remembered bool }{
		"and was not looked for before": {},
		"and was not there before":      {remembered: true},
	} {
		t.Run(name, func(t *testing.T) { anOwnerThatItsWatchShows(t, tc.remembered) })
	}
}

func anOwnerThatItsWatchShows(t *testing.T, remembered bool) {
	s, c := lone()
	gone, there := s.create(boxes, "a", "gone"), s.create(boxes, "a", "there")
	child := s.create(boxes, "a", "child", ref(boxes, gone), ref(boxes, there))
	s.put(location{boxes.resource, "a", "gone"}, nil)
	if remembered {
		c.owners.absent.Add(absentOwner{there.UID, location{boxes.resource, "a", "there"}}, nil)
	}
	lie := true
	s.odd = func(_ string, o *metav1.PartialObjectMetadata) error {
		if lie && o.UID == there.UID {
			return errAbsent
		}
		return nil
	}
	if got := c.look(t.Context(), keyOf(child)); !errors.Is(got.Err(), errShown) {
		t.Fatalf("one 404 against the watch: %v, %+v", got.Err(), c.why(keyOf(child)))
	}
	lie = false
	if got := c.look(t.Context(), keyOf(child)); got.Err() != nil {
		t.Fatal(got.Err())
	}
	if left := s.objects[location{boxes.resource, "a", "child"}]; left == nil || names(left, []types.UID{gone.UID}) {
		t.Errorf("left is %+v", left)
	}
}

func TestOrphansAreKept(t *testing.T) {
	for name, tc := range map[string]struct {
		unread error
		lie    bool
	}{
		"a kind cannot be read":                               {unread: errBroken},
		"a dependent is said to be gone that its watch shows": {lie: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := lone()
			owner := s.create(boxes, "a", "owner")
			child := s.create(boxes, "a", "child", ref(boxes, owner))
			orphan, at := metav1.DeletePropagationOrphan, location{boxes.resource, "a", "owner"}
			if err := s.delete(context.Background(), at, metav1.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
				t.Fatal(err)
			}
			unread := tc.unread
			c.unread = func() error { return unread }
			s.odd = func(_ string, o *metav1.PartialObjectMetadata) error {
				if tc.lie && o.UID == child.UID {
					return errAbsent
				}
				return nil
			}
			if got := c.part(t.Context(), keyOf(owner)); got.Err() == nil || s.objects[at] == nil {
				t.Fatalf("the owner goes: %v", got.Err())
			}
			unread, s.odd = nil, nil
			if got := c.part(t.Context(), keyOf(owner)); got.Err() != nil || s.objects[at] != nil {
				t.Errorf("the owner stays: %v", got.Err())
			}
			if left := s.objects[location{boxes.resource, "a", "child"}]; left == nil || len(left.OwnerReferences) != 0 {
				t.Errorf("left is %+v", left)
			}
		})
	}
}

func TestADeletionThatWasSeenIsProofForItsVersionOnly(t *testing.T) {
	s, c := lone()
	owner := s.create(boxes, "a", "owner")
	old := ref(boxes, owner)
	old.APIVersion = "g/v0"
	child := s.create(boxes, "a", "child", old)
	s.put(location{boxes.resource, "a", "owner"}, nil)
	if got := c.look(t.Context(), keyOf(child)); got.Err() == nil || len(s.objects) != 1 {
		t.Errorf("a reference in a version that is not served: %v, left %d", got.Err(), len(s.objects))
	}
}
