package replicas

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/rejections"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// Observed is what the plan is made of.
type Observed struct {
	Set *Set
	// Form is that of the set's kind.
	Form Form
	// Claims are the pods that have not ended, by what has to become of them.
	Claims ownership.Claims[*corev1.Pod]
	// Terminating are the set's pods that have been asked to end.
	Terminating []*corev1.Pod
	// OnNode counts by node the active pods that the set and its siblings select. It
	// is only filled in when there may be too many pods, and empty without siblings.
	OnNode map[string]int
	// Allowance is what pods that kubelets rejected mean for the next ones; nil when
	// every pod is replaced at once.
	Allowance *rejections.Allowance
	// ByCost heeds the annotation pod-deletion-cost; CountTerminating reports pods
	// that are on their way out.
	ByCost, CountTerminating bool
}

// observe reads the set and its pods from the caches. Pods that have ended are
// neither counted nor claimed.
func (e *Engine) observe(_ context.Context, key Key) (Observed, error) {
	set, err := e.kind.Cached(key)
	if err != nil {
		return Observed{}, err
	}
	if set == nil {
		return Observed{}, reconcile.ErrAbsent
	}
	o := Observed{Set: set, Form: e.kind, ByCost: e.o.PodDeletionCost, CountTerminating: e.o.TerminatingReplicas}
	if set.Check() != nil {
		return o, nil
	}
	owned, err := cache.Controlled[corev1.Pod](e.pods, set.Object.GetNamespace(), set.Object.GetUID())
	if err != nil {
		return o, err
	}
	orphans, err := cache.Adoptable[corev1.Pod](e.pods, set.Object.GetNamespace(), set.Selector)
	if err != nil {
		return o, err
	}
	var active []*corev1.Pod
	for _, pod := range slices.Concat(owned, orphans) {
		switch {
		case pods.Active(pod):
			active = append(active, pod)
		case pods.Terminating(pod) && metav1.IsControlledBy(pod, set.Object) && set.Selector.Matches(labels.Set(pod.Labels)):
			o.Terminating = append(o.Terminating, pod)
		}
	}
	o.Claims = ownership.Claim(set.Object, set.Selector, active)
	if len(o.Claims.Owned)+len(o.Claims.Adopt) > set.Replicas {
		if o.OnNode, err = e.crowding(set); err != nil {
			return o, err
		}
	}
	if e.o.RejectedPodBackoff {
		allowance := rejections.AllowanceFor(slices.Concat(owned, o.Claims.Adopt), set.Replicas, e.Clock().Now())
		o.Allowance = &allowance
	}
	return o, nil
}

// crowding counts by node the active pods that the set selects and those that the sets
// select that share its controlling owner, as those of one Deployment do. A pod of
// somebody else that is selected has its place on the node too.
func (e *Engine) crowding(set *Set) (map[string]int, error) {
	siblings, err := e.kind.Siblings(set)
	if err != nil {
		return nil, err
	}
	onNode, counted := map[string]int{}, sets.New[types.UID]()
	for _, selector := range siblings {
		related, err := cache.Matching[corev1.Pod](e.pods, set.Object.GetNamespace(), selector)
		if err != nil {
			return nil, err
		}
		for _, pod := range related {
			if pods.Active(pod) && !counted.Has(pod.UID) {
				counted.Insert(pod.UID)
				onNode[pod.Spec.NodeName]++
			}
		}
	}
	return onNode, nil
}
