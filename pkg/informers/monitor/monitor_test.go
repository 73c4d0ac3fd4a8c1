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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
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
		at, _, err := h.state()
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
	reached := "7"
	h.version = func() string { return reached }
	h.fail(errors.New("webhook"))
	c.Step(time.Minute)
	expect("a cache that stays where it was says nothing", true, 1084)
	reached = "8"
	expect("one that has come further was read", false, 1144)
	if _, recovered, _ := h.state(); recovered.Unix() != 1144 {
		t.Errorf("it recovered at %d", recovered.Unix())
	}
}

// recorder is a follower that writes down what it is told.
type recorder struct {
	mu     sync.Mutex
	seen   []string
	served atomic.Int32
}

// skewed is the real clock, some time later.
type skewed struct {
	clock.RealClock
	later atomic.Int64
}

func (s *skewed) Now() time.Time                  { return time.Now().Add(time.Duration(s.later.Load())) }
func (s *skewed) Since(t time.Time) time.Duration { return s.Now().Sub(t) }
func (s *skewed) step(d time.Duration)            { s.later.Add(int64(d)) }

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

func (r *recorder) missing(_ Resource, last metav1.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, "?"+last.GetName())
}

func (r *recorder) saw(what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.seen, what)
}

func (r *recorder) has(t *testing.T, want ...string) {
	t.Helper()
	fixture.Eventually(t, fmt.Sprint(want), func() bool {
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
	// unserved lists are answered with 404.
	unserved map[string]bool
	period   time.Duration
	clock    skewed
	client   *fake.FakeMetadataClient
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

// refuse is the answer to a read that fails: what is broken, and what is not served.
func (w *world) refuse(action clienttesting.Action) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := action.GetResource()
	if w.refused[r.Resource] {
		return true, errors.New("conversion webhook failed")
	}
	if w.unserved[r.GroupVersion().String()+"/"+r.Resource] {
		return true, apierrors.NewNotFound(r.GroupResource(), "")
	}
	return false, nil
}

// newSet returns a set that reads the world, and does not run yet.
func newSet(t *testing.T, w *world, objects ...runtime.Object) *Set {
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client := fake.NewSimpleMetadataClient(scheme, objects...)
	w.client = client
	client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		refused, err := w.refuse(action)
		return refused, nil, err
	})
	client.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		refused, err := w.refuse(action)
		return refused, nil, err
	})
	return New(Options{
		Discover: w.discover, Metadata: client, Period: w.period, Clock: &w.clock,
		Whole: func(Resource) (cache.SharedIndexInformer, bool) { return nil, false },
	})
}

// start runs a set with one follower.
func start(t *testing.T, w *world, objects ...runtime.Object) (*Followed, *recorder) {
	s, r := newSet(t, w, objects...), &recorder{}
	f := s.Follow(Interest{Name: "test", Wants: watchable, Changed: r.changed, Missing: r.missing, Served: func() { r.served.Add(1) }})
	run(t, s)
	return f, r
}

func watchable(r Resource) bool { return r.Can("list", "watch") }

func run(t *testing.T, s *Set) {
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
}

var fruit = []runtime.Object{object("g/v1", "Apple", "a1"), object("g/v1", "Pear", "p1")}

func fruitWorld() *world {
	return &world{
		groups:  []*metav1.APIGroup{group("g", "v1")},
		lists:   []*metav1.APIResourceList{lists("g/v1", "apples", "pears")},
		refused: map[string]bool{}, unserved: map[string]bool{}, period: 50 * time.Millisecond,
	}
}

