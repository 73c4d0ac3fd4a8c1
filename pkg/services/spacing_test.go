package services

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// queued records what is woken.
type queued []types.NamespacedName

func (q *queued) Add(key types.NamespacedName)                       { *q = append(*q, key) }
func (q *queued) AddAfter(key types.NamespacedName, _ time.Duration) { *q = append(*q, key) }

func TestOnlyWhatJoinsWaits(t *testing.T) {
	web := set{"app": "web"}
	key := types.NamespacedName{Namespace: "shop", Name: "web"}
	index := indexOf(t, service("web", web))
	change := func(before, after *corev1.Pod) func(*Spacing, *queued) {
		return func(s *Spacing, q *queued) {
			WakeTouched(index, 0, s, runner.Change[corev1.Pod]{Old: before, New: after}, q)
		}
	}
	for name, tc := range map[string]struct {
		event func(*Spacing, *queued)
		want  time.Duration
	}{
		"a pod that is new waits":                     {change(nil, pod(web, ready)), 500 * time.Millisecond},
		"a pod that turns ready waits":                {change(pod(web), pod(web, ready)), 500 * time.Millisecond},
		"a pod that is not ready any more goes":       {change(pod(web, ready), pod(web)), 0},
		"a pod that begins to shut down goes":         {change(pod(web, ready), pod(web, ready, ending)), 0},
		"a pod that is gone goes":                     {change(pod(web, ready), nil), 0},
		"a pod that the service selects no more goes": {change(pod(web, ready), pod(set{"app": "db"}, ready)), 0},
		"a pod in the place of another goes":          {change(pod(web, ready), pod(web, ready, replaced)), 0},
		"a change of the service waits for nothing": {func(s *Spacing, q *queued) {
			WakeItself(runner.Change[corev1.Service]{New: service("web", web)}, s.AtOnce(q))
		}, 0},
		"a failure is tried again without waiting": {func(s *Spacing, q *queued) { s.Done(key, s.Now(), errors.New("refused")); q.Add(key) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			clock := testclock.NewFakePassiveClock(time.Unix(9, 0))
			s := NewSpacing(clock)
			s.Done(key, clock.Now().Add(-time.Second), nil)
			var q queued
			tc.event(s, &q)
			if len(q) != 1 || q[0] != key {
				t.Fatalf("woke %v", q)
			}
			if got := s.Wait(key); got != tc.want {
				t.Errorf("waits %v, want %v", got, tc.want)
			}
			if got := s.Wait(key); got != 500*time.Millisecond {
				t.Errorf("the reconcile after that waits %v", got)
			}
			clock.SetTime(clock.Now().Add(500 * time.Millisecond))
			if got := s.Wait(key); got != 0 {
				t.Errorf("once due it waits %v", got)
			}
		})
	}
}
