package resourceclaim

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1alpha2"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	controllerName = "resourceclaim-controller"
	queueName      = "resource_claim"
	// mostDeleted is how many deletions of pods are remembered, so that nobody needs to look
	// live whether they are gone.
	mostDeleted = 4096
)

// kind is what a key is about.
type kind string

const (
	ofPod   kind = "pod"
	ofClaim kind = "claim"
	ofGroup kind = "podgroup"
)

// key is a pod, a claim or a PodGroup.
type key struct {
	kind kind
	types.NamespacedName
}

// String is how the debug page names it: pod:namespace/name.
func (k key) String() string { return string(k.kind) + ":" + k.NamespacedName.String() }

// Caches are what the controller reads.
type Caches struct {
	Pods      coreinformers.PodInformer
	Claims    resourceinformers.ResourceClaimInformer
	Templates resourceinformers.ResourceClaimTemplateInformer
	// Groups is there where the gate for claims of PodGroups is on, and nil otherwise.
	Groups schedulinginformers.PodGroupInformer
}

// Options say how the controller runs.
type Options struct {
	// Workers is how many keys are worked on at once.
	Workers int
	// PrioritizedList: templates may have prioritized lists of requests.
	PrioritizedList bool
}

// Controller keeps the ResourceClaims of pods.
type Controller struct {
	*reconcile.Controller[key]
	pods, claims, groups toolscache.Indexer // groups is nil without the gate
	templates            toolscache.Store
	live                 client.Reader
	// deleted are the UIDs of pods and PodGroups with claims that were seen to be deleted.
	deleted         *lru.Cache
	prioritizedList bool
}

// New returns the controller, which is not running yet.
func New(in Caches, hand reconcile.Hand, o Options) (*Controller, error) {
	c := &Controller{
		pods: in.Pods.Informer().GetIndexer(), claims: in.Claims.Informer().GetIndexer(), templates: in.Templates.Informer().GetStore(),
		live: hand.Reader(), deleted: lru.New(mostDeleted), prioritizedList: o.PrioritizedList,
	}
	register(c.claims)
	caches := reconcile.Caches{corev1.Resource("pods"): c.pods, resourceapi.Resource("resourceclaims"): c.claims}
	if in.Groups != nil {
		c.groups = in.Groups.Informer().GetIndexer()
		caches[schedulingv1alpha2.Resource("podgroups")] = c.groups
	}
	c.Controller = reconcile.New(reconcile.Options[key]{
		Runner: runner.Options[key]{
			Name: controllerName, Queue: queueName, Workers: o.Workers,
			Namespace: func(k key) string { return k.Namespace }, Order: runner.Fair(func(k key) string { return k.Namespace }),
		},
		Hand: hand, Caches: caches,
	}, c.observe, plan)
	return c, errors.Join(
		cache.Ensure(in.Pods.Informer(), podsByClaim, podsByTemplate), cache.Ensure(in.Claims.Informer(), cache.ByController),
		runner.Watch(c.Runner, in.Pods.Informer(), c.podChanged),
		runner.Watch(c.Runner, in.Claims.Informer(), c.claimChanged),
		runner.Watch(c.Runner, in.Templates.Informer(), c.templateChanged),
		c.watchGroups(in))
}

// watchGroups follows PodGroups, where the gate is on.
func (c *Controller) watchGroups(in Caches) error {
	if in.Groups == nil {
		return nil
	}
	return errors.Join(cache.Ensure(in.Pods.Informer(), podsWithClaimsByGroup), cache.Ensure(in.Groups.Informer(), groupsByTemplate),
		runner.Watch(c.Runner, in.Groups.Informer(), c.groupChanged))
}

// observed is a pod, a claim or a PodGroup, with what is planned about it.
type observed interface{ plan() act.Plan }

func plan(o observed, _ time.Time) act.Plan { return o.plan() }
