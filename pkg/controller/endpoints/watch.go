package endpoints

//lint:file-ignore SA1019 the old API is what this controller keeps

import (
	"errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/services"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// wake queues keys of this controller.
type wake = runner.Wake[types.NamespacedName]

func (c *Controller) watch(serviceInformer, podInformer, endpointsInformer toolscache.SharedIndexInformer) error {
	return errors.Join(
		cache.Ensure(serviceInformer, services.BySelector),
		cache.Ensure(podInformer, cache.ByLabel),
		runner.Watch(c.Runner, serviceInformer, c.onService),
		runner.Watch(c.Runner, podInformer, c.onPod),
		runner.Watch(c.Runner, endpointsInformer, c.onEndpoints),
	)
}

func (c *Controller) onService(change runner.Change[corev1.Service], w wake) {
	services.WakeItself(change, c.spacing.AtOnce(w))
}

func (c *Controller) onPod(change runner.Change[corev1.Pod], w wake) {
	services.WakeTouched(c.services, c.batchPeriod, c.spacing, change, w)
}

// onEndpoints restores Endpoints of a Service that were deleted and looks once at all that
// were there at the start: their Service may have gone while nobody watched. It looks at
// those of a creation whose answer was lost, too, if the Service went before they were
// seen. A leader-election record never had a Service, and deleting it would unseat the
// leader.
func (c *Controller) onEndpoints(change runner.Change[corev1.Endpoints], w wake) {
	endpoints := change.Now()
	key := types.NamespacedName{Namespace: endpoints.Namespace, Name: endpoints.Name}
	_, elects := endpoints.Annotations[resourcelock.LeaderElectionRecordAnnotationKey]
	_, served, err := c.services.GetByKey(key.String())
	late := change.Old == nil && c.unanswered.seen(key, c.spacing.Now()) && endpoints.Labels[LabelManagedBy] == ManagedBy
	if change.New == nil && (served || err != nil) || (change.Initial || late && !served) && !elects {
		c.spacing.AtOnce(w).Add(key)
	}
}
