package namespace

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

const (
	// readers is how many kinds are read at once.
	readers = 5
	// readTimeout is how long a page may take. What takes longer, as an API does
	// whose server is silent, is looked for again like any that fails.
	readTimeout = 15 * time.Second
)

// observe reads what is known of a namespace, and the namespace itself live when
// something is to be done about it; or makes the look of a key for many.
func (c *Controller) observe(ctx context.Context, key string) (observed, error) {
	if key == surveyKey || key == probeKey {
		return observed{looked: c.look(ctx, key == surveyKey)}, nil
	}
	cached, err := reconcile.Cached[corev1.Namespace](c.namespaces, key)
	if err != nil || !terminating(cached) {
		c.waiting.forget(key)
		return observed{}, err
	}
	if left := c.waiting.settling(key, cached.UID, c.Clock().Now()); left > 0 {
		return observed{cached: cached, settling: left}, nil
	}
	if c.waiting.doubts(key) {
		c.waiting.settle(key, c.library.since(c.Clock().Now()))
	}
	if c.waiting.loseSilent(key, c.Clock().Now()) {
		c.probe()
	}
	o := observed{cached: cached, resync: c.resync}
	o.found, o.surveyed = c.waiting.find(key, cached.UID, c.library.latest.Load())
	if !o.surveyed || o.found.stale(c.Clock().Now()) {
		return o, nil
	}
	o.live, err = c.confirm(ctx, cached)
	return o, err
}

// confirm returns the live namespace if it is to be emptied. The cache alone is
// not enough: a new namespace may have taken the name.
func (c *Controller) confirm(ctx context.Context, cached *corev1.Namespace) (*corev1.Namespace, error) {
	live, err := reconcile.Live[corev1.Namespace](ctx, c.live, client.ObjectKeyFromObject(cached))
	switch {
	case err != nil:
		return nil, fmt.Errorf("get namespace %s: %w", cached.Name, err)
	case live == nil || live.UID != cached.UID || !terminating(live):
		return nil, nil
	}
	return live, nil
}

// looked is what a look at many namespaces came to.
type looked struct {
	namespaces, kinds, lists int
	undiscovered             string
	unread                   map[string]string
	// wake are the namespaces that can go on; blocked: something keeps one of them.
	wake    []string
	blocked bool
}

func (l *looked) String() string {
	why := fmt.Sprintf("%d kinds of %d were listed for %d namespaces; %d can go on", l.lists, l.kinds, l.namespaces, len(l.wake))
	if l.undiscovered != "" {
		why += "; not discovered: " + l.undiscovered
	}
	for _, kind := range slices.Sorted(maps.Keys(l.unread)) {
		why += fmt.Sprintf("; %s cannot be read: %s", kind, l.unread[kind])
	}
	return why
}

// look reads kinds for all namespaces at once and names those that can go on.
// The first look at a namespace is at everything; another one is at what could
// not be read, no more often than the pause between probes allows, and recurs
// while that keeps a namespace.
func (c *Controller) look(ctx context.Context, first bool) *looked {
	l := c.waiting.begin(first, c.library.latest.Load())
	if len(l.waiters) == 0 {
		return &looked{}
	}
	oldest := c.Clock().Now()
	if !first {
		oldest = oldest.Add(-fresh)
	}
	c.readErrands(ctx, l, oldest)
	l.ended = c.Clock().Now()
	came := &looked{namespaces: len(l.waiters), kinds: len(l.known.resources), lists: len(l.errands), unread: c.waiting.unread()}
	came.wake, came.blocked = c.waiting.end(l, c.library.latest.Load())
	if !l.known.whole() {
		came.undiscovered = l.known.troubles()
	}
	return came
}

// readErrands makes the errands of a look and runs them. If a list that discovery
// offers is not served, it asks discovery again, and then once more for the list.
func (c *Controller) readErrands(ctx context.Context, l *look, oldest time.Time) {
	type report struct {
		errand
		reading
	}
	done := map[schema.GroupVersionResource]report{}
	for _, last := range []bool{false, true} {
		l.known = c.library.since(oldest)
		l.errands = c.waiting.missing(l)
		l.readings = make([]reading, len(l.errands))
		for i, e := range l.errands {
			if earlier, ok := done[e.resource.gvr]; ok {
				l.errands[i], l.readings[i] = earlier.errand, earlier.reading
			}
		}
		workqueue.ParallelizeUntil(ctx, c.readers, len(l.errands), func(i int) {
			if _, ok := done[l.errands[i].resource.gvr]; !ok {
				l.readings[i] = c.read(ctx, l.errands[i], last)
			}
		})
		contradicted := false
		for i, e := range l.errands {
			if l.readings[i].held == nil { // it ended before its turn
				l.readings[i] = nothingRead(e, errNotRead)
			}
			if l.readings[i].unserved {
				contradicted = true
				continue
			}
			done[e.resource.gvr] = report{e, l.readings[i]}
		}
		if !contradicted {
			return
		}
		c.library.doubt()
	}
}

