package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
)

func init() {
	register(&scenario{
		name: "quota", order: 10, quick: 5 * time.Minute, full: 30 * time.Minute,
		about: "Namespaces with a quota each, in which some pods stay and others come and go in turn. The API server charges a quota for a new pod; the lag is from the answer to the pod's deletion until the quota no longer counts it.",
		sizes: []size{
			{"quotas", 200, 20, "namespaces with a quota"},
			{"standing", 20, 5, "pods that stay in each of them"},
			{"turns", 10, 5, "pods that come and go in each"},
			{"crowd", 5000, 200, "pods in one further namespace with a quota, where as many come and go as in all others"},
		},
		run: runQuota,
	})
}

const (
	quotaName, crowded = "limits", "crowded"
	// usagePatience is how long a usage may be wrong before its quota is given up: some
	// binaries put it right at their next full count only.
	usagePatience = 10 * time.Second
)

func runQuota(ctx context.Context, w *world) error {
	w.watch(ctx)
	quotas, standing := w.sizes["quotas"], w.sizes["standing"]
	client := w.load()
	if err := parallel(ctx, workers, quotas+1, func(i int) error { return w.bareNamespace(ctx, quotaNamespace(i, quotas)) }); err != nil {
		return err
	}
	if err := parallel(ctx, workers, quotas*standing+w.sizes["crowd"], func(i int) error {
		in := crowded
		if i < quotas*standing {
			in = quotaNamespace(i%quotas, quotas)
		}
		_, err := client.CoreV1().Pods(in).Create(ctx, heldPod(in, fmt.Sprintf("standing-%d", i)), metav1.CreateOptions{})
		return err
	}); err != nil {
		return err
	}
	if err := w.start(ctx, "--leader-elect=false"); err != nil {
		return err
	}
	if err := pause(ctx, w.settling()); err != nil {
		return err
	}
	if err := w.firstCount(ctx, client, quotas); err != nil {
		return err
	}
	lags, err := w.followUsage(ctx)
	if err != nil {
		return err
	}
	turns := w.sizes["turns"]
	if err := w.guests(ctx, lags, report.Step{Name: "come and go in turn", Objects: quotas * turns, Unit: "pod"}, func(ctx context.Context) error {
		return parallel(ctx, workers, quotas, func(i int) error { return w.comeAndGo(ctx, lags, quotaNamespace(i, quotas), turns, standing) })
	}); err != nil {
		return err
	}
	return w.guests(ctx, lags, report.Step{Name: "come and go in a crowd", Objects: quotas, Unit: "pod"}, func(ctx context.Context) error {
		return w.comeAndGo(ctx, lags, crowded, quotas, w.sizes["crowd"])
	})
}

// guests measures a step in which pods come and go.
func (w *world) guests(ctx context.Context, u *usages, s report.Step, do func(context.Context) error) error {
	if err := w.step(ctx, s, func(ctx context.Context) ([]report.Latency, error) {
		err := do(ctx)
		return []report.Latency{report.Latencies("usage given back", u.take())}, err
	}); err != nil {
		return err
	}
	last := &w.result.Steps[len(w.result.Steps)-1]
	last.Figures = append(last.Figures,
		report.Figure{Name: "quotas given up, as their usage stayed wrong", Value: float64(u.givenUp())},
		report.Figure{Name: "pods refused, as their quota was being written", Value: float64(u.refused())})
	return nil
}

// quotaNamespace is the i-th namespace; the last one is crowded.
func quotaNamespace(i, quotas int) string {
	if i == quotas {
		return crowded
	}
	return fmt.Sprintf("quota-%d", i)
}

// heldPod is a pod that nobody schedules.
func heldPod(in, name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name}, Spec: template(name, firstImage).Spec}
	pod.Spec.SchedulerName = "nobody"
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")}
	return pod
}

// firstCount creates the quotas and waits until each has its usage.
func (w *world) firstCount(ctx context.Context, client kubernetes.Interface, quotas int) error {
	counted, err := w.expect(ctx, "quotas have their usage", quotas+1, w.watches.Core().V1().ResourceQuotas().Informer(), func(object any) string {
		if q, ok := object.(*corev1.ResourceQuota); ok && len(q.Status.Used) == len(q.Spec.Hard) {
			return q.Namespace
		}
		return ""
	})
	if err != nil {
		return err
	}
	return w.step(ctx, report.Step{Name: "first count", Objects: quotas + 1, Unit: "quota"}, func(ctx context.Context) ([]report.Latency, error) {
		much := resource.MustParse("1M")
		err := parallel(ctx, workers, quotas+1, func(i int) error {
			in := quotaNamespace(i, quotas)
			counted.ask(in)
			_, err := client.CoreV1().ResourceQuotas(in).Create(ctx, &corev1.ResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: quotaName},
				Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
					corev1.ResourcePods: much, corev1.ResourceRequestsCPU: much, corev1.ResourceRequestsMemory: resource.MustParse("1Ti"),
					"count/pods": much, corev1.ResourceConfigMaps: much, "count/deployments.apps": much,
				}},
			}, metav1.CreateOptions{})
			return err
		})
		took, waited := counted.wait(ctx)
		return []report.Latency{report.Latencies("usage", took)}, errors.Join(err, waited)
	})
}

