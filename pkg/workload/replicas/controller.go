package replicas

import (
	corev1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// Options say how an engine runs.
type Options struct {
	// Name is the controller's canonical name, Queue the name of its work queue.
	Name, Queue string
	// Workers is how many sets are reconciled at once.
	Workers int
	// TerminatingReplicas reports pods that are on their way out.
	TerminatingReplicas bool
	// PodDeletionCost heeds the annotation controller.kubernetes.io/pod-deletion-cost.
	PodDeletionCost bool
	// RejectedPodBackoff replaces pods that kubelets reject at once ever more
	// rarely, in place of at once.
	RejectedPodBackoff bool
}

// Engine reconciles the sets of one kind.
type Engine struct {
	*reconcile.Controller[Key]
	o    Options
	kind Kind
	sets toolscache.Store
	pods toolscache.Indexer
	// reports is when the next status is due that may wait.
	reports *pace.Pacer[Key]
}

// New returns an engine that watches pods. The caller adds the watch of its
// kind with WatchSets.
func New(kind Kind, sets toolscache.SharedIndexInformer, podInformer coreinformers.PodInformer, hand reconcile.Hand, o Options) (*Engine, error) {
	registerMetrics()
	informer := podInformer.Informer()
	if err := cache.Ensure(informer, cache.ByController, cache.ByLabel, cache.Orphans, cache.OrphansByLabel); err != nil {
		return nil, err
	}
	e := &Engine{
		o: o, kind: kind, sets: sets.GetStore(), pods: informer.GetIndexer(),
		reports: pace.New[Key](hand.Clock, pace.ReportShare, pace.LongestReport),
	}
	e.Controller = reconcile.New(reconcile.Options[Key]{
		Runner: runner.Options[Key]{
			Name: o.Name, Queue: o.Queue, Workers: o.Workers, OnHeld: onHeld(kind),
			Pace: pace.New[Key](hand.Clock, pace.LookShare, pace.LongestLook), Object: reconcile.ObjectIn[Key](e.sets),
		},
		Caches: reconcile.Caches{corev1.Resource("pods"): informer.GetStore(), kind.Resource(): sets.GetStore()},
		Hand:   hand, Reports: e.reports,
	}, e.observe, plan)
	return e, runner.Watch(e.Runner, informer, e.podChanged)
}
