package app

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// brakeApplied is the reason of the event on the lease of the leader.
const brakeApplied = "DeleteBrakeApplied"

var deletesHeld = metrics.NewCounterVec(&metrics.CounterOpts{
	Name:           "kcm_deletes_held_total",
	Help:           "How often deletions had to wait for their turn, by the rate of --max-deletes-per-minute that held them back.",
	StabilityLevel: metrics.ALPHA,
}, []string{"rate"})

func init() { legacyregistry.MustRegister(deletesHeld) }

// addBrake holds deletions to the rates of --max-deletes-per-minute.
func (cc *ControllerContext) addBrake() {
	rates := cc.process.MaxDeletesPerMinute
	if len(rates) == 0 {
		return
	}
	for _, rate := range rates {
		deletesHeld.WithLabelValues(rate.String())
	}
	cc.heldTo().Brake = act.NewBrake(cc.Clock, rates, cc.process.reportBrake, func(by act.DeleteRate) {
		deletesHeld.WithLabelValues(by.String()).Inc()
	})
}

// reportBrake says that deletions begin to be held back.
func (p *process) reportBrake(by act.DeleteRate) {
	klog.Background().Info("Deletions begin to be held back; --max-deletes-per-minute allows no more", "rate", by, "perMinute", by.PerMinute)
	lease := p.mainLease()
	on := &corev1.ObjectReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Namespace: lease.Namespace, Name: lease.Name}
	p.EventRecorder.Event(on, corev1.EventTypeWarning, brakeApplied,
		fmt.Sprintf("Deletions begin to be held back: --max-deletes-per-minute allows %d a minute (%s)", by.PerMinute, by))
}

// braked returns why a deletion that nobody has counted yet must wait; one of a collection
// counts as one.
func (cc ControllerContext) braked(ctx context.Context, t transport.Target) error {
	if t.Verb != "delete" && t.Verb != "deletecollection" || act.Counted(ctx) {
		return nil
	}
	_, err := cc.limits.Brake.Take(schema.GroupResource{Group: t.Group, Resource: t.Resource}, 1)
	return err
}