func TestBrokenResourceHoldsUpNoOther(t *testing.T) {
	w := fruitWorld()
	w.refused["pears"] = true
	f, r := start(t, w, fruit...)
	pears := schema.GroupResource{Group: "g", Resource: "pears"}
	r.has(t, "+a1")
	fixture.Eventually(t, "the broken resource to be told", func() bool {
		state, _ := f.State(pears)
		return state.Err != nil
	})
	if f.Ready() {
		t.Error("ready with a list that failed right after the start")
	}
	w.clock.step(patience)
	if !f.Ready() {
		t.Error("one that is broken is waited for for longer than the original does")
	}
	state, _ := f.State(pears)
	if state.Listed || state.Err == nil || !strings.Contains(state.Err.Error(), "webhook") {
		t.Errorf("the broken resource is told as %+v", state)
	}
	if err := f.Unread(); err == nil || !strings.Contains(err.Error(), "pears.g cannot be read") {
		t.Errorf("what may be unread is told as %v", err)
	}
	w.set(func() { w.refused["pears"] = false })
	r.has(t, "+p1")
	fixture.Eventually(t, "pears are well again", func() bool {
		state, _ := f.State(pears)
		return state.Listed && state.Err == nil
	})
	if err := f.Unread(); err != nil {
		t.Errorf("the first list was delivered: %v", err)
	}
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
	fixture.Eventually(t, "the group is named", func() bool { return f.Undiscovered()[away] != nil && r.served.Load() > told })
	if got := len(f.States()); got != 2 {
		t.Errorf("%d resources are known of a group that does not answer, want 2", got)
	}

	// One that discovery lacks and that can be listed is served.
	w.set(func() { w.lists, w.err = []*metav1.APIResourceList{lists("g/v1", "apples")}, nil })
	fixture.Eventually(t, "the group is well again", func() bool { return f.Undiscovered()[away] == nil })
	if got := len(f.States()); got != 2 || r.saw("?p1") {
		t.Errorf("one answer of discovery was believed: %d resources are followed", got)
	}
	told = r.served.Load()
	w.set(func() { w.unserved["g/v1/pears"] = true })
	pears := schema.GroupVersionResource{Group: "g", Version: "v1", Resource: "pears"}
	fixture.Eventually(t, "pears are let go", func() bool { _, ok := f.State(pears.GroupResource()); return !ok && r.served.Load() > told })

	// That an API is gone says nothing of its objects: they may come back with it.
	if err := w.client.Tracker().Delete(pears, "default", "p1"); err != nil {
		t.Fatal(err)
	}
	if err := w.client.Tracker().Add(object("g/v1", "Pear", "p2")); err != nil {
		t.Fatal(err)
	}
	if r.saw("?p1") || r.saw("-p1") {
		t.Error("the objects went with their API")
	}
	w.set(func() { w.lists = served; delete(w.unserved, "g/v1/pears") })
	r.has(t, "+p2", "?p1")
	if r.saw("-p1") || r.saw("-a1") || r.saw("?a1") || r.saw("?p2") {
		t.Errorf("seen was %v", r.seen)
	}
}

// What is not served any more holds up those who must know all, so discovery is read
// before its time.
func TestAResourceThatIsNotServedIsLetGoSoon(t *testing.T) {
	w := fruitWorld()
	w.period, w.unserved["g/v1/pears"] = time.Hour, true
	f, _ := start(t, w, fruit...)
	fixture.Eventually(t, "pears cannot be read", func() bool { return f.Unread() != nil && f.Unread() != errUndiscovered })
	w.set(func() { w.lists = []*metav1.APIResourceList{lists("g/v1", "apples")} })
	fixture.Eventually(t, "nothing is unread", func() bool { return f.Unread() == nil })
}

func TestAnotherVersionTakesOver(t *testing.T) {
	w := fruitWorld()
	_, r := start(t, w, object("g/v1", "Apple", "old"), object("g/v2", "Apple", "new"))
	r.has(t, "+old")
	showState(State{Resource: Resource{GroupVersionResource: schema.GroupVersionResource{Group: "g", Version: "v1", Resource: "apples"}}, Err: errors.New("not served any more")})
	w.set(func() {
		w.groups = []*metav1.APIGroup{group("g", "v2")}
		w.lists = []*metav1.APIResourceList{lists("g/v2", "apples")}
	})
	r.has(t, "+new", "?old")
	if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(""), "kcm_monitored_resource_unavailable"); err != nil {
		t.Error(err)
	}
	if r.saw("-old") {
		t.Error("what the list of another version lacks was told to be deleted")
	}
}

// A quota counts what has a name: the object that has it now would be counted out with
// the one that had it before.
func TestAnotherVersionShowsWhoHasANameNow(t *testing.T) {
	w := fruitWorld()
	recreated := object("g/v2", "Apple", "a")
	recreated.UID = "another"
	s, byUID, byName := newSet(t, w, object("g/v1", "Apple", "a"), object("g/v1", "Apple", "gone"), recreated), &recorder{}, &recorder{}
	s.Follow(Interest{Name: "uid", Wants: watchable, Changed: byUID.changed, Missing: byUID.missing})
	s.Follow(Interest{Name: "name", Wants: watchable, Changed: byName.changed})
	run(t, s)
	byName.has(t, "+a", "+gone")
	w.set(func() {
		w.groups = []*metav1.APIGroup{group("g", "v2")}
		w.lists = []*metav1.APIResourceList{lists("g/v2", "apples")}
	})
	byUID.has(t, "?a", "?gone")
	byName.has(t, "~a", "-gone")
	if byName.saw("-a") {
		t.Error("the object that has the name now was told to be deleted")
	}
}

