package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

func init() {
	register(&scenario{
		name: "failover", order: 7, quick: 4 * time.Minute, full: 20 * time.Minute,
		about: "A leader and a standby; the leader gets SIGTERM or SIGKILL, and as soon as it has ended somebody makes a namespace. The time runs from the signal until that has its service account. The lease is the default one of 15 s. With more than one process, CPU and bytes are not counted.",
		sizes: []size{
			{"term", 5, 1, "how often the leader of failover gets SIGTERM"},
			{"kill", 3, 1, "how often the leader of failover gets SIGKILL"},
		},
		run: runFailover,
	})
}

func runFailover(ctx context.Context, w *world) error {
	w.watch(ctx)
	if err := w.start(ctx, "--leader-elect=true"); err != nil {
		return err
	}
	if err := w.newNamespace(ctx, namespace); err != nil {
		return err
	}
	for _, end := range []struct {
		name   string
		signal os.Signal
		times  int
	}{{"SIGTERM", syscall.SIGTERM, w.sizes["term"]}, {"SIGKILL", syscall.SIGKILL, w.sizes["kill"]}} {
		if err := w.failOver(ctx, end.name, end.signal, end.times); err != nil {
			return err
		}
	}
	return nil
}

// failOver ends the leader a number of times; each time there is a standby that
// has had time to settle.
func (w *world) failOver(ctx context.Context, name string, signal os.Signal, times int) error {
	if times == 0 {
		return nil
	}
	var took []time.Duration
	total := time.Duration(0)
	err := w.step(ctx, report.Step{Name: name, Objects: times, Unit: "failover", Fixed: true}, func(ctx context.Context) ([]report.Latency, error) {
		for i := range times {
			standby, err := w.startAnother("--leader-elect=true")
			if err != nil {
				return nil, err
			}
			if err := errors.Join(healthy(ctx, standby), pause(ctx, 4*time.Second)); err != nil {
				return nil, err
			}
			leader := w.measured()
			w.measure(standby)
			one, err := w.succeed(ctx, leader, signal, strings.ToLower(fmt.Sprintf("after-%s-%d", name, i)))
			if err != nil {
				return nil, err
			}
			took, total = append(took, one), total+one
		}
		return []report.Latency{report.Latencies("namespace served", took)}, nil
	})
	if err != nil {
		return err
	}
	// The step holds the waits between; what counts are the failovers.
	last := &w.result.Steps[len(w.result.Steps)-1]
	last.Seconds, last.Fixed = total.Seconds()/float64(times), false
	return nil
}

// succeed ends the leader and returns how long the next namespace waited.
func (w *world) succeed(ctx context.Context, leader *harness.KwokManager, signal os.Signal, name string) (time.Duration, error) {
	e, err := w.expect(ctx, "namespace has its service account", 1, w.watches.Core().V1().ServiceAccounts().Informer(), func(object any) string {
		if account, ok := object.(*corev1.ServiceAccount); ok && account.Namespace == name {
			return account.Name
		}
		return ""
	})
	if err != nil {
		return 0, err
	}
	e.since = time.Now()
	leader.Signal(signal)
	// A leader may serve whom it hears of while it ends; the question is who serves after it.
	select {
	case <-leader.Exited():
	case <-ctx.Done():
		return 0, fmt.Errorf("the leader does not end: %w", context.Cause(ctx))
	}
	if _, err := w.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		return 0, fmt.Errorf("create namespace %s: %w", name, err)
	}
	took, err := e.wait(ctx)
	if err != nil {
		return 0, err
	}
	leader.Kill()
	return took[0], nil
}
