package monitor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var apples, pears, plums = schema.GroupResource{Group: "g", Resource: "apples"},
	schema.GroupResource{Group: "g", Resource: "pears"}, schema.GroupResource{Group: "g", Resource: "plums"}

// delivered is a handler that has seen all that existed, or not.
type delivered struct {
	cache.ResourceEventHandlerRegistration
	all bool
}

func (d *delivered) HasSynced() bool { return d.all }

// idle is a cache that does not run.
func idle() cache.SharedIndexInformer {
	return informers.NewSharedInformerFactory(kubefake.NewClientset(), 0).Core().V1().Secrets().Informer()
}

// watched gives a Set a watch that has delivered all.
func watched(s *Set, id schema.GroupResource) *resourceWatch {
	r := Resource{GroupVersionResource: id.WithVersion("v1"), Kind: "Fruit"}
	w := &resourceWatch{resource: r, informer: idle(), health: newHealth(s.o.Clock), handler: &delivered{all: true}, shown: State{Resource: r}}
	s.watches[id] = w
	return w
}

// logged returns a context with a log, and what returns the messages since it was asked last.
func logged(t *testing.T) (context.Context, func() []ktesting.LogEntry) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	log, read := logger.GetSink().(ktesting.Underlier).GetBuffer(), 0
	return klog.NewContext(t.Context(), logger), func() []ktesting.LogEntry {
		entries := log.Data()[read:]
		read += len(entries)
		return entries
	}
}

func messages(entries []ktesting.LogEntry) string {
	var all []string
	for _, e := range entries {
		all = append(all, e.Message)
	}
	return strings.Join(all, "\n")
}

func TestAChangedStateIsToldOnce(t *testing.T) {
	const lost, found = "A resource cannot be read; whatever needs it has to wait", "A resource can be read again"
	broken, other := errors.New("conversion webhook failed"), errors.New("no key to decrypt them")
	ctx, log := logged(t)
	s, r := New(Options{Clock: testingclock.NewFakeClock(time.Unix(1000, 0))}), &recorder{}
	s.Follow(Interest{Wants: func(Resource) bool { return true }, Served: func() { r.served.Add(1) }})
	s.Follow(Interest{Wants: func(Resource) bool { return true }})
	if well, _ := s.settle(ctx); well {
		t.Error("all is well before discovery was read")
	}
	s.discovered = s.o.Clock.Now()
	if well, _ := s.settle(ctx); !well {
		t.Error("something is not well where nothing is served")
	}
	pearWatch := watched(s, pears)
	for _, step := range []struct {
		what   string
		listed bool
		err    error
		well   bool
		told   int32
		log    string
	}{
		{"a list that is on its way", false, nil, false, 0, ""},
		{"a list that fails", false, broken, false, 1, lost},
		{"one that fails again", false, broken, false, 0, ""},
		{"one that fails for another reason", false, other, false, 0, ""},
		{"one that is asked for again", false, nil, false, 1, found},
		{"what is listed", true, nil, true, 1, ""},
		{"what is listed still", true, nil, true, 0, ""},
		{"a watch that fails", true, broken, false, 1, lost},
		{"one that fails still", true, broken, false, 0, ""},
		{"one that goes on", true, nil, true, 1, found},
		{"a list that failed at once", false, broken, false, 1, lost},
		{"what was delivered but fails", true, broken, false, 1, ""},
		{"the failing list of another version", false, broken, false, 1, ""},
		{"what could be listed at last", true, nil, true, 1, found},
	} {
		pearWatch.handler.(*delivered).all = step.listed
		pearWatch.health.fail(step.err)
		if step.err == nil {
			pearWatch.health.succeed()
		}
		before := r.served.Load()
		if got, _ := s.settle(ctx); got != step.well {
			t.Errorf("%s: well is %t", step.what, got)
		}
		if got := r.served.Load() - before; got != step.told {
			t.Errorf("%s: told %d times, want %d", step.what, got, step.told)
		}
		if got := messages(log()); got != step.log {
			t.Errorf("%s: logged is %q, want %q", step.what, got, step.log)
		}
	}
}

