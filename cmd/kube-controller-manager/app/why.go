package app

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/election"
	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/why"
)

// explainer answers questions about objects from the caches of the terms that this
// process leads, and from what its controllers remember.
type explainer struct {
	*why.World
	process *process
	// elections has what is known of the lease; nil without leader election.
	elections atomic.Pointer[election.Elections]
	nodes     whereabouts

	mu    sync.Mutex
	terms []*explained
}

// explained is a term as far as questions need it.
type explained struct {
	since  time.Time
	served func() *why.Kinds
	paused func(controller, namespace string) string
	caches func(why.Kind) []why.Cache
}

func newExplainer(p *process) *explainer {
	e := &explainer{process: p, nodes: whereabouts{client: p.Client}}
	e.World = &why.World{
		Now: time.Now, Process: e.self, Kinds: e.kinds, Caches: e.caches, Works: worksOn, Running: e.running,
	}
	return e
}

// explain lets questions see the caches of the term until it is closed.
func (cc ControllerContext) explain() {
	e := cc.process.why
	t := &explained{since: cc.Clock.Now(), served: cc.served.Load, paused: cc.paused, caches: cc.cachesOf()}
	e.mu.Lock()
	e.terms = append(e.terms, t)
	e.mu.Unlock()
	cc.term.onClose(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.terms = slices.DeleteFunc(e.terms, func(other *explained) bool { return other == t })
	})
}

// cachesOf returns what finds the caches of the term that hold objects of a kind: the
// shared one, or that of metadata, and those that one controller has narrowed for itself.
func (cc ControllerContext) cachesOf() func(why.Kind) []why.Cache {
	shared := startedIn(cc.caches, false)
	var narrow []func(why.Kind) (why.Cache, bool)
	for _, factory := range *cc.narrow {
		narrow = append(narrow, startedIn(factory, true))
	}
	return func(kind why.Kind) (all []why.Cache) {
		if found, ok := shared(kind); ok {
			all = append(all, found)
		} else if indexer, state, ok := cc.monitors.Cached(kind.GroupResource()); ok {
			all = append(all, why.Cache{Indexer: indexer, Synced: state.Listed})
		}
		for _, of := range narrow {
			if found, ok := of(kind); ok {
				all = append(all, found)
			}
		}
		return all
	}
}

// startedIn returns what finds a cache of a factory whose caches have just been started.
func startedIn(factory *cache.Factory, part bool) func(why.Kind) (why.Cache, bool) {
	started := factory.AskedKinds()
	return func(kind why.Kind) (why.Cache, bool) {
		informer, ok := started[kind.GroupKind]
		if !ok {
			return why.Cache{}, false
		}
		return why.Cache{Indexer: informer.GetIndexer(), Synced: informer.HasSynced(), Part: part}, true
	}
}

// discovers asks what is served.
type discovers = func() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)

// noting lets questions be about what each look at discovery finds.
func (cc ControllerContext) noting(discover discovers) discovers {
	return func() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
		groups, lists, err := discover()
		if len(lists) > 0 {
			kinds := why.KindsOf(lists)
			if err != nil {
				kinds.Keep(cc.served.Load())
			}
			cc.served.Store(kinds)
		}
		return groups, lists, err
	}
}

func (e *explainer) led() []*explained {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.terms)
}

// self is who answers.
func (e *explainer) self() why.Process {
	p := why.Process{Leading: e.process.leads(), Shadow: e.process.shadow != nil}
	for _, t := range e.led() {
		if p.Since.IsZero() || t.since.Before(p.Since) {
			p.Since = t.since.UTC()
		}
	}
	elections := e.elections.Load()
	if elections == nil {
		return p
	}
	lease := e.process.mainLease()
	p.Identity, p.Leader = elections.Identity(), elections.Holder(lease)
	p.Leading = p.Leading || p.Leader == p.Identity
	if err := elections.Failing(lease); err != nil {
		p.LeaseError = err.Error()
	}
	if p.Leader != "" {
		p.LeaderAt = election.Host(p.Leader)
	}
	if p.Leader != "" && !p.Leading {
		p.LeaderAddress = e.nodes.address(p.LeaderAt)
	}
	return p
}

func (e *explainer) kinds() *why.Kinds {
	terms := e.led()
	if len(terms) == 0 {
		return nil
	}
	return terms[0].served()
}

func (e *explainer) caches(kind why.Kind) (all []why.Cache) {
	for _, t := range e.led() {
		all = append(all, t.caches(kind)...)
	}
	return all
}

func (e *explainer) running(controller, namespace string) why.Running {
	state, handler := e.process.debug.Find(controller)
	loop, _ := handler.(why.Loop)
	running := why.Running{Controller: state, Loop: loop}
	for _, t := range e.led() {
		running.Paused = cmp.Or(running.Paused, t.paused(controller, namespace))
	}
	return running
}
