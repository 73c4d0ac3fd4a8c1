package replicationcontroller

import (
	corev1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/replicas"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// Names of the controller and its queue.
const (
	controllerName = "replicationcontroller-controller"
	queueName      = "replicationmanager"
)

// Options say how the controller runs. Name and Queue are set here.
type Options = replicas.Options

// Controller keeps the pods of ReplicationControllers.
type Controller = replicas.Engine

// New returns a controller that is not running yet. A ReplicationController is
// woken by its own changes, by those of its pods, and by pods that it could adopt.
func New(sets coreinformers.ReplicationControllerInformer, pods coreinformers.PodInformer, hand reconcile.Hand, o Options) (*Controller, error) {
	informer := sets.Informer()
	if err := cache.Ensure(informer, cache.ByController, cache.BySelector); err != nil {
		return nil, err
	}
	o.Name, o.Queue = controllerName, queueName
	engine, err := replicas.New(kind{informer.GetIndexer()}, informer, pods, hand, o)
	if err != nil {
		return nil, err
	}
	return engine, replicas.WatchSets[corev1.ReplicationController](engine, informer)
}