func TestAnAPIThatFailsIsToldWhenItBeginsAndEnds(t *testing.T) {
	const lost, found = "Cannot discover an API; keeping what is known of it", "An API can be discovered again"
	const nothing = "Cannot discover the resources that the API server serves"
	ctx, log := logged(t)
	var answer error
	s, r := New(Options{
		Clock: testingclock.NewFakeClock(time.Unix(1000, 0)),
		Discover: func() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
			return nil, nil, answer
		},
	}), &recorder{}
	s.Follow(Interest{Wants: func(Resource) bool { return false }, Served: func() { r.served.Add(1) }})
	s.Follow(Interest{Wants: func(Resource) bool { return false }})
	partly := &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{{Group: "x.io", Version: "v1"}: errors.New("away")}}
	for _, step := range []struct {
		what   string
		answer error
		next   time.Duration
		told   int32
		log    string
	}{
		{"no answer at the start", errors.New("down"), closely, 0, nothing},
		{"an API that fails", partly, DefaultPeriod, 1, lost},
		{"one that fails still", partly, DefaultPeriod, 0, ""},
		{"no answer", errors.New("down"), DefaultPeriod, 0, nothing},
		{"one that is well again", nil, DefaultPeriod, 1, found},
		{"one that is well still", nil, DefaultPeriod, 0, ""},
	} {
		answer = step.answer
		before := r.served.Load()
		if got := s.look(ctx); got != step.next {
			t.Errorf("%s: the next look is in %s, want %s", step.what, got, step.next)
		}
		if got := r.served.Load() - before; got != step.told {
			t.Errorf("%s: told %d times, want %d", step.what, got, step.told)
		}
		if got := messages(log()); got != step.log {
			t.Errorf("%s: logged is %q, want %q", step.what, got, step.log)
		}
	}
}

func TestResourcesThatComeAndGoAreTold(t *testing.T) {
	ctx, log := logged(t)
	served := []string{"apples", "pears"}
	client := fake.NewSimpleMetadataClient(fake.NewTestScheme())
	client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(action.GetResource().GroupResource(), "")
	})
	s, r := New(Options{
		Clock: testingclock.NewFakeClock(time.Unix(1000, 0)), Metadata: client,
		Discover: func() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
			return []*metav1.APIGroup{group("g", "v1")}, []*metav1.APIResourceList{lists("g/v1", served...)}, nil
		},
		Whole: func(Resource) (cache.SharedIndexInformer, bool) { return idle(), true },
	}), &recorder{}
	s.Follow(Interest{Wants: func(Resource) bool { return true }, Served: func() { r.served.Add(1) }})
	for _, step := range []struct {
		served []string
		want   []string
	}{
		{[]string{"apples", "pears"}, []string{"apples.g true", "pears.g true"}},
		{[]string{"apples", "pears"}, nil},
		{[]string{"apples"}, []string{"pears.g false"}},
		{[]string{"apples"}, nil},
	} {
		served = step.served
		before := r.served.Load()
		s.look(ctx)
		if got, want := r.served.Load()-before, min(1, len(step.want)); int(got) != want { // of all changes at once
			t.Errorf("%v: told %d times, want %d", step.served, got, want)
		}
		var got []string
		for _, e := range log() {
			if e.Message == "The served resources changed" {
				got = append(got, fmt.Sprint(e.ParameterKVList[1], " ", e.ParameterKVList[3]))
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, step.want) {
			t.Errorf("%v: logged is %q, want %q", step.served, got, step.want)
		}
	}
}

