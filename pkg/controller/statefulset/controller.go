package statefulset

import (
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/revisions"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	// Name is the controller's canonical name.
	Name = "statefulset-controller"

	queue = "statefulset"
)

// Key names a StatefulSet.
type Key = types.NamespacedName

// Caches are what the controller reads.
type Caches struct {
	Sets      appsinformers.StatefulSetInformer
	Revisions appsinformers.ControllerRevisionInformer
	Pods      coreinformers.PodInformer
	Claims    coreinformers.PersistentVolumeClaimInformer
}

// Options are the plain values a Controller runs with.
type Options struct {
	// Workers is how many StatefulSets are worked on at once.
	Workers int
	// SemanticRevisions compares revisions by their meaning: the gate StatefulSetSemanticRevisionComparison.
	SemanticRevisions bool
	// MaxUnavailable heeds rollingUpdate.maxUnavailable: the gate MaxUnavailableStatefulSet.
	MaxUnavailable bool
	// RejectedPodBackoff replaces pods that kubelets reject at once ever more rarely (--rejected-pod-backoff).
	RejectedPodBackoff bool
}

// Controller runs StatefulSets.
type Controller struct {
	*reconcile.Controller[Key]
	o         Options
	sets      appslisters.StatefulSetLister
	pods      toolscache.Indexer
	claims    toolscache.Store
	past      toolscache.Indexer
	selectors *cache.Selectors
	// reports is when the next status is due that may wait.
	reports *pace.Pacer[Key]
}

// New returns a controller that is not running yet.
func New(caches Caches, hand reconcile.Hand, o Options) (*Controller, error) {
	registerMetrics(o.MaxUnavailable)
	sets, pods, claims, past := caches.Sets.Informer(), caches.Pods.Informer(), caches.Claims.Informer(), caches.Revisions.Informer()
	if err := errors.Join(cache.Ensure(pods, cache.ByController, cache.Orphans, cache.OrphansByLabel), cache.Ensure(past, revisions.Indexes()...)); err != nil {
		return nil, err
	}
	c := &Controller{
		o: o, sets: caches.Sets.Lister(), pods: pods.GetIndexer(), claims: claims.GetStore(), past: past.GetIndexer(), selectors: cache.NewSelectors(),
		reports: pace.New[Key](hand.Clock, pace.ReportShare, pace.LongestReport),
	}
	c.Controller = reconcile.New(reconcile.Options[Key]{
		Runner: runner.Options[Key]{
			Name: Name, Queue: queue, Workers: o.Workers,
			Pace: pace.New[Key](hand.Clock, pace.LookShare, pace.LongestLook), Synced: []toolscache.InformerSynced{past.HasSynced}, Object: reconcile.ObjectIn[Key](sets.GetStore()),
		},
		Caches: reconcile.Caches{
			appsv1.Resource("statefulsets"): sets.GetStore(), revisions.Resource: past.GetStore(),
			corev1.Resource("pods"): pods.GetStore(), corev1.Resource("persistentvolumeclaims"): claims.GetStore(),
		},
		Hand: hand, Reports: c.reports,
	}, c.observe, plan)
	return c, c.watch(sets, pods, claims)
}
