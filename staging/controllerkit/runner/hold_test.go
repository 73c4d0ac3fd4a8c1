package runner

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// told collects events.
type told chan string

func (c told) Event(_ runtime.Object, kind, reason, message string) {
	c <- fmt.Sprintln(kind, reason, message)
}

func TestALongHoldIsReportedAndEndsWithALiveLook(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "a", ResourceVersion: "5"}}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	if err := store.Add(pod); err != nil {
		t.Fatal(err)
	}
	c, events := testclock.NewFakeClock(time.Unix(0, 0)), make(told, 10)
	there := &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{{ObjectMeta: pod.ObjectMeta}}}
	gone := &metav1.PartialObjectMetadataList{}
	live := gone
	writes := consistency.NewTracker[string](map[schema.GroupResource]consistency.Store{pods: store})
	r := New(Options[string]{Name: "test", Clock: c, Writes: writes, Events: events,
		Object: func(string) runtime.Object { return pod }}, func(context.Context, string) Result { return Done() })
	r.LookLive(func(context.Context, schema.GroupResource, string, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		return live, nil
	})
	writes.Deleted("k", pods, pod)
	if !r.hold(t.Context(), "k") || len(events) != 0 {
		t.Fatal("not held, or reported at once")
	}
	for range 3 {
		c.Step(40 * time.Second)
		if !r.hold(t.Context(), "k") {
			t.Fatal("let go although the cache still shows what is gone")
		}
	}
	if len(events) != 1 {
		t.Fatalf("%d events in two minutes, want one at 80 s", len(events))
	}
	if got := <-events; !strings.HasPrefix(got, "Warning CacheBehind Not reconciled for 1m20s: ") || !strings.Contains(got, "pods: 1 deletes not yet observed") {
		t.Errorf("told %s", got)
	}
	if got := r.Snapshot().Waiting; len(got) != 1 || got[0].WaitingFor[0] != "pods: 1 deletes not yet observed, for 2m0s" {
		t.Errorf("the debug page says %v", got)
	}
	live = there
	c.Step(10 * time.Second)
	if r.hold(t.Context(), "k") {
		t.Error("held although the object is there, untouched")
	}
}

func TestOneWorkerLooksLiveAtATime(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	c := testclock.NewFakeClock(time.Unix(0, 0))
	writes := consistency.NewTracker[string](map[schema.GroupResource]consistency.Store{pods: store})
	reconciled := make(chan string, 1)
	r := New(Options[string]{Name: "test", Clock: c, Writes: writes, Workers: 2}, func(_ context.Context, key string) Result {
		reconciled <- key
		return Done()
	})
	looks, answer := make(chan struct{}, 2), make(chan struct{})
	r.LookLive(func(ctx context.Context, _ schema.GroupResource, _ string, _ metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		looks <- struct{}{}
		<-answer
		return &metav1.PartialObjectMetadataList{}, nil
	})
	for _, name := range []string{"a", "b"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: "5"}}
		if err := store.Add(pod); err != nil {
			t.Fatal(err)
		}
		writes.Deleted(name, pods, pod)
	}
	c.Step(10 * time.Second)
	run(t, r)
	defer close(answer)
	r.Add("a")
	<-looks
	r.Add("b")
	r.Add("fresh")
	select {
	case key := <-reconciled:
		if key != "fresh" {
			t.Errorf("reconciled %s, which waits", key)
		}
	case <-time.After(10 * time.Second):
		t.Error("both workers look, and a key that waits for nothing has none")
	}
}

func TestAWorkerThatIsAnsweredIsNotStuck(t *testing.T) {
	c := testclock.NewFakeClock(time.Unix(0, 0))
	answered, noted, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	r := New(Options[string]{Name: "test", Clock: c, StuckAfter: time.Minute}, func(ctx context.Context, _ string) Result {
		for range answered {
			Answered(ctx)
			noted <- struct{}{}
		}
		<-release
		return Done()
	})
	run(t, r)
	r.Add("ns/long")
	eventually(t, "work in flight", func() bool { return len(r.Snapshot().InFlight) == 1 })
	for range 5 {
		c.Step(45 * time.Second)
		answered <- struct{}{}
		<-noted
		if err := r.Check(nil); err != nil {
			t.Fatal(err)
		}
	}
	close(answered)
	c.Step(61 * time.Second)
	if err := r.Check(nil); err == nil || !strings.Contains(err.Error(), "ns/long for 4m46s, and none of its requests was answered for 1m1s") {
		t.Errorf("check says %v", err)
	}
	close(release)
	eventually(t, "health", func() bool { return r.Check(nil) == nil })
}

// stepped is a clock whose wall clock was set back two hours.
type stepped struct{ clock.RealClock }

func (stepped) Now() time.Time { return time.Now().Add(-2 * time.Hour).Round(0) }

func TestAStepOfTheWallClockMakesNobodyStuck(t *testing.T) {
	f := &flight{clock: stepped{}, since: time.Now().Add(-time.Hour)}
	Answered(context.WithValue(t.Context(), flightKey{}, f))
	if got := f.silent(time.Now()); got > time.Minute {
		t.Errorf("silent for %v", got)
	}
}

func TestTheStackOfAWorkerIsFound(t *testing.T) {
	number, waits := make(chan string), make(chan struct{})
	go func() { number <- goroutineNumber(); waitHereForTheTest(waits) }()
	n := <-number
	eventually(t, "the stack", func() bool { return strings.Contains(stackOf(n), "waitHereForTheTest") })
	close(waits)
	if got := stackOf("0"); got != "not found" {
		t.Errorf("got %s", got)
	}
}

func waitHereForTheTest(c chan struct{}) { <-c }
