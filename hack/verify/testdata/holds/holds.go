// Package holds keeps the rules that are held by types.
package holds

import (
	"context"
	"net"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

type controller struct {
	reader client.Reader
	clock  clock.PassiveClock
}

func (c *controller) run(hand reconcile.Hand) {
	reconcile.New(reconcile.Options[string]{Hand: hand}, c.observe, plan)
}

func (c *controller) observe(ctx context.Context, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	pod.CreationTimestamp.Time = c.clock.Now()
	return pod, c.reader.Get(ctx, client.ObjectKey{Name: name}, pod)
}

func plan(pod *corev1.Pod, now time.Time) act.Plan {
	return act.Plan{Why: pod.Name + net.IP(nil).String(), RequeueAfter: now.Sub(pod.CreationTimestamp.Time)}
}
