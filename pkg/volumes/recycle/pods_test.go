package recycle

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

const podName = "recycler-for-old"

// rig is an API server where recycler pods run, and what they are watched with.
type rig struct {
	*fixture.Rig
	*Pods
	t *testing.T

	mu      sync.Mutex
	said    []string
	heard   []*watch.FakeWatcher // the watches of events, the newest last
	stop    chan struct{}
	created int
}

func newRig(t *testing.T, there ...runtime.Object) *rig {
	t.Helper()
	return newLimitedRig(t, nil, there...)
}

func newLimitedRig(t *testing.T, limits *act.Limits, there ...runtime.Object) *rig {
	t.Helper()
	r := &rig{Rig: fixture.New(fake.NewClientset(there...), time.Unix(1, 0)), t: t, stop: make(chan struct{})}
	r.Client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		r.created++
		action.(clienttesting.CreateAction).GetObject().(*corev1.Pod).UID = types.UID(fmt.Sprint("pod-", r.created))
		return false, nil, nil
	})
	hand := r.Hand()
	hand.Limits = limits
	pods, err := NewPods("binder", r.In.Core().V1().Pods(), r.watchEvents, r.stop, hand)
	if err != nil {
		t.Fatal(err)
	}
	r.Pods = pods
	return r
}

func (r *rig) watchEvents(_ context.Context, namespace, name string) (watch.Interface, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if namespace != "default" || name != podName {
		return nil, errors.New("of another pod")
	}
	r.heard = append(r.heard, watch.NewFake())
	return r.heard[len(r.heard)-1], nil
}

func (r *rig) say(kind, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, kind+" "+message)
}

// listening waits for the nth watch of events and returns it.
func (r *rig) listening(n int) *watch.FakeWatcher {
	r.t.Helper()
	fixture.Eventually(r.t, "events are watched", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.heard) >= n
	})
	return r.heard[n-1]
}

// recycling begins to recycle the volume "old", with caches that follow the server.
func (r *rig) recycling(ctx context.Context) <-chan error {
	r.t.Helper()
	fixture.Run(r.t, r.Client, func(ctx context.Context) { <-ctx.Done() }, r.In)
	return r.recycle(ctx)
}

func (r *rig) recycle(ctx context.Context) <-chan error {
	template, err := Template("")
	if err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.Recycle(ctx, &Recycler{template, 60, 30}, volume("1Gi", hostPath), r.say) }()
	return ended
}

// becomes has the pod reach a state, once it is there.
func (r *rig) becomes(phase corev1.PodPhase, message string) {
	r.t.Helper()
	pods := r.Client.CoreV1().Pods("default")
	fixture.Eventually(r.t, "the pod is there", func() bool {
		pod, err := pods.Get(r.t.Context(), podName, metav1.GetOptions{})
		if err != nil {
			return false
		}
		pod.Status.Phase, pod.Status.Message = phase, message
		_, err = pods.UpdateStatus(r.t.Context(), pod, metav1.UpdateOptions{})
		return err == nil
	})
}

func (r *rig) gone() bool {
	_, err := r.Client.CoreV1().Pods("default").Get(context.Background(), podName, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

// ends waits for the end of a recycling, and holds why it failed.
func (r *rig) ends(ended <-chan error, want string) {
	r.t.Helper()
	select {
	case err := <-ended:
		if got := fmt.Sprint(err); got != want {
			r.t.Errorf("ended with %s, want %s", got, want)
		}
	case <-time.After(30 * time.Second):
		r.t.Fatal("it does not end")
	}
}

func TestAPodRunsToItsEndAndIsDeleted(t *testing.T) {
	for name, tc := range map[string]struct {
		phase         corev1.PodPhase
		message, want string
	}{
		"it succeeds":         {corev1.PodSucceeded, "", "<nil>"},
		"it fails":            {corev1.PodFailed, "disk is broken", "failed to recycle volume: disk is broken"},
		"nobody knows of why": {corev1.PodFailed, "", "failed to recycle volume: pod failed, pod.Status.Message unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			ended := r.recycling(t.Context())
			r.becomes(corev1.PodPending, "")
			r.becomes(corev1.PodRunning, "")
			r.becomes(tc.phase, tc.message)
			r.ends(ended, tc.want)
			if !r.gone() {
				t.Error("the pod is left")
			}
		})
	}
}

func TestAPodThatSomebodyDeletesHasNotRecycled(t *testing.T) {
	r := newRig(t)
	ended := r.recycling(t.Context())
	r.becomes(corev1.PodRunning, "")
	fixture.Eventually(t, "the cache shows it", func() bool { return len(r.cache.List()) == 1 })
	if err := r.Client.CoreV1().Pods("default").Delete(t.Context(), podName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.ends(ended, "failed to recycle volume: recycler pod was deleted")
}

func TestACacheThatIsBehindHoldsNothingUp(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(r *rig)
		want   string
	}{
		"the pod has ended": {func(r *rig) { r.becomes(corev1.PodSucceeded, "") }, "<nil>"},
		"the pod is gone": {func(r *rig) {
			r.becomes(corev1.PodRunning, "")
			_ = r.Client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "default", podName)
		}, "failed to recycle volume: recycler pod was deleted"},
		"another one has its name": {func(r *rig) {
			r.becomes(corev1.PodRunning, "")
			other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: podName, UID: "other"}}
			_ = r.Client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), other, "default")
		}, "failed to recycle volume: recycler pod was deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			ended := r.recycle(t.Context()) // no cache is running
			tc.change(r)
			fixture.Eventually(t, "it is waited for", r.Clock.HasWaiters)
			for done := false; !done; {
				r.Clock.Step(liveLook)
				select {
				case err := <-ended:
					if fmt.Sprint(err) != tc.want {
						t.Errorf("ended with %v", err)
					}
					done = true
				default:
				}
			}
		})
	}
}

