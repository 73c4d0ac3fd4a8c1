package namespace

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	// readers is how many kinds are read at once.
	readers = 5
	// readTimeout is how long a page may take. What takes longer, as an API does
	// whose server is silent, is looked for again like any that fails.
	readTimeout = 15 * time.Second
)

// survey is shown at the debug endpoint.
type survey struct {
	Namespaces   int               `json:"namespaces"`
	Kinds        int               `json:"kinds"`
	Lists        int               `json:"lists"`
	Undiscovered string            `json:"undiscovered,omitempty"`
	Unread       map[string]string `json:"unread,omitempty"`
}

// look reads kinds for all namespaces at once and wakes those that can go on.
// The first look at a namespace is at everything; another one is at what could
// not be read, no more often than the pause between probes allows, and recurs
// while that keeps a namespace.
func (c *Controller) look(ctx context.Context, first bool) runner.Result {
	l := c.waiting.begin(first, c.library.latest.Load())
	if len(l.waiters) == 0 {
		return runner.Done()
	}
	oldest := c.clock.Now()
	if !first {
		oldest = oldest.Add(-fresh)
	}
	c.readErrands(ctx, l, oldest)
	l.ended = c.clock.Now()
	wake, blocked := c.waiting.end(l, c.library.latest.Load())
	for _, name := range wake {
		c.Add(name)
	}
	shown := survey{Namespaces: len(l.waiters), Kinds: len(l.known.resources), Lists: len(l.errands), Unread: c.waiting.unread()}
	if !l.known.whole() {
		shown.Undiscovered = l.known.troubles()
	}
	if blocked {
		c.probe()
	}
	return runner.Done().Because(shown)
}

// probe has what could not be read looked at again, as soon as anything of it may be.
func (c *Controller) probe() {
	wait := c.waiting.next(c.clock.Now())
	if discovery := c.library.next(); discovery > 0 {
		wait = min(wait, discovery)
	}
	c.AddAfter(probeKey, wait)
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
			l.readings[i] = nothingRead(e, errNotRead)
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
	if err := c.waiting.claim(r, c.clock.Now()); err != nil {
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
	if c.waiting.note(r, err, c.clock.Now()) {
		logger := klog.FromContext(ctx).WithValues("resource", r.GroupResource())
		if err != nil {
			logger.Info("Cannot be read, namespaces may have to wait for it", "err", err)
		} else {
			logger.Info("Can be read again")
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
	got = nothingRead(e, errNotRead)
	held := make(map[string]tally, len(e.namespaces))
	for _, name := range e.namespaces {
		held[name] = tally{}
	}
	options := metav1.ListOptions{Limit: limit}
	for pages := 1; ; pages++ {
		found, err := c.page(ctx, "", e.resource, options)
		if err != nil {
			return got, false, err
		}
		for i := range found.Items {
			if t, ok := held[found.Items[i].Namespace]; ok {
				t.add(&found.Items[i])
				held[found.Items[i].Namespace] = t
			}
		}
		if found.Continue == "" {
			return allRead(held), true, nil
		}
		if !readOn(len(e.namespaces), pages, found.RemainingItemCount) {
			return got, false, nil
		}
		options.Continue, options.Limit = found.Continue, pageSize
	}
}

// readEach lists a kind in one namespace after the other, up to the first that fails.
func (c *Controller) readEach(ctx context.Context, e errand) (reading, error) {
	got := nothingRead(e, errNotRead)
	for _, name := range e.namespaces {
		t, err := c.tally(ctx, name, e.resource)
		if err != nil {
			got.unread[name] = failure{err: err, at: c.clock.Now()}
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
	t := tally{}
	count := func(o *metav1.PartialObjectMetadata) error {
		t.add(o)
		return nil
	}
	err := c.each(ctx, namespace, r, pageSize, count)
	if apierrors.IsResourceExpired(err) {
		t = tally{}
		err = c.each(ctx, namespace, r, 0, count)
	}
	return t, err
}

// each calls do for every object of a kind in a namespace, page by page.
func (c *Controller) each(ctx context.Context, namespace string, r resource, limit int64, do func(*metav1.PartialObjectMetadata) error) error {
	options := metav1.ListOptions{Limit: limit}
	for {
		found, err := c.page(ctx, namespace, r, options)
		if err != nil {
			return err
		}
		for i := range found.Items {
			if err := do(&found.Items[i]); err != nil {
				return err
			}
		}
		if found.Continue == "" {
			return nil
		}
		options.Continue = found.Continue
	}
}

// page makes one request.
func (c *Controller) page(ctx context.Context, namespace string, r resource, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return c.metadata.Resource(r.gvr).Namespace(namespace).List(ctx, options)
}

// answers reports whether a kind can be listed, as far as is known.
func (c *Controller) answers(r resource) bool {
	_, err := c.page(context.Background(), "", r, metav1.ListOptions{Limit: 1})
	return !unserved(err)
}