// usages knows how many pods each quota counts, and how long it took to come to that.
type usages struct {
	mu      sync.Mutex
	now     map[string]int64
	waiting map[string]awaited
	lags    []time.Duration
	// wrong are the quotas that were given up, conflicts the pods that were refused.
	wrong, conflicts int
}

type awaited struct {
	pods int64
	from time.Time
	done chan struct{}
}

// followUsage watches the quotas from now on.
func (w *world) followUsage(ctx context.Context) (*usages, error) {
	u := &usages{now: map[string]int64{}, waiting: map[string]awaited{}}
	see := func(object any) {
		if q, ok := object.(*corev1.ResourceQuota); ok {
			u.see(q.Namespace, q.Status.Used.Pods().Value())
		}
	}
	registration, err := w.watches.Core().V1().ResourceQuotas().Informer().AddEventHandler(
		cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, object any) { see(object) }})
	if err != nil {
		return nil, fmt.Errorf("watch the quotas: %w", err)
	}
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return nil, fmt.Errorf("watch the quotas: %w", context.Cause(ctx))
	}
	return u, nil
}

func (u *usages) see(in string, pods int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.now[in] = pods
	if a, ok := u.waiting[in]; ok && a.pods == pods {
		delete(u.waiting, in)
		if !a.from.IsZero() {
			u.lags = append(u.lags, time.Since(a.from))
		}
		close(a.done)
	}
}

// until waits until the quota counts so many pods, and reports whether it did in
// good time. With a time from which the lag runs it is written down.
func (u *usages) until(ctx context.Context, in string, pods int64, from time.Time) (bool, error) {
	u.mu.Lock()
	if u.now[in] == pods {
		if !from.IsZero() {
			u.lags = append(u.lags, time.Since(from))
		}
		u.mu.Unlock()
		return true, nil
	}
	a := awaited{pods, from, make(chan struct{})}
	u.waiting[in] = a
	u.mu.Unlock()
	timer := time.NewTimer(usagePatience)
	defer timer.Stop()
	select {
	case <-a.done:
		return true, nil
	case <-timer.C:
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.waiting, in)
		u.wrong++
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// charge creates a pod. The API server gives up when the quota is written by
// somebody else several times meanwhile; its users try again.
func (u *usages) charge(create func() error) error {
	for {
		err := create()
		if !apierrors.IsConflict(err) {
			return err
		}
		u.mu.Lock()
		u.conflicts++
		u.mu.Unlock()
	}
}

// refused returns how often a pod was refused since it was asked last, because
// its quota was being written.
func (u *usages) refused() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	conflicts := u.conflicts
	u.conflicts = 0
	return conflicts
}

// givenUp returns how many quotas were given up since it was asked last.
func (u *usages) givenUp() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	wrong := u.wrong
	u.wrong = 0
	return wrong
}

// take returns the lags and forgets them.
func (u *usages) take() []time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	lags := u.lags
	u.lags = nil
	return lags
}

// comeAndGo creates and deletes pods one after the other, and each time waits
// for the usage.
func (w *world) comeAndGo(ctx context.Context, u *usages, in string, turns, standing int) error {
	pods := w.load().CoreV1().Pods(in)
	for i := range turns {
		name := fmt.Sprintf("guest-%d", i)
		if err := u.charge(func() error {
			_, err := pods.Create(ctx, heldPod(in, name), metav1.CreateOptions{})
			return err
		}); err != nil {
			return err
		}
		if ok, err := u.until(ctx, in, int64(standing+1), time.Time{}); err != nil || !ok {
			return err
		}
		if err := pods.Delete(ctx, name, *metav1.NewDeleteOptions(0)); err != nil {
			return err
		}
		if ok, err := u.until(ctx, in, int64(standing), time.Now()); err != nil || !ok {
			return err
		}
	}
	return nil
}
