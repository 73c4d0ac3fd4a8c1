package podgroupprotection

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1alpha2"
	"k8s.io/client-go/kubernetes"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1alpha2"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name  = "podgroup-protection-controller"
	queue = "podgroupprotection"
)

var podGroupResource = schedulingv1alpha2.Resource("podgroups")

// podsByGroup finds pods by the namespace/name of the group that they name.
var podsByGroup = cache.NewIndex("podGroup", func(object any) ([]string, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		if group, ok := groupOf(pod); ok {
			return []string{group.String()}, nil
		}
	}
	return nil, nil
})

type key = types.NamespacedName

// Options are the settings of the controller.
type Options struct {
	// Workers is how many groups are worked on at once; 1 by default.
	Workers int
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// Controller protects PodGroups; its keys are their names.
type Controller struct {
	*runner.Runner[key]
	groups schedulinglisters.PodGroupLister
	pods   toolscache.Indexer
	client kubernetes.Interface
	writes *consistency.Tracker[key]
}

// New returns the controller, which is not running yet.
func New(groups schedulinginformers.PodGroupInformer, pods coreinformers.PodInformer, client kubernetes.Interface, o Options) (*Controller, error) {
	if err := cache.Ensure(pods.Informer(), podsByGroup); err != nil {
		return nil, err
	}
	c := &Controller{
		groups: groups.Lister(), pods: pods.Informer().GetIndexer(), client: client,
		writes: consistency.NewTracker[key](map[schema.GroupResource]consistency.Store{
			podGroupResource: groups.Informer().GetStore(),
		}),
	}
	c.Runner = runner.New(runner.Options[key]{Name: name, Queue: queue, Workers: o.Workers, Clock: o.Clock, Writes: c.writes}, c.sync)
	err := runner.Watch(c.Runner, groups.Informer(), func(change runner.Change[schedulingv1alpha2.PodGroup], wake runner.Wake[key]) {
		if group := change.New; group != nil && group.DeletionTimestamp != nil {
			wake.Add(key{Namespace: group.Namespace, Name: group.Name})
		}
	})
	if err != nil {
		return nil, err
	}
	return c, runner.Watch(c.Runner, pods.Informer(), func(change runner.Change[corev1.Pod], wake runner.Wake[key]) {
		if !waking(change.Old, change.New) {
			return
		}
		if group, ok := groupOf(change.Old); ok {
			wake.Add(group)
		}
	})
}

func (c *Controller) sync(ctx context.Context, k key) runner.Result {
	group, pods, err := c.observe(k)
	if err != nil {
		return runner.Done(err)
	}
	if group == nil {
		c.writes.Forget(k)
	}
	do := decide(group, pods)
	return runner.Done(c.apply(ctx, k, do)).Because(do)
}

func (c *Controller) observe(k key) (*schedulingv1alpha2.PodGroup, []*corev1.Pod, error) {
	group, err := c.groups.PodGroups(k.Namespace).Get(k.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("get pod group %s: %w", k, err)
	}
	pods, err := cache.Lookup[corev1.Pod](c.pods, podsByGroup, k.String())
	return group, pods, err
}
