package monitor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
)

const (
	// DefaultPeriod is how often discovery is read, as the original does.
	DefaultPeriod = 30 * time.Second
	// closely is how often states are looked at while not all is well.
	closely = time.Second
)

// Options say what a Set works with; all but Period and Clock are required.
type Options struct {
	// Discover reads groups and resources; groups that fail are in a
	// discovery.ErrGroupDiscoveryFailed.
	Discover func() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
	// Metadata reads objects as metadata.
	Metadata metadata.Interface
	// Whole returns the running cache of a resource that some controller holds
	// whole. It is indexed by namespace, and Hear was called for it.
	Whole func(Resource) (cache.SharedIndexInformer, bool)
	// Reads knows when whole caches were read; without it only a change shows that
	// one can be read again.
	Reads *Reads
	// Period is how often discovery is read; DefaultPeriod by default.
	Period time.Duration
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// Set watches the resources that its followers want.
type Set struct {
	o         Options
	followers []*Followed
	poked     chan struct{}
	// unserved holds the last known objects of resources that are no longer served. They are
	// not reported as missing: the API may be registered again. Only Run uses it.
	unserved map[schema.GroupResource][]metav1.Object

	mu         sync.Mutex
	discovered time.Time // when discovery was read first
	catalog    catalog
	watches    map[schema.GroupResource]*resourceWatch
	heard      map[cache.SharedIndexInformer]*health
}

// New returns a Set that is not running yet.
func New(o Options) *Set {
	if o.Period == 0 {
		o.Period = DefaultPeriod
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Set{o: o, poked: make(chan struct{}, 1), unserved: map[schema.GroupResource][]metav1.Object{},
		watches: map[schema.GroupResource]*resourceWatch{}, heard: map[cache.SharedIndexInformer]*health{}}
}

// Follow adds a follower; it is called before Run.
func (s *Set) Follow(i Interest) *Followed {
	f := &Followed{set: s, interest: i}
	s.followers = append(s.followers, f)
	return f
}

// Run follows discovery until ctx ends, then ends all watches.
func (s *Set) Run(ctx context.Context) {
	if len(s.followers) == 0 {
		return
	}
	defer s.stop()
	last, again := s.o.Clock.Now(), closely
	next := last
	for ctx.Err() == nil {
		if now := s.o.Clock.Now(); !now.Before(next) {
			last, again = now, min(2*again, s.o.Period)
			next = now.Add(s.look(ctx))
		}
		well, absent := s.settle(ctx)
		switch soon := last.Add(again); {
		case !absent:
			again = closely
		case soon.Before(next):
			next = soon // it holds up others until discovery says that it is gone
		}
		wait := next.Sub(s.o.Clock.Now())
		if !well {
			wait = min(wait, closely)
		}
		timer := s.o.Clock.NewTimer(wait)
		select {
		case <-timer.C():
		case <-s.poked:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// poke makes Run look at the states.
func (s *Set) poke() {
	select {
	case s.poked <- struct{}{}:
	default:
	}
}

// served is what the API server says it serves.
type served struct {
	groups []*metav1.APIGroup
	lists  []*metav1.APIResourceList
}

// look reads discovery, begins and ends watches, and returns how long to wait
// for the next look.
func (s *Set) look(ctx context.Context) time.Duration {
	logger := klog.FromContext(ctx)
	served, err := transport.Within(ctx, func() (served, error) {
		groups, lists, err := s.o.Discover()
		return served{groups, lists}, err
	})
	if ctx.Err() != nil {
		return s.o.Period // a stop does not wait for an API server that is slow
	}
	var partly *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partly) {
		logger.Info("Cannot discover the resources that the API server serves", "err", err)
		if !s.ready() {
			return closely
		}
		return s.o.Period
	}
	failed := map[schema.GroupVersion]error{}
	if partly != nil {
		failed = partly.Groups
	}
	found := s.confirm(ctx, newCatalog(served.groups, served.lists, failed).after(s.catalog))
	groupsChanged := s.logGroups(logger, found.failed)
	changed := s.follow(ctx, found)
	s.mu.Lock()
	s.catalog = found
	if s.discovered.IsZero() {
		s.discovered = s.o.Clock.Now()
	}
	s.mu.Unlock()
	for id := range changed {
		logger.V(1).Info("The served resources changed", "resource", id, "served", found.resources[id].Kind != "")
	}
	s.call(slices.Collect(maps.Values(changed)))
	if groupsChanged {
		s.callAll()
	}
	return s.o.Period
}

func (s *Set) ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.discovered.IsZero()
}

// logGroups logs which groups began or ceased to fail, and reports whether any did.
func (s *Set) logGroups(logger klog.Logger, failed map[schema.GroupVersion]error) (changed bool) {
	for version, err := range failed {
		if s.catalog.failed[version] == nil {
			logger.Info("Cannot discover an API; keeping what is known of it", "api", version, "err", err)
			changed = true
		}
	}
	for version := range s.catalog.failed {
		if failed[version] == nil {
			logger.Info("An API can be discovered again", "api", version)
			changed = true
		}
	}
	return changed
}

// callAll calls everybody: what could not be discovered may concern anyone.
func (s *Set) callAll() {
	for _, f := range s.followers {
		if f.interest.Served != nil {
			f.interest.Served()
		}
	}
}

// follow begins and ends watches so that they are those of the catalog, and
// returns the resources that came or went.
func (s *Set) follow(ctx context.Context, found catalog) map[schema.GroupResource]Resource {
	changed := map[schema.GroupResource]Resource{}
	for _, resource := range found.sorted() {
		wanted := s.wanted(resource)
		id := resource.GroupResource()
		old := s.find(id)
		if len(wanted) == 0 || old != nil && same(old.resource, resource) && !more(wanted, old.wanted) {
			continue
		}
		w, err := s.watch(ctx, resource, wanted)
		if err != nil {
			klog.FromContext(ctx).Error(err, "A resource cannot be watched", "resource", resource.GroupVersionResource)
			continue
		}
		if old != nil {
			old.stop()
			showState(State{Resource: old.resource}) // it may have been another version
			w.before = append(old.before, old.objects()...)
		} else {
			w.before = s.unserved[id]
			delete(s.unserved, id)
		}
		s.mu.Lock()
		s.watches[id] = w
		s.mu.Unlock()
		changed[id] = resource
	}
	for id, w := range s.all() {
		if _, served := found.resources[id]; served {
			continue
		}
		s.mu.Lock()
		delete(s.watches, id)
		s.mu.Unlock()
		w.stop()
		showState(State{Resource: w.resource})
		s.unserved[id] = append(w.before, w.objects()...)
		changed[id] = w.resource
	}
	return changed
}

// same reports whether a watch goes on. A definition may come back with another scope.
func same(a, b Resource) bool {
	return a.GroupVersionResource == b.GroupVersionResource && a.Kind == b.Kind && a.Namespaced == b.Namespaced
}

// more reports whether somebody wants a resource who did not before: a definition that is
// being deleted lacks verbs, and may come back. Who wants it no more still hears of it.
func more(now, before []Interest) bool {
	return slices.ContainsFunc(now, func(i Interest) bool {
		return !slices.ContainsFunc(before, func(b Interest) bool { return b.Name == i.Name })
	})
}

// wanted are the interests in a resource.
func (s *Set) wanted(r Resource) []Interest {
	var wanted []Interest
	for _, f := range s.followers {
		if f.interest.Wants(r) {
			wanted = append(wanted, f.interest)
		}
	}
	return wanted
}

func (s *Set) find(id schema.GroupResource) *resourceWatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches[id]
}

func (s *Set) all() map[schema.GroupResource]*resourceWatch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.watches)
}

func (s *Set) stop() {
	for _, w := range s.all() {
		w.stop()
		showState(State{Resource: w.resource})
	}
}