func TestASetRunsUntilItsContextEnds(t *testing.T) {
	for _, followed := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		asked := 0
		s := New(Options{Discover: func() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
			asked++
			cancel()
			return nil, nil, nil
		}})
		if followed {
			s.Follow(Interest{Wants: func(Resource) bool { return true }})
		}
		s.Run(ctx)
		cancel()
		if (asked == 1) != followed {
			t.Errorf("followed %t: discovery was read %d times", followed, asked)
		}
	}
}

func TestWhatAFollowerWaitsFor(t *testing.T) {
	failing := func(group string) func(s *Set, _ *resourceWatch) {
		return func(s *Set, _ *resourceWatch) {
			s.catalog.failed = map[schema.GroupVersion]error{{Group: group, Version: "v1"}: errors.New("away")}
		}
	}
	unlisted := func(_ *Set, w *resourceWatch) { w.handler.(*delivered).all = false }
	again := func(s *Set, w *resourceWatch) { w.health.recovered = s.o.Clock.Now() }
	for name, tc := range map[string]struct {
		change func(s *Set, pears *resourceWatch)
		later  time.Duration
		ready  bool
		unread string
	}{
		"discovery was not read":             {func(s *Set, _ *resourceWatch) { s.discovered = time.Time{} }, time.Hour, false, errUndiscovered.Error()},
		"all was delivered":                  {func(*Set, *resourceWatch) {}, 0, true, "<nil>"},
		"one was not listed yet":             {unlisted, patience - 1, false, "pears.g were not listed yet"},
		"nor after it was waited for":        {unlisted, patience, true, "pears.g were not listed yet"},
		"one fails":                          {func(_ *Set, w *resourceWatch) { w.health.fail(errors.New("webhook")) }, 0, true, "pears.g cannot be read: webhook"},
		"one was read again":                 {again, Margin - 1, true, "pears.g could be read again only a moment ago"},
		"what was missed then has come":      {again, Margin, true, "<nil>"},
		"an API was never discovered":        {failing("x.io"), 0, true, "x.io/v1 cannot be discovered: away"},
		"an API that fails is known":         {failing("g"), 0, true, "<nil>"},
		"an API that fails holds no objects": {failing("metrics.k8s.io"), 0, true, "<nil>"},
		"one that it does not want fails": {func(s *Set, _ *resourceWatch) {
			w := s.find(plums)
			w.handler.(*delivered).all = false
			w.health.fail(errors.New("webhook"))
		}, 0, true, "<nil>"},
		"one is not watched": {func(s *Set, _ *resourceWatch) { delete(s.watches, pears) }, 0, true, "<nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			c := testingclock.NewFakeClock(time.Unix(1000, 0))
			s := New(Options{Clock: c})
			f := s.Follow(Interest{Wants: func(r Resource) bool { return r.GroupResource() != plums }})
			s.catalog = newCatalog([]*metav1.APIGroup{group("g", "v1")}, []*metav1.APIResourceList{lists("g/v1", "apples", "pears", "plums")}, nil)
			s.discovered = c.Now()
			watched(s, apples)
			watched(s, plums)
			tc.change(s, watched(s, pears))
			c.Step(tc.later)
			if got := f.Ready(); got != tc.ready {
				t.Errorf("ready is %t", got)
			}
			if got := fmt.Sprint(f.Unread()); got != tc.unread {
				t.Errorf("unread is %s, want %s", got, tc.unread)
			}
		})
	}
}

func TestAFollowerSeesWhatItWants(t *testing.T) {
	s := New(Options{})
	f := s.Follow(Interest{Wants: func(r Resource) bool { return r.GroupResource() == apples }})
	watched(s, apples)
	watched(s, pears)
	for id, is := range map[schema.GroupResource]struct{ wanted, served bool }{apples: {true, true}, pears: {false, true}, plums: {false, false}} {
		if store, ok := f.Store(id); ok != is.wanted || (store != nil) != is.wanted {
			t.Errorf("%s: its store is %v, %t", id, store, ok)
		}
		if _, ok := f.State(id); ok != is.wanted {
			t.Errorf("%s: that its state is known is %t", id, ok)
		}
		if store, _, ok := s.Cached(id); ok != is.served || (store != nil) != is.served {
			t.Errorf("%s: what is cached is %v, %t", id, store, ok)
		}
	}
}

