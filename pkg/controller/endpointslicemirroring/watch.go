package endpointslicemirroring

//lint:file-ignore SA1019 the old API is what this controller mirrors

import (
	"errors"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

type wake = runner.Wake[types.NamespacedName]

func (c *Controller) watch(endpoints, services, slices toolscache.SharedInformer) error {
	return errors.Join(
		runner.Watch(c.Runner, endpoints, onEndpoints),
		runner.Watch(c.Runner, services, onService),
		runner.Watch(c.Runner, slices, c.onSlice),
	)
}

func onEndpoints(change runner.Change[corev1.Endpoints], w wake) {
	if change.Old != nil && leftOut(change.Old) == "" || change.New != nil && leftOut(change.New) == "" {
		w.Add(client.ObjectKeyFromObject(change.Now()))
	}
}

// onService wakes a name when a Service without a selector comes or goes, or when its
// selector does.
func onService(change runner.Change[corev1.Service], w wake) {
	had := change.Old != nil && len(change.Old.Spec.Selector) == 0
	has := change.New != nil && len(change.New.Spec.Selector) == 0
	if had != has {
		w.Add(client.ObjectKeyFromObject(change.Now()))
	}
}

// onSlice wakes the name of a slice of ours that somebody else has changed.
func (c *Controller) onSlice(change runner.Change[discoveryv1.EndpointSlice], w wake) {
	before, after := change.Old, change.New
	switch {
	case after == nil:
		expected := c.generations.Has(before) && c.generations.HandleDeletion(before)
		if held := before.DeletionTimestamp != nil; ours(before) && (!expected || held) { // none was made in place of one that was held
			c.later(before, w)
		}
	case before == nil:
		if ours(after) && c.generations.ShouldSync(after) {
			c.later(after, w)
		}
	case ours(before) != ours(after) || ours(after) && serviceOf(before) != serviceOf(after):
		c.later(before, w)
		if serviceOf(before) != serviceOf(after) {
			c.later(after, w)
		}
	case ours(after) && c.generations.ShouldSync(after):
		c.later(after, w)
	}
}

func (c *Controller) later(slice *discoveryv1.EndpointSlice, w wake) {
	if name := serviceOf(slice); name != "" {
		w.AddAfter(types.NamespacedName{Namespace: slice.Namespace, Name: name}, max(c.batchPeriod, 0))
	}
}

func ours(slice *discoveryv1.EndpointSlice) bool {
	return slice.Labels[discoveryv1.LabelManagedBy] == ManagedBy
}

func serviceOf(slice *discoveryv1.EndpointSlice) string {
	return slice.Labels[discoveryv1.LabelServiceName]
}
