// Package breaks breaks the rules that are held by types.
package breaks

import (
	"context"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/featuregate"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

type controller struct {
	client kubernetes.Interface            // want a client
	events map[string]record.EventRecorder // want a client
	writer func() client.Client            // want a client
	reader client.Reader
	clock  clock.PassiveClock
	gates  featuregate.FeatureGate
}

func take(hand reconcile.Hand) error {
	return hand.Client.Create(context.Background(), &corev1.Pod{}) // want reaches for a client
}

func plan(pod *corev1.Pod) act.Plan { // want reaches time.Now
	return act.Plan{Why: why(pod), Then: func(act.Results) act.Plan {
		return act.Plan{RequeueAfter: time.Until(time.Time{})} // the second way to it
	}}
}

func why(pod *corev1.Pod) string { return pod.Name + time.Now().String() }

func (c *controller) steps() []act.Step { // want a clock, a gate, a read, chance
	_ = c.clock.Now()
	_ = c.gates.Enabled("x")
	_ = c.reader.Get(context.Background(), client.ObjectKey{}, &corev1.Pod{})
	_ = rand.IntN(2)
	return nil
}