// answers is a resource whose reads have the answers given.
type answers struct {
	metadata.ResourceInterface
	more string
	err  error
}

func (a answers) List(context.Context, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{Continue: a.more}}, a.err
}

func (a answers) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), a.err
}

func TestWhatReadsOfMetadataSay(t *testing.T) {
	broken := errors.New("webhook")
	list := func(ctx context.Context, r heardReads) { _, _ = r.List(ctx, metav1.ListOptions{}) }
	begin := func(ctx context.Context, r heardReads) { _, _ = r.Watch(ctx, metav1.ListOptions{}) }
	for name, tc := range map[string]struct {
		read   func(context.Context, heardReads)
		answer answers
		failed bool
		ended  bool
		want   bool
	}{
		"a list":                             {list, answers{}, true, false, false},
		"a page is not the whole list":       {list, answers{more: "p2"}, true, false, true},
		"a list that fails":                  {list, answers{err: broken}, false, false, true},
		"a list that ends with its context":  {list, answers{err: broken}, false, true, false},
		"a watch":                            {begin, answers{}, true, false, false},
		"a watch that fails":                 {begin, answers{err: broken}, false, false, true},
		"a watch that ends with its context": {begin, answers{err: broken}, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := testingclock.NewFakeClock(time.Unix(1000, 0))
			h := newHealth(c)
			if tc.failed {
				h.fail(errors.New("before"))
			}
			c.Step(time.Second)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.ended {
				cancel()
			}
			tc.read(ctx, heardReads{tc.answer, h})
			c.Step(holds)
			if _, _, err := h.state(); (err != nil) != tc.want {
				t.Errorf("it fails with %v", err)
			}
		})
	}
}

// asked is a client that tells what its first list asks for, and has no answers.
type asked struct {
	metadata.Interface
	metadata.Getter
	first chan metav1.ListOptions
}

func (a asked) Resource(schema.GroupVersionResource) metadata.Getter { return a }
func (a asked) Namespace(string) metadata.ResourceInterface          { return a }
func (a asked) IsWatchListSemanticsUnSupported() bool                { return true }

func (a asked) List(_ context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	select {
	case a.first <- o:
	default:
	}
	return nil, errors.New("webhook")
}

// A set of a new leader would not know what the leader before has just written.
func TestTheFirstListOfMetadataIsOfTheLatestState(t *testing.T) {
	w, client := fruitWorld(), asked{first: make(chan metav1.ListOptions, 1)}
	s := New(Options{Discover: w.discover, Metadata: client, Whole: func(Resource) (cache.SharedIndexInformer, bool) { return nil, false }})
	s.Follow(Interest{Name: "test", Wants: watchable, Changed: (&recorder{}).changed})
	run(t, s)
	fixture.Eventually(t, "a list", func() bool { return len(client.first) > 0 })
	if o := <-client.first; o.ResourceVersion != "" || o.Limit != 0 {
		t.Errorf("it asked for version %q, %d at once", o.ResourceVersion, o.Limit)
	}
}

// unstreamed is a client that says whether it cannot stream a list.
type unstreamed struct {
	metadata.Interface
	cannot bool
}

func (u unstreamed) IsWatchListSemanticsUnSupported() bool { return u.cannot }

func TestOnlyAClientThatSaysSoCannotStreamAList(t *testing.T) {
	for name, tc := range map[string]struct {
		client metadata.Interface
		want   bool
	}{
		"it says nothing":        {struct{ metadata.Interface }{}, false},
		"it says that it can":    {unstreamed{cannot: false}, false},
		"it says that it cannot": {unstreamed{cannot: true}, true},
	} {
		if got := (heard{tc.client, nil}).IsWatchListSemanticsUnSupported(); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
