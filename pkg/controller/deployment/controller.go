package deployment

import (
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	// Name is the controller's canonical name.
	Name = "deployment-controller"

	queue      = "deployment"
	maxRetries = 15
)

var (
	deploymentResource = schema.GroupResource{Group: appsv1.GroupName, Resource: "deployments"}
	replicaSetResource = schema.GroupResource{Group: appsv1.GroupName, Resource: "replicasets"}
)

// Options are the plain values a Controller runs with.
type Options struct {
	// Workers is how many Deployments are worked on at once.
	Workers int
	// TerminatingReplicas reports terminating pods in the status: the gate
	// DeploymentReplicaSetTerminatingReplicas.
	TerminatingReplicas bool
}

// Controller rolls out Deployments.
type Controller struct {
	*reconcile.Controller[types.NamespacedName]

	deployments appslisters.DeploymentLister
	setLister   appslisters.ReplicaSetLister
	sets        toolscache.Indexer
	pods        toolscache.Indexer
	reports     *pace.Pacer[types.NamespacedName] // when the next status is due that may wait
	selectors   *cache.Selectors
	terminating bool
}

// New returns the controller, which is not running yet.
func New(deployments appsinformers.DeploymentInformer, sets appsinformers.ReplicaSetInformer, pods coreinformers.PodInformer,
	hand reconcile.Hand, o Options) (*Controller, error) {
	if err := errors.Join(cache.Ensure(sets.Informer(), cache.ByController, cache.Orphans), cache.Ensure(pods.Informer(), cache.ByController)); err != nil {
		return nil, err
	}
	c := &Controller{
		deployments: deployments.Lister(), setLister: sets.Lister(),
		sets: sets.Informer().GetIndexer(), pods: pods.Informer().GetIndexer(),
		selectors: cache.NewSelectors(), terminating: o.TerminatingReplicas,
		reports: pace.New[types.NamespacedName](hand.Clock, pace.ReportShare, pace.LongestReport),
	}
	c.Controller = reconcile.New(reconcile.Options[types.NamespacedName]{
		Runner: runner.Options[types.NamespacedName]{
			Name: Name, Queue: queue, Workers: o.Workers, MaxRetries: maxRetries, Object: reconcile.ObjectIn[types.NamespacedName](deployments.Informer().GetStore()),
		},
		Caches: reconcile.Caches{deploymentResource: deployments.Informer().GetStore(), replicaSetResource: sets.Informer().GetStore()},
		Hand:   hand, Reports: c.reports,
	}, c.observe, plan)
	return c, c.watch(deployments.Informer(), sets.Informer(), pods.Informer())
}
