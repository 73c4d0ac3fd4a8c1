package monitor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/pkg/testrig"
)

var everything = []string{"list", "watch", "delete"}

func group(name string, versions ...string) *metav1.APIGroup {
	g := &metav1.APIGroup{Name: name}
	for _, v := range versions {
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: name + "/" + v, Version: v})
	}
	g.PreferredVersion = g.Versions[0]
	return g
}

func lists(version string, names ...string) *metav1.APIResourceList {
	l := &metav1.APIResourceList{GroupVersion: version}
	for _, name := range names {
		l.APIResources = append(l.APIResources, metav1.APIResource{Name: name, Kind: strings.ToUpper(name), Namespaced: true, Verbs: everything})
	}
	return l
}

func printed(c catalog) string {
	var out []string
	for _, r := range c.sorted() {
		out = append(out, r.Version+"/"+r.GroupVersionResource.Resource)
	}
	return strings.Join(out, " ")
}

func TestCatalog(t *testing.T) {
	v1 := schema.GroupVersion{Group: "g", Version: "v1"}
	both := newCatalog([]*metav1.APIGroup{group("g", "v2", "v1")},
		[]*metav1.APIResourceList{lists("g/v1", "apples", "pears"), lists("g/v2", "apples", "apples/status")}, nil)
	onlyV1 := newCatalog([]*metav1.APIGroup{group("g", "v1")}, []*metav1.APIResourceList{lists("g/v1", "apples", "pears")}, nil)
	onlyV2 := newCatalog([]*metav1.APIGroup{group("g", "v2")}, []*metav1.APIResourceList{lists("g/v2", "apples")}, nil)
	failing := newCatalog(nil, nil, map[schema.GroupVersion]error{v1: errors.New("away")})
	for name, tc := range map[string]struct {
		got  catalog
		want string
	}{
		"the preferred version, else one that has it":   {both, "v2/apples v1/pears"},
		"a version that is served still is kept":        {both.after(onlyV1), "v1/apples v1/pears"},
		"one that is not is left":                       {onlyV2.after(onlyV1), "v2/apples"},
		"what cannot be discovered is remembered":       {failing.after(onlyV1), "v1/apples v1/pears"},
		"and for as long as it cannot":                  {failing.after(failing.after(onlyV1)), "v1/apples v1/pears"},
		"what is known to be gone is gone":              {newCatalog(nil, nil, nil).after(onlyV1), ""},
		"nothing is known of what was never discovered": {failing.after(catalog{}), ""},
	} {
		if got := printed(tc.got); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestHealth(t *testing.T) {
	c := testingclock.NewFakeClock(time.Unix(1000, 0))
	h := newHealth(c)
	expect := func(what string, failing bool, since int64) {
		t.Helper()
		at, err := h.state()
		if (err != nil) != failing || at.Unix() != since {
			t.Errorf("%s: got %v since %d, want failing %v since %d", what, err, at.Unix(), failing, since)
		}
	}
	h.fail(io.EOF)
	expect("the end of a watch is no failure", false, 1000)
	c.Step(10 * time.Second)
	h.fail(errors.New("webhook"))
	c.Step(10 * time.Second)
	h.fail(errors.New("webhook"))
	expect("it fails since the first failure", true, 1010)
	h.open()
	expect("a watch that has only begun says nothing", true, 1010)
	c.Step(time.Second)
	h.fail(errors.New("webhook"))
	c.Step(time.Minute)
	expect("nor does one that ended with the first object", true, 1010)
	h.open()
	c.Step(holds)
	expect("one that lasts is good news since it began", false, 1081)
	h.fail(errors.New("webhook"))
	c.Step(time.Second)
	h.succeed()
	expect("so is a list", false, 1084)
}

// recorder is a follower that writes down what it is told.
type recorder struct {
	mu     sync.Mutex
	seen   []string
	served atomic.Int32
}

func (r *recorder) changed(res Resource, before, now metav1.Object, initial bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case now == nil:
		r.seen = append(r.seen, "-"+before.GetName())
	case before == nil:
		r.seen = append(r.seen, "+"+now.GetName())
	default:
		r.seen = append(r.seen, "~"+now.GetName())
	}
}

func (r *recorder) has(t *testing.T, want ...string) {
	t.Helper()
	testrig.Eventually(t, fmt.Sprint(want), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, w := range want {
			if !slices.Contains(r.seen, w) {
				return false
			}
		}
		return true
	})
}

func object(version, kind, name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name),
			Labels: map[string]string{"a": "b"}, Finalizers: []string{"f/f"}},
	}
}