// A 404 of something in front of the API server says nothing of the pod.
func TestAPodIsNotGoneBecauseAProxySaysSo(t *testing.T) {
	r := newRig(t)
	r.Fail("get", "pods", apierrors.NewGenericServerResponse(http.StatusNotFound, "get", corev1.Resource("pods"), podName, "<html>", 0, true))
	if outcome := r.look(t.Context(), types.NamespacedName{Namespace: "default", Name: podName}, "pod-1"); outcome.Over {
		t.Errorf("it is over: %v", outcome.Err)
	}
}

func TestAPodOfAnEarlierProcessIsDeletedFirst(t *testing.T) {
	old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: podName, UID: "earlier"}}
	r := newRig(t, old)
	r.ends(r.recycling(t.Context()), "old recycler pod found, will retry later")
	if !r.gone() {
		t.Error("the old pod is left")
	}
	for _, a := range r.Client.Actions() {
		if a, is := a.(clienttesting.DeleteActionImpl); is && *a.DeleteOptions.Preconditions.UID != "earlier" {
			t.Error("any pod of the name may be deleted")
		}
	}
	ended := r.recycle(t.Context())
	r.becomes(corev1.PodSucceeded, "")
	r.ends(ended, "<nil>")
}

func TestAPodThatCannotBeCreatedIsSaid(t *testing.T) {
	r := newRig(t)
	r.Fail("create", "pods", errors.New("no room"))
	r.ends(r.recycling(t.Context()), "unexpected error creating recycler pod:  no room")
}

// What became of a creation whose answer is lost nobody knows: the pod may be there.
func TestAPodWhoseCreationGotNoAnswerIsDeleted(t *testing.T) {
	r := newRig(t)
	lost := apierrors.NewInternalError(errors.New("lost"))
	r.Client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		_ = r.Client.Tracker().Add(action.(clienttesting.CreateAction).GetObject())
		return true, nil, lost
	})
	ended := r.recycling(t.Context())
	r.ends(ended, "unexpected error creating recycler pod:  "+lost.Error())
	if !r.gone() {
		t.Error("the pod is left")
	}
}

func TestAProcessThatEndsLeavesNoPod(t *testing.T) {
	r := newRig(t)
	ended := r.recycling(t.Context())
	r.becomes(corev1.PodRunning, "")
	close(r.stop)
	r.ends(ended, errStopped.Error())
	if !r.gone() {
		t.Error("the pod is left")
	}
	ctx, cancel := context.WithCancel(t.Context())
	r = newRig(t)
	ended = r.recycling(ctx)
	r.becomes(corev1.PodRunning, "")
	cancel()
	r.ends(ended, context.Canceled.Error())
	if !r.gone() {
		t.Error("the pod is left")
	}
}

func TestWhatEventsSayIsSaidOnce(t *testing.T) {
	r := newRig(t)
	ended := r.recycling(t.Context())
	event := func(uid types.UID, pod types.UID, message string) *corev1.Event {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{UID: uid}, Type: "Warning", Message: message,
			InvolvedObject: corev1.ObjectReference{Namespace: "default", Name: podName, UID: pod}}
	}
	first := r.listening(1)
	first.Add(event("a", "earlier", "of an earlier pod"))
	first.Add(event("b", "pod-1", "no node"))
	first.Modify(event("b", "pod-1", "no node"))
	first.Stop() // as the API server does after a while
	fixture.Eventually(t, "events are watched again", func() bool {
		r.Clock.Step(hearAgain)
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.heard) > 1
	})
	second := r.listening(2)
	second.Add(event("b", "pod-1", "no node"))
	second.Add(event("c", "pod-1", "pulled"))
	second.Delete(event("c", "pod-1", "pulled"))
	r.becomes(corev1.PodSucceeded, "")
	r.ends(ended, "<nil>")
	if got := strings.Join(r.said, "; "); got != "Warning Recycler pod: no node; Warning Recycler pod: pulled" {
		t.Errorf("said %s", got)
	}
}

func TestWithoutEventsAVolumeIsRecycledAllTheSame(t *testing.T) {
	r := newRig(t)
	r.Pods.events = func(context.Context, string, string) (watch.Interface, error) { return nil, errors.New("forbidden") }
	ended := r.recycling(t.Context())
	r.becomes(corev1.PodSucceeded, "")
	r.ends(ended, "<nil>")
}

// The deletion of a pod that has done its work waits while somebody holds it back.
func TestAPodIsDeletedWhenItIsResumed(t *testing.T) {
	limits := &act.Limits{}
	r := newLimitedRig(t, limits)
	ended := r.recycling(t.Context())
	fixture.Eventually(t, "the pod is there", func() bool { return !r.gone() })
	var asked atomic.Int32
	limits.Pause(func(controller, _ string) string {
		asked.Add(1)
		return controller + " is paused"
	})
	r.becomes(corev1.PodSucceeded, "")
	r.ends(ended, "<nil>")
	if r.gone() || asked.Load() == 0 {
		t.Error("the pod was deleted while it is paused")
	}
	limits.Pause(nil)
	fixture.Eventually(t, "the pod is deleted", r.gone)
}
