package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// floored is the scenario that the floor is the limit of.
const floored = "rollout"

// floor creates the pods of rollout with a bare client, with more and more
// workers, each time in a namespace of its own.
func (b *bench) floor(ctx context.Context, round int) (report.Floor, error) {
	limit := 15 * time.Minute
	if b.quick {
		limit = 2 * time.Minute
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done after %s", limit))
	defer cancel()
	sizes := b.sizes[floored]
	f := report.Floor{Round: round, Pods: sizes["deployments"] * sizes["replicas"], Nodes: sizes["nodes"], Load: load()}
	b.say("floor: a bare client creates %d pods, round %d", f.Pods, round)
	err := b.cluster(ctx, 0, "", func(k *harness.Kwok) error {
		w := &world{Kwok: k, bench: b, result: &report.Run{}, name: "floor"}
		w.watch(ctx)
		defer w.end()
		if err := w.AddNodes(ctx, f.Nodes); err != nil {
			return err
		}
		for _, workers := range []int{4, 16, 64} {
			try, err := w.try(ctx, f.Pods, workers)
			if err != nil {
				return err
			}
			w.say("%d workers: created after %.1f s, Ready after %.1f s", workers, try.Created, try.Ready)
			f.Tries = append(f.Tries, try)
		}
		return nil
	})
	return f, err
}

func (w *world) try(ctx context.Context, pods, workers int) (report.Try, error) {
	t := report.Try{Workers: workers}
	ns := fmt.Sprintf("floor-%d", workers)
	if err := w.bareNamespace(ctx, ns); err != nil {
		return t, err
	}
	e, err := w.expect(ctx, "pods are Ready", pods, w.watches.Core().V1().Pods().Informer(), func(object any) string {
		if pod, ok := object.(*corev1.Pod); ok && pod.Namespace == ns && podReady(pod) {
			return pod.Name
		}
		return ""
	})
	if err != nil {
		return t, err
	}
	client, start := w.load(), time.Now()
	spec := template("web", firstImage)
	// New nodes are tainted until a controller finds them Ready, and there is none.
	spec.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	if err := parallel(ctx, workers, pods, func(i int) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%d", i), Labels: spec.Labels}, Spec: spec.Spec}
		_, err := client.CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{})
		return err
	}); err != nil {
		return t, err
	}
	t.Created = time.Since(start).Seconds()
	_, err = e.wait(ctx)
	t.Ready = time.Since(start).Seconds()
	return t, err
}

// bareNamespace is ready for pods without a controller that makes it so.
func (w *world) bareNamespace(ctx context.Context, name string) error {
	if err := w.addNamespace(ctx, name); err != nil {
		return err
	}
	_, err := w.Client.CoreV1().ServiceAccounts(name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create the service account of namespace %s: %w", name, err)
	}
	return nil
}
