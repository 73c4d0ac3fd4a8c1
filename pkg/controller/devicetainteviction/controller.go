package devicetainteviction

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	ruleinformers "k8s.io/client-go/informers/resource/v1beta2"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// Name is the controller's canonical name, the source of its events and the manager of
// the fields that it applies.
const Name = "device-taint-eviction-controller"

type key = types.NamespacedName

// Informers are the caches that the controller reads.
type Informers struct {
	Pods   coreinformers.PodInformer
	Claims resourceinformers.ResourceClaimInformer
	Slices resourceinformers.ResourceSliceInformer
	// Rules is nil when DeviceTaintRules evict nobody.
	Rules ruleinformers.DeviceTaintRuleInformer
}

// Options are the controller's settings.
type Options struct {
	// Workers is how many pods are worked on at once.
	Workers int
	// PodGroups is the gate DRAWorkloadResourceClaims: a claim may be reserved for the
	// group of a pod.
	PodGroups bool
}

// Controller is the device-taint-eviction-controller.
type Controller struct {
	*runner.Group
	podLoop  *reconcile.Controller[key]
	ruleLoop *reconcile.Controller[string] // nil without rules

	podGroups bool
	pods      toolscache.Indexer
	claims    toolscache.Indexer
	slices    toolscache.Indexer
	rules     toolscache.Store // nil without rules
	memory    *memory
}

// New returns the controller, which is not running yet. The events of its hand are to
// carry Name as their source.
func New(in Informers, hand reconcile.Hand, o Options) (*Controller, error) {
	registerMetrics()
	pods, claims, slices := in.Pods.Informer(), in.Claims.Informer(), in.Slices.Informer()
	err := errors.Join(cache.Ensure(pods, podsByDeviceClaim), cache.Ensure(claims, claimsByPool), cache.Ensure(slices, slicesByPool))
	if err != nil {
		return nil, fmt.Errorf("index what uses devices: %w", err)
	}
	c := &Controller{
		podGroups: o.PodGroups, memory: newMemory(),
		pods: pods.GetIndexer(), claims: claims.GetIndexer(), slices: slices.GetIndexer(),
	}
	podOptions := runner.Options[key]{Name: Name, Queue: Name, Workers: o.Workers}
	if in.Rules != nil {
		podOptions.Synced = append(podOptions.Synced, in.Rules.Informer().HasSynced)
	}
	c.podLoop = reconcile.New(reconcile.Options[key]{
		Runner: podOptions, Hand: hand, Note: c.rememberPod,
		Caches: reconcile.Caches{corev1.Resource("pods"): pods.GetStore()},
	}, c.observe, plan)
	err = errors.Join(
		runner.Watch(c.podLoop.Runner, pods, c.wakePod),
		runner.Watch(c.podLoop.Runner, claims, c.wakeForClaim),
		runner.Watch(c.podLoop.Runner, slices, c.wakeForSlice))
	if in.Rules == nil {
		c.Group = runner.NewGroup(Name, c.podLoop)
		return c, err
	}
	c.rules = in.Rules.Informer().GetStore()
	c.ruleLoop = reconcile.New(reconcile.Options[string]{
		Runner: runner.Options[string]{Name: Name + "-rules", Queue: Name, Synced: []toolscache.InformerSynced{pods.HasSynced, claims.HasSynced, slices.HasSynced}},
		Hand:   hand, Name: Name, Note: c.rememberRule,
		Caches: reconcile.Caches{resourcev1beta2.Resource("devicetaintrules"): c.rules},
	}, c.observeRule, planRule)
	c.Group = runner.NewGroup(Name, c.podLoop, c.ruleLoop)
	return c, errors.Join(err, runner.Watch(c.ruleLoop.Runner, in.Rules.Informer(), wakeRule))
}

// rememberPod keeps what was decided of a pod. The rules that it concerns report it later.
func (c *Controller) rememberPod(k key, what any) {
	for _, rule := range c.memory.book(k, what.(*appointment)) {
		if c.ruleLoop != nil {
			c.ruleLoop.AddAfter(rule, reportInterval)
		}
	}
}