// world is a server whose discovery and reads can be broken.
type world struct {
	mu      sync.Mutex
	groups  []*metav1.APIGroup
	lists   []*metav1.APIResourceList
	err     error
	refused map[string]bool
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *world) discover() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.groups, w.lists, w.err
}

func (w *world) refuse(action clienttesting.Action) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused[action.GetResource().Resource]
}

func start(t *testing.T, w *world, objects ...runtime.Object) (*Followed, *recorder) {
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client := fake.NewSimpleMetadataClient(scheme, objects...)
	client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return w.refuse(action), nil, errors.New("conversion webhook failed")
	})
	client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		return w.refuse(action), nil, errors.New("conversion webhook failed")
	})
	s := New(Options{
		Discover: w.discover, Metadata: client, Period: 50 * time.Millisecond,
		Whole: func(Resource) (cache.SharedIndexInformer, bool) { return nil, false },
	})
	r := &recorder{}
	f := s.Follow(Interest{Name: "test", Wants: func(r Resource) bool { return r.Can("list", "watch") }, Changed: r.changed, Served: func() { r.served.Add(1) }})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return f, r
}

var fruit = []runtime.Object{object("g/v1", "Apple", "a1"), object("g/v1", "Pear", "p1")}

func fruitWorld() *world {
	return &world{
		groups:  []*metav1.APIGroup{group("g", "v1")},
		lists:   []*metav1.APIResourceList{lists("g/v1", "apples", "pears")},
		refused: map[string]bool{},
	}
}

func TestBrokenResourceHoldsUpNoOther(t *testing.T) {
	w := fruitWorld()
	w.refused["pears"] = true
	f, r := start(t, w, fruit...)
	pears := schema.GroupResource{Group: "g", Resource: "pears"}
	r.has(t, "+a1")
	testrig.Eventually(t, "ready with one that is known to fail", f.Ready)
	state, _ := f.State(pears)
	if state.Listed || state.Err == nil || !strings.Contains(state.Err.Error(), "webhook") {
		t.Errorf("the broken resource is told as %+v", state)
	}
	w.set(func() { w.refused["pears"] = false })
	r.has(t, "+p1")
	testrig.Eventually(t, "pears are well again", func() bool {
		state, _ := f.State(pears)
		return state.Listed && state.Err == nil
	})
	store, _ := f.Store(pears)
	kept, err := store.ByIndex(cache.NamespaceIndex, "default")
	if err != nil || len(kept) != 1 {
		t.Fatalf("the store has %v, %v", kept, err)
	}
	if m := kept[0].(*metav1.PartialObjectMetadata); m.Labels != nil || len(m.Finalizers) != 1 {
		t.Errorf("kept is %+v", m)
	}
}

func TestResourcesComeAndGo(t *testing.T) {
	w := fruitWorld()
	served := w.lists
	w.lists = []*metav1.APIResourceList{lists("g/v1", "apples")}
	f, r := start(t, w, fruit...)
	r.has(t, "+a1")
	w.set(func() { w.lists = served })
	r.has(t, "+p1")

	// A group that does not answer keeps what is known of it.
	told := r.served.Load()
	away := schema.GroupVersion{Group: "g", Version: "v1"}
	w.set(func() {
		w.lists, w.err = nil, &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{away: errors.New("away")}}
	})
	testrig.Eventually(t, "the group is named", func() bool { return f.Undiscovered()[away] != nil && r.served.Load() > told })
	if got := len(f.States()); got != 2 {
		t.Errorf("%d resources are known of a group that does not answer, want 2", got)
	}

	w.set(func() { w.lists, w.err = []*metav1.APIResourceList{lists("g/v1", "apples")}, nil })
	r.has(t, "-p1")
	if slices.Contains(r.seen, "-a1") {
		t.Error("an object of a resource that is served was told to be gone")
	}
	if _, ok := f.State(schema.GroupResource{Group: "g", Resource: "pears"}); ok {
		t.Error("a resource that is not served has a state")
	}
}

func TestAnotherVersionTakesOver(t *testing.T) {
	w := fruitWorld()
	_, r := start(t, w, object("g/v1", "Apple", "old"), object("g/v2", "Apple", "new"))
	r.has(t, "+old")
	w.set(func() {
		w.groups = []*metav1.APIGroup{group("g", "v2")}
		w.lists = []*metav1.APIResourceList{lists("g/v2", "apples")}
	})
	r.has(t, "+new", "-old")
}
