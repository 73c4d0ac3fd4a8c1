package deployment

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
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
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
	// TerminatingReplicas reports terminating pods in the status: the gate
	// DeploymentReplicaSetTerminatingReplicas.
	TerminatingReplicas bool
}

// Controller rolls out Deployments.
type Controller struct {
	*runner.Runner[types.NamespacedName]

	deployments appslisters.DeploymentLister
	setLister   appslisters.ReplicaSetLister
	sets        toolscache.Indexer
	pods        toolscache.Indexer
	client      kubernetes.Interface
	recorder    record.EventRecorder
	writes      *consistency.Tracker[types.NamespacedName]
	pace        *pace.Pacer[types.NamespacedName]
	selectors   *cache.Selectors
	clock       clock.PassiveClock
	terminating bool
}

// New returns the controller, which is not running yet.
func New(deployments appsinformers.DeploymentInformer, sets appsinformers.ReplicaSetInformer, pods coreinformers.PodInformer,
	client kubernetes.Interface, recorder record.EventRecorder, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if err := cache.Ensure(sets.Informer(), cache.ByController, cache.Orphans); err != nil {
		return nil, err
	}
	if err := cache.Ensure(pods.Informer(), cache.ByController); err != nil {
		return nil, err
	}
	c := &Controller{
		deployments: deployments.Lister(), setLister: sets.Lister(),
		sets: sets.Informer().GetIndexer(), pods: pods.Informer().GetIndexer(),
		client: client, recorder: recorder, clock: o.Clock, selectors: cache.NewSelectors(), pace: pace.New[types.NamespacedName](o.Clock, pace.ReportShare, pace.LongestReport), terminating: o.TerminatingReplicas,
		writes: consistency.NewTracker[types.NamespacedName](map[schema.GroupResource]consistency.Store{
			deploymentResource: deployments.Informer().GetStore(),
			replicaSetResource: sets.Informer().GetStore(),
		}),
	}
	c.Runner = runner.New(runner.Options[types.NamespacedName]{
		Name: Name, Queue: queue, Workers: o.Workers, Clock: o.Clock, MaxRetries: maxRetries, Writes: c.writes,
		Events: recorder, Object: c.object,
	}, c.sync)
	return c, c.watch(deployments.Informer(), sets.Informer(), pods.Informer())
}

// object is what an event about the key is about; nil when it is gone.
func (c *Controller) object(key types.NamespacedName) runtime.Object {
	d, err := c.deployments.Deployments(key.Namespace).Get(key.Name)
	if err != nil {
		return nil
	}
	return d
}

// sync brings one Deployment a step further.
func (c *Controller) sync(ctx context.Context, key types.NamespacedName) runner.Result {
	d, err := c.deployments.Deployments(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.writes.Forget(key)
		return runner.Done()
	}
	if err != nil {
		return runner.Done(fmt.Errorf("read deployment %s: %w", key, err))
	}
	w, result, ok := c.observe(ctx, key, d)
	if !ok {
		return result
	}
	p := decide(w, c.clock.Now())
	if p.refused != nil {
		return runner.GiveUp(p.refused)
	}
	return c.apply(ctx, key, d, p).Because(p.explain())
}

// observe reads what the decision needs, and settles first which ReplicaSets
// are the Deployment's. When it cannot, the result says why.
func (c *Controller) observe(ctx context.Context, key types.NamespacedName, d *appsv1.Deployment) (world, runner.Result, bool) {
	w := world{deployment: d, countTerminating: c.terminating}
	if selectsAll(d) {
		return w, runner.Result{}, true
	}
	selector, err := c.selectors.Of(d, d.Spec.Selector)
	if err != nil {
		return w, runner.GiveUp(fmt.Errorf("deployment %s has an invalid label selector: %w", key, err)), false
	}
	if w.sets, err = c.claim(ctx, key, d, selector); err != nil {
		return w, runner.Done(err), false
	}
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		if w.oldPods, err = c.podsOfOld(d, selector, w.sets); err != nil {
			return w, runner.Done(err), false
		}
	}
	return w, runner.Result{}, true
}

// podsOfOld finds the pods of all sets but the new one.
func (c *Controller) podsOfOld(d *appsv1.Deployment, selector labels.Selector, sets []*appsv1.ReplicaSet) (map[types.UID][]*corev1.Pod, error) {
	_, old := divide(d, sets)
	found := make(map[types.UID][]*corev1.Pod, len(old))
	for _, set := range old {
		pods, err := cache.Lookup[corev1.Pod](c.pods, cache.ByController, string(set.UID))
		if err != nil {
			return nil, err
		}
		for _, pod := range pods {
			if selector.Matches(labels.Set(pod.Labels)) {
				found[set.UID] = append(found[set.UID], pod)
			}
		}
	}
	return found, nil
}