// rememberRule has the pods looked at for which a rule has changed.
func (c *Controller) rememberRule(name string, what any) {
	o := what.(observedRule)
	if o.rule == nil {
		c.memory.forget(name)
	} else {
		c.memory.looked(name, o.rule.UID, o.rule.Generation)
	}
	for _, pod := range o.woken {
		c.podLoop.Add(pod)
	}
}

// wakePod wakes a pod with devices when its node, its claims or their names change, when
// it is deleted, and when it is gone and was to be deleted.
func (c *Controller) wakePod(change runner.Change[corev1.Pod], wake runner.Wake[key]) {
	pod := change.Now()
	k := client.ObjectKeyFromObject(pod)
	switch before := change.Old; {
	case change.New == nil:
		if c.memory.appointmentOf(k) == nil {
			return
		}
	case !pods.UsesDevices(pod):
		return
	case before != nil && before.UID == pod.UID && before.Spec.NodeName == pod.Spec.NodeName &&
		(before.DeletionTimestamp == nil) == (pod.DeletionTimestamp == nil) &&
		apiequality.Semantic.DeepEqual(before.Status.ResourceClaimStatuses, pod.Status.ResourceClaimStatuses) &&
		apiequality.Semantic.DeepEqual(before.Status.ExtendedResourceClaimStatus, pod.Status.ExtendedResourceClaimStatus):
		return
	}
	wake.Add(k)
}

// wakeForClaim wakes the pods that use a claim whose devices or reservations change.
func (c *Controller) wakeForClaim(change runner.Change[resourcev1.ResourceClaim], wake runner.Wake[key]) {
	before, after := change.Old, change.New
	if change.Initial || before != nil && after != nil && before.UID == after.UID &&
		apiequality.Semantic.DeepEqual(before.Status.Allocation, after.Status.Allocation) &&
		apiequality.Semantic.DeepEqual(before.Status.ReservedFor, after.Status.ReservedFor) &&
		apiequality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) {
		return
	}
	c.wakeUsers(change.Now(), wake)
}

func (c *Controller) wakeUsers(claim *resourcev1.ResourceClaim, wake runner.Wake[key]) {
	pods, err := c.podsOf(claim)
	if err != nil {
		return // the index is there: New has made it
	}
	for _, pod := range pods {
		wake.Add(client.ObjectKeyFromObject(pod))
	}
}

// wakeForSlice wakes the pods that use devices of a pool whose taints may change.
func (c *Controller) wakeForSlice(change runner.Change[resourcev1.ResourceSlice], wake runner.Wake[key]) {
	before, after := change.Old, change.New
	if change.Initial || before != nil && after != nil && before.UID == after.UID && before.ResourceVersion == after.ResourceVersion {
		return
	}
	pools := map[string]bool{}
	for _, slice := range []*resourcev1.ResourceSlice{before, after} {
		if slice != nil {
			pools[poolOf(slice.Spec.Driver, slice.Spec.Pool.Name)] = true
		}
	}
	for pool := range pools {
		if !c.mayTaint(pool, before, after) {
			continue
		}
		claims, err := cache.Lookup[resourcev1.ResourceClaim](c.claims, claimsByPool, pool)
		if err != nil {
			return
		}
		for _, claim := range claims {
			c.wakeUsers(claim, wake)
		}
	}
}

// mayTaint reports whether any slice of the pool has or had a NoExecute taint.
func (c *Controller) mayTaint(pool string, changed ...*resourcev1.ResourceSlice) bool {
	slices, err := cache.Lookup[resourcev1.ResourceSlice](c.slices, slicesByPool, pool)
	for _, slice := range append(slices, changed...) {
		if slice != nil && tainting(slice) {
			return true
		}
	}
	return err != nil
}

// wakeRule wakes a rule that is new or gone, or whose spec has changed.
func wakeRule(change runner.Change[resourcev1beta2.DeviceTaintRule], wake runner.Wake[string]) {
	before, after := change.Old, change.New
	if before != nil && after != nil && before.UID == after.UID && before.Generation == after.Generation {
		return
	}
	wake.Add(change.Now().Name)
}
