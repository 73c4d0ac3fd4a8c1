package replicationcontroller

import (
	corev1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/replicas"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// Names of the controller and its queue.
const (
	controllerName = "replicationcontroller-controller"
	queueName      = "replicationmanager"
)

// Options say how the controller runs.
type Options struct {
	// Workers is how many ReplicationControllers are reconciled at once (--concurrent-rc-syncs).
	Workers int
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
	// PodDeletionCost heeds the annotation of that name (gate PodDeletionCost).
	PodDeletionCost bool
	// RejectedPodBackoff replaces pods that kubelets reject at once ever more rarely (--rejected-pod-backoff).
	RejectedPodBackoff bool
}

// Controller keeps the pods of ReplicationControllers.
type Controller struct {
	*replicas.Engine
}

// New returns a controller that is not running yet. A ReplicationController is
// woken by its own changes, by those of its pods, and by pods that it could adopt.
func New(sets coreinformers.ReplicationControllerInformer, pods coreinformers.PodInformer, hand reconcile.Hand, o Options) (*Controller, error) {
	informer := sets.Informer()
	if err := cache.Ensure(informer, cache.ByController, cache.BySelector); err != nil {
		return nil, err
	}
	engine, err := replicas.New(kind{informer.GetIndexer()}, informer, pods, hand, replicas.Options{
		Name: controllerName, Queue: queueName, Workers: o.Workers, Clock: o.Clock, PodDeletionCost: o.PodDeletionCost,
		RejectedPodBackoff: o.RejectedPodBackoff,
	})
	if err != nil {
		return nil, err
	}
	return &Controller{engine}, replicas.WatchSets[corev1.ReplicationController](engine, informer)
}