// read runs one errand, unless the kind has failed a moment ago. That a list is
// not served is a failure only the last time.
func (c *Controller) read(ctx context.Context, e errand, last bool) reading {
	r := e.resource.gvr
	if err := c.waiting.claim(r, c.Clock().Now()); err != nil {
		return nothingRead(e, err)
	}
	got, err := c.readAll(ctx, e)
	got.unserved = unserved(err)
	if got.unserved && !last {
		return got
	}
	if err != nil {
		err = naming(r, err)
		for name, failed := range got.unread {
			failed.err = err
			got.unread[name] = failed
		}
	}
	if c.waiting.note(r, err, c.Clock().Now()) {
		logger := klog.FromContext(ctx).WithValues("resource", r.GroupResource())
		if err != nil {
			logger.Info("Cannot list this resource; namespaces may have to wait for it", "err", err)
		} else {
			logger.Info("This resource can be listed again")
		}
	}
	return got
}

// readAll reads the whole cluster's objects of a kind where that is better than
// those of each namespace.
func (c *Controller) readAll(ctx context.Context, e errand) (reading, error) {
	if limit, ok := wholesale(len(e.namespaces)); ok && !c.waiting.partly(e.resource.gvr) {
		got, done, err := c.readCluster(ctx, e, limit)
		if done || err != nil && unreachable(err) {
			return got, err
		}
	}
	return c.readEach(ctx, e)
}

// readCluster lists a kind in the whole cluster. It gives up, and is not done,
// when that turns out to be more than the lists of each namespace.
func (c *Controller) readCluster(ctx context.Context, e errand, limit int64) (got reading, done bool, err error) {
	asked, held := sets.New(e.namespaces...), map[string]tally{}
	next := ""
	for pages := 1; ; pages++ {
		found, err := c.page(ctx, "", e.resource, limit, next)
		if err != nil {
			return nothingRead(e, errNotRead), false, err
		}
		for i := range found.Items {
			if name := found.Items[i].Namespace; asked.Has(name) {
				t := held[name]
				t.add(&found.Items[i])
				held[name] = t
			}
		}
		if found.Continue == "" {
			return allRead(held), true, nil
		}
		if !readOn(len(e.namespaces), pages, found.RemainingItemCount) {
			return reading{}, false, nil
		}
		next, limit = found.Continue, pageSize
	}
}

// readEach lists a kind in one namespace after the other, up to the first that fails.
func (c *Controller) readEach(ctx context.Context, e errand) (reading, error) {
	got := nothingRead(e, errNotRead)
	for _, name := range e.namespaces {
		t, err := c.tally(ctx, name, e.resource)
		if err != nil {
			got.unread[name] = failure{err: err, at: c.Clock().Now()}
			return got, err
		}
		delete(got.unread, name)
		if t.count > 0 {
			got.held[name] = t
		}
	}
	return got, nil
}

// tally counts the objects of a kind in a namespace. A list that expires between
// two pages is made again in one piece.
func (c *Controller) tally(ctx context.Context, namespace string, r resource) (tally, error) {
	t, err := c.count(ctx, namespace, r, pageSize)
	if apierrors.IsResourceExpired(err) {
		return c.count(ctx, namespace, r, 0)
	}
	return t, err
}

// count counts them page by page.
func (c *Controller) count(ctx context.Context, namespace string, r resource, limit int64) (t tally, err error) {
	for next := ""; ; {
		found, err := c.page(ctx, namespace, r, limit, next)
		if err != nil {
			return t, err
		}
		t.addAll(found)
		if next = found.Continue; next == "" {
			return t, nil
		}
	}
}

// page makes one request.
func (c *Controller) page(ctx context.Context, namespace string, r resource, limit int64, next string) (*metav1.PartialObjectMetadataList, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	found := act.ListOf(r.gvr)
	return found, c.live.List(ctx, found, &client.ListOptions{Namespace: namespace, Limit: limit, Continue: next})
}

// answers reports whether a kind can be listed, as far as is known.
func (c *Controller) answers(r resource) bool {
	_, err := c.page(context.Background(), "", r, 1, "")
	return !unserved(err)
}
