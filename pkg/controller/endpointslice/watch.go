package endpointslice

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/services"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// sliceDelay is the least time between a change of a slice by someone else and
// the sync that repairs it: two writers do not chase each other faster.
const sliceDelay = time.Second

// wake queues keys of this controller.
type wake = runner.Wake[types.NamespacedName]

func (c *Controller) watch(serviceInformer, podInformer, nodeInformer, sliceInformer toolscache.SharedIndexInformer) error {
	return errors.Join(
		cache.Ensure(serviceInformer, services.BySelector),
		cache.Ensure(podInformer, cache.ByLabel),
		cache.Ensure(sliceInformer, cache.ByLabel),
		runner.Watch(c.Runner, serviceInformer, c.onService),
		runner.Watch(c.Runner, podInformer, c.onPod),
		runner.Watch(c.Runner, nodeInformer, c.onNode),
		runner.Watch(c.Runner, sliceInformer, c.onSlice),
	)
}

func (c *Controller) onService(change runner.Change[corev1.Service], w wake) {
	services.WakeItself(change, c.spacing.AtOnce(w))
}

func (c *Controller) onPod(change runner.Change[corev1.Pod], w wake) {
	services.WakeTouched(c.serviceIdx, c.batchPeriod, c.spacing, change, w)
}

// onNode wakes the topology when the node counts for hints in another way. The
// nodes of the first list are loaded before the first Service.
func (c *Controller) onNode(change runner.Change[corev1.Node], w wake) {
	if !change.Initial && capacityOf(change.Old) != capacityOf(change.New) {
		w.Add(nodesKey)
	}
}

// onSlice wakes the Service of a slice that someone else changed. The slices of
// the first list wake none: every Service is queued then.
func (c *Controller) onSlice(change runner.Change[discoveryv1.EndpointSlice], w wake) {
	if change.Initial {
		return
	}
	w = c.spacing.AtOnce(w)
	delay := max(sliceDelay, c.batchPeriod)
	before, after := change.Old, change.New
	switch {
	case after == nil:
		if c.reconciler.ManagedByController(before) && c.lost(before) {
			wakeServiceOf(before, w, delay)
		}
	case before != nil && serviceNameOf(before) != serviceNameOf(after):
		wakeServiceOf(before, w, delay)
		wakeServiceOf(after, w, delay)
	case before != nil && before.ResourceVersion == after.ResourceVersion:
		// A resync says nothing new.
	case before != nil && c.reconciler.ManagedByChanged(before, after),
		c.reconciler.ManagedByController(after) && c.generations.ShouldSync(after):
		wakeServiceOf(after, w, delay)
	}
}

// lost reports whether a deleted slice was not deleted by this controller.
func (c *Controller) lost(slice *discoveryv1.EndpointSlice) bool {
	return !c.generations.Has(slice) || !c.generations.HandleDeletion(slice)
}

func wakeServiceOf(slice *discoveryv1.EndpointSlice, w wake, delay time.Duration) {
	if name := serviceNameOf(slice); name != "" {
		w.AddAfter(types.NamespacedName{Namespace: slice.Namespace, Name: name}, delay)
	}
}

func serviceNameOf(slice *discoveryv1.EndpointSlice) string {
	return slice.Labels[discoveryv1.LabelServiceName]
}
