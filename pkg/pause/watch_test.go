package pause

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"
)

const patience = 10 * time.Second

// watched is a watcher on a fake API server.
type watched struct {
	*Watcher
	t      *testing.T
	client *fake.Clientset

	mu    sync.Mutex
	rules Rules
	told  []string
}

func (w *watched) Event(_ runtime.Object, kind, reason, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, kind+" "+reason+" "+message)
}

func newWatched(t *testing.T, there ...runtime.Object) *watched {
	t.Helper()
	w := &watched{t: t, client: fake.NewClientset(there...)}
	maps := w.client.CoreV1().ConfigMaps("kube-system")
	source := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return maps.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return maps.Watch(ctx, o) },
	}, w.client)
	watcher, err := New(Options{
		Source: source, ConfigMap: types.NamespacedName{Namespace: "kube-system", Name: "kcm-pause"}, Names: names, Events: w,
		Pause: func(r Rules) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.rules = r
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Watcher = watcher
	return w
}

// run follows the ConfigMap until the test ends, and returns once it has been read.
func (w *watched) run() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	w.t.Cleanup(func() { cancel(); <-done })
	if err := w.Wait(ctx); err != nil {
		w.t.Fatal(err)
	}
}

// why is why the Deployment controller does not write in the namespace shop.
func (w *watched) why() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rules.Paused("deployment-controller", "shop")
}

func (w *watched) events() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.told, "\n")
}

// until waits for an event.
func (w *watched) until(says string) {
	w.t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for !strings.Contains(w.events(), says) {
		select {
		case <-ticker.C:
		case <-deadline.C:
			w.t.Fatalf("no event says %s: %s", says, w.events())
		}
	}
}

// value is that of a gauge.
func value(t *testing.T, of metrics.GaugeMetric) float64 {
	t.Helper()
	v, err := testutil.GetGaugeMetricValue(of)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (w *watched) put(data map[string]string) {
	w.t.Helper()
	maps := w.client.CoreV1().ConfigMaps("kube-system")
	_, err := maps.Update(w.t.Context(), configMap(data), metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(w.t.Context(), configMap(data), metav1.CreateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestAPauseComesAndGoes(t *testing.T) {
	w := newWatched(t)
	if why := w.why(); !strings.Contains(why, "has not been read yet") {
		t.Errorf("before it was read, what holds writes back is %q", why)
	}
	w.run()
	if why := w.why(); why != "" || w.events() != "" {
		t.Fatalf("without a ConfigMap: %q, told %s", why, w.events())
	}
	w.put(map[string]string{"controllers": "deployment"})
	w.until("Normal Paused Paused: deployment-controller")
	if w.why() == "" {
		t.Error("it is not paused")
	}
	w.put(map[string]string{"controllers": "deployments", "namespaces": "Shop"})
	w.until("Warning PauseNotUnderstood Not understood, and nothing is changed")
	if w.why() == "" || value(t, notUnderstood) != 1 {
		t.Error("a mistake has resumed it, or the metric does not say that it is one")
	}
	for _, says := range []string{`"deployments"`, `"Shop"`, "still paused: deployment-controller"} {
		if !strings.Contains(w.events(), says) {
			t.Errorf("no event says %s: %s", says, w.events())
		}
	}
	w.put(map[string]string{"namespaces": "shop", "reason": "audit"})
	w.until("Normal Paused Paused: every controller in namespace shop (audit)")
	if !strings.HasPrefix(w.why(), "namespace shop is paused by ConfigMap kube-system/kcm-pause") ||
		value(t, notUnderstood) != 0 || value(t, pausedNamespaces) != 1 {
		t.Errorf("it says %q", w.why())
	}
	if err := w.client.CoreV1().ConfigMaps("kube-system").Delete(t.Context(), "kcm-pause", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("Normal Resumed Resumed: every controller in namespace shop")
	if w.why() != "" || value(t, pausedNamespaces) != 0 {
		t.Errorf("it is still paused: %q", w.why())
	}
}

func TestAnotherConfigMapPausesNothing(t *testing.T) {
	other := configMap(map[string]string{"controllers": "*"})
	other.Name = "other"
	w := newWatched(t, other)
	w.run()
	w.put(map[string]string{"controllers": "job"})
	w.until("Normal Paused Paused: job-controller")
	if w.why() != "" {
		t.Errorf("paused: %q", w.why())
	}
}

func TestAPauseHoldsFromTheFirstRead(t *testing.T) {
	for name, tc := range map[string]struct {
		data      map[string]string
		why, told string
	}{
		"it is understood":     {map[string]string{"controllers": "deployment"}, "deployment-controller is paused by ConfigMap", "Normal Paused"},
		"it pauses nothing":    {map[string]string{"controllers": ""}, "", ""},
		"it is not understood": {map[string]string{"controllers": "deploy"}, "every controller is paused by ConfigMap kube-system/kcm-pause: it is not understood", "Warning PauseNotUnderstood"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t, configMap(tc.data))
			w.run()
			if why := w.why(); (why == "") != (tc.why == "") || !strings.HasPrefix(why, tc.why) {
				t.Errorf("said %q", why)
			}
			if told := w.events(); (told == "") != (tc.told == "") || !strings.HasPrefix(told, tc.told) {
				t.Errorf("told %q", told)
			}
		})
	}
}

// A first list without the ConfigMap and the event of its creation may come in the same
// moment: what was seen holds, whichever of the two is taken in first.
func TestAConfigMapThatComesWithTheFirstReadIsObeyed(t *testing.T) {
	for name, order := range map[string]func(w *watched){
		"seen first":    func(w *watched) { w.saw(configMap(map[string]string{"controllers": "*"})); w.readNone() },
		"none is first": func(w *watched) { w.readNone(); w.saw(configMap(map[string]string{"controllers": "*"})) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatched(t)
			order(w)
			if !strings.HasPrefix(w.why(), "every controller is paused by ConfigMap") {
				t.Errorf("what holds writes back is %q", w.why())
			}
		})
	}
}

func TestWhatCannotBeReadHoldsEverything(t *testing.T) {
	w := newWatched(t)
	asked := make(chan struct{}, 100)
	w.client.PrependReactor("*", "configmaps", func(ktesting.Action) (bool, runtime.Object, error) {
		asked <- struct{}{}
		return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), "kcm-pause", errors.New("no"))
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	go func() { defer close(done); w.Run(ctx) }()
	go func() {
		defer cancel()
		<-asked
		<-asked // so the first answer was taken in
	}()
	if err := w.Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("waited until %v", err)
	}
	<-done
	if why := w.why(); !strings.Contains(why, "has not been read yet") {
		t.Errorf("what holds writes back is %q", why)
	}
}

func TestALongMistakeFitsIntoAnEvent(t *testing.T) {
	var many []string
	for i := range 500 {
		many = append(many, fmt.Sprintf("none-%d", i))
	}
	w := newWatched(t, configMap(map[string]string{"controllers": strings.Join(many, " ")}))
	w.run()
	if told := w.events(); len(told) > longestMessage+100 {
		t.Errorf("an event of %d characters", len(told))
	}
}