// A definition that is being deleted lacks verbs, and may come back before anybody looks.
func TestWhoWantsAResourceLaterHearsOfAllOfIt(t *testing.T) {
	w := fruitWorld()
	s, first, later := newSet(t, w, fruit...), &recorder{}, &recorder{}
	s.Follow(Interest{Name: "first", Wants: watchable, Changed: first.changed})
	f := s.Follow(Interest{Name: "later", Wants: func(r Resource) bool { return r.Can("create") }, Changed: later.changed})
	run(t, s)
	first.has(t, "+a1")
	if later.saw("+a1") {
		t.Error("heard of what it does not want")
	}
	offer := func(verbs ...string) {
		all := lists("g/v1", "apples", "pears")
		for i := range all.APIResources {
			all.APIResources[i].Verbs = verbs
		}
		w.set(func() { w.lists = []*metav1.APIResourceList{all} })
	}
	offer("list", "watch", "delete", "create")
	later.has(t, "+a1", "+p1")
	if _, known := f.State(schema.GroupResource{Group: "g", Resource: "apples"}); !known {
		t.Error("it does not count as followed")
	}
}

func TestAnotherScopeIsWatchedAnew(t *testing.T) {
	w := fruitWorld()
	f, r := start(t, w, fruit...)
	r.has(t, "+a1")
	w.set(func() {
		w.lists = []*metav1.APIResourceList{lists("g/v1", "apples", "pears")}
		for i := range w.lists[0].APIResources {
			w.lists[0].APIResources[i].Namespaced = false
		}
	})
	fixture.Eventually(t, "the new scope is known", func() bool {
		state, _ := f.State(schema.GroupResource{Group: "g", Resource: "apples"})
		return state.Listed && !state.Resource.Namespaced
	})
}

func TestUnreadAPIs(t *testing.T) {
	w := fruitWorld()
	down := func(group string) error {
		return &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: group, Version: "v1"}: errors.New("away")}}
	}
	w.err = down("x.io")
	f, r := start(t, w, fruit...)
	if err := f.Unread(); err == nil {
		t.Error("all is said to be delivered before discovery was read")
	}
	r.has(t, "+a1", "+p1")
	unread := func(want string) func() bool {
		return func() bool { return strings.HasPrefix(fmt.Sprint(f.Unread()), want) }
	}
	fixture.Eventually(t, "an API that never was discovered", unread("x.io/v1 cannot be discovered"))
	w.set(func() { w.err = down("metrics.k8s.io") })
	fixture.Eventually(t, "an API that holds nothing", unread("<nil>"))
	w.set(func() { w.err = down("g") })
	fixture.Eventually(t, "a known API fails", func() bool {
		return len(f.Undiscovered()) == 1 && f.Undiscovered()[schema.GroupVersion{Group: "g", Version: "v1"}] != nil
	})
	if err := f.Unread(); err != nil {
		t.Errorf("an API that is known is watched still: %v", err)
	}
}

func TestAStreamedListSaysNothingBeforeItIsWhole(t *testing.T) {
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := testingclock.NewFakeClock(time.Unix(1000, 0))
	h := newHealth(c)
	h.fail(errors.New("webhook"))
	pears := schema.GroupVersionResource{Group: "g", Version: "v1", Resource: "pears"}
	reads := heardReads{fake.NewSimpleMetadataClient(scheme).Resource(pears), h}
	for _, streamed := range []bool{true, false} {
		c.Step(time.Second)
		w, err := reads.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &streamed})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		c.Step(holds)
		if _, _, err := h.state(); (err != nil) != streamed {
			t.Errorf("streamed %v: it fails with %v", streamed, err)
		}
	}
}

// TestAStopDoesNotWaitForDiscovery holds that a set ends while the API server does not answer.
func TestAStopDoesNotWaitForDiscovery(t *testing.T) {
	asked, forever := make(chan struct{}), make(chan struct{})
	defer close(forever)
	s := newSet(t, &world{})
	s.Follow(Interest{Name: "test", Wants: watchable})
	s.o.Discover = func() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
		close(asked)
		<-forever
		return nil, nil, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	<-asked
	cancel()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("it waits for the answer")
	}
}
