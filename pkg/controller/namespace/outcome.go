package namespace

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-kcm/kube-controller-manager/pkg/seconds"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// gcGrace is how many seconds objects with finalizers are thought to take.
const gcGrace = 15

// outcome is what one pass over the content of a namespace came to.
type outcome struct {
	// undiscovered is why discovery was not complete, and failing for how many
	// groups, zero if that is not known.
	undiscovered error
	failing      int
	// unparsed are the group versions that were not understood.
	unparsed []error
	// failed are the deletions and reads that failed. retry are those of them, and those that
	// were withheld, that the next pass tries again; the others are asked again for all
	// namespaces at once.
	failed, retry []error
	// remaining counts what is left by kind, and finalizers what holds it.
	remaining  map[schema.GroupVersionResource]int
	finalizers map[string]int
	// estimate is how many seconds what is left may take to go.
	estimate int64
	// podsFirst: other kinds have to wait for the pods.
	podsFirst bool
	// contradicted: a kind was answered as if it were not served.
	contradicted bool
}

// newOutcome begins with what is known to be in the way.
func newOutcome(f findings) *outcome {
	o := &outcome{remaining: map[schema.GroupVersionResource]int{}, finalizers: map[string]int{},
		undiscovered: f.known.incomplete, failing: len(f.known.failing), unparsed: f.known.unparsed}
	for _, failed := range f.unread {
		o.failed = append(o.failed, failed.err)
	}
	return o
}

// outcome is what a pass has come to so far.
func (e emptying) outcome(so act.Results) *outcome {
	o := newOutcome(e.found)
	for _, r := range e.pods {
		_, unread := e.found.unread[r.gvr]
		failed := len(o.failed)
		if _, held := e.found.held[r.gvr]; held {
			o.take(e.live.Name, e.came(r, so))
		}
		o.podsFirst = unread || o.contradicted || len(o.remaining) > 0 || len(o.failed) > failed
	}
	if o.podsFirst {
		return o
	}
	for _, r := range e.rest {
		if _, held := e.found.held[r.gvr]; held {
			o.take(e.live.Name, e.came(r, so))
		} else if e.unlisted(r) {
			o.add(r, remainder{}, deletionErr(about(r, so)))
		}
	}
	return o
}

// take takes in what came of one kind. One that does not answer is left to the probes.
func (o *outcome) take(namespace string, c came) {
	left, err := remainderOf(namespace, c.resource, c.tally)
	switch {
	case c.silent():
		o.failed = append(o.failed, naming(c.gvr, c.err))
	case c.unserved():
		o.contradicted = true
	case c.err == nil, withheld(c.err):
		o.add(c.resource, left, cmp.Or(c.err, err))
	default: // what is left is not known
		o.add(c.resource, remainder{}, c.err)
	}
}

// add takes in what is left of one kind, and why, if something went wrong. What was
// withheld is no failure: it is left until its turn, and is one at least.
func (o *outcome) add(r resource, left remainder, err error) {
	switch {
	case withheld(err):
		o.retry = append(o.retry, err)
		left.count = max(left.count, 1)
	case err != nil:
		o.failed, o.retry = append(o.failed, err), append(o.retry, err)
	}
	if left.count > 0 {
		o.remaining[r.gvr] = left.count
	}
	for finalizer, n := range left.finalizers {
		o.finalizers[finalizer] += n
	}
	o.estimate = max(o.estimate, left.estimate)
}

// empty reports whether nothing is left, for sure.
func (o *outcome) empty() bool {
	return o.undiscovered == nil && len(o.unparsed) == 0 && len(o.failed) == 0 && len(o.remaining) == 0 && o.estimate == 0
}

// wait is when to look again at what takes its time: half of the estimate, but
// no later than the resync, if there is one.
func (o *outcome) wait(resync time.Duration) time.Duration {
	wait := seconds.Of(o.estimate/2 + 1)
	if resync > 0 {
		wait = min(wait, resync)
	}
	return wait
}

// why says what is in the way.
func (o *outcome) why() string {
	objects := 0
	for _, n := range o.remaining {
		objects += n
	}
	why := fmt.Sprintf("%d objects of %d kinds are left", objects, len(o.remaining))
	if objects > 0 {
		why += ": " + o.left()
	}
	if o.podsFirst {
		why += ", pods before all else"
	}
	if len(o.failed) > 0 {
		why += fmt.Sprintf("; %d kinds cannot be read or deleted", len(o.failed))
	}
	if o.undiscovered != nil || len(o.unparsed) > 0 {
		why += "; discovery is not complete"
	}
	return why
}

// mostNamed is how many kinds, and how many finalizers, a reason names.
const mostNamed = 5

// left names the kinds with the most objects left, and the finalizers that hold most of them.
func (o *outcome) left() string {
	kinds := map[string]int{}
	for gvr, n := range o.remaining {
		kinds[gvr.GroupResource().String()] = n
	}
	if len(o.finalizers) == 0 {
		return mostOf(kinds)
	}
	return mostOf(kinds) + ", held by the finalizers " + mostOf(o.finalizers)
}

func mostOf(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var words []string
	for _, name := range names[:min(len(names), mostNamed)] {
		words = append(words, fmt.Sprintf("%s (%d)", name, counts[name]))
	}
	if more := len(names) - mostNamed; more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(words, ", ")
}

// remainder is what a list shows after the deletion of one kind.
type remainder struct {
	count      int
	finalizers map[string]int
	estimate   int64
}

// remainderOf is what is left of a kind. What has neither a grace period that may
// still run nor a finalizer should be gone, so that it is an error too if it is not.
func remainderOf(namespace string, r resource, t tally) (remainder, error) {
	left := remainder{count: t.count, finalizers: t.finalizers, estimate: t.grace}
	switch {
	case t.count == 0:
		left.estimate = 0
	case t.grace > 0:
	case len(left.finalizers) > 0:
		left.estimate = gcGrace
	default:
		return left, fmt.Errorf("unexpected items still remain in namespace: %s for gvr: %v", namespace, r.gvr)
	}
	return left, nil
}

// longestGrace is the longest grace period of pods that have not ended, in seconds.
func longestGrace(pods []corev1.Pod) int64 {
	var longest int64
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.Spec.TerminationGracePeriodSeconds == nil {
			continue
		}
		longest = max(longest, *pod.Spec.TerminationGracePeriodSeconds)
	}
	return longest
}

// graceLeft is the longest grace period of pods, none once the namespace has been
// terminating for that long.
func graceLeft(longest int64, deleted, now time.Time) int64 {
	if now.Sub(deleted) >= seconds.Of(longest) {
		return 0
	}
	return longest
}

// needDeleting reports whether a deletion changes anything: for an object that is
// not being deleted, or waits for its dependents as a background deletion does not.
func needDeleting(o metav1.Object) bool {
	return o.GetDeletionTimestamp() == nil ||
		slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents) ||
		slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents)
}

// podsOf takes the pods out of the kinds, because they go first: what they use,
// policies and secrets among it, must outlive them.
func podsOf(resources []resource) (pods, rest []resource) {
	for _, r := range resources {
		if r.gvr == podResource {
			pods = append(pods, r)
			continue
		}
		rest = append(rest, r)
	}
	return pods, rest
}

var podResource = corev1.SchemeGroupVersion.WithResource("pods")

func describeDiscovery(err error, failing int) string {
	if failing > 0 {
		return fmt.Sprintf("Discovery failed for some groups, %d failing: %v", failing, err)
	}
	return err.Error()
}

func describeFailures(errs []error) string {
	return fmt.Sprintf("Failed to delete all resource types, %d remaining: %s", len(errs), joined(errs))
}

func describeRemaining(remaining map[schema.GroupVersionResource]int) string {
	parts := make([]string, 0, len(remaining))
	for gvr, n := range remaining {
		parts = append(parts, fmt.Sprintf("%s.%s has %d resource instances", gvr.Resource, gvr.Group, n))
	}
	slices.Sort(parts)
	return "Some resources are remaining: " + strings.Join(parts, ", ")
}

func describeFinalizers(finalizers map[string]int) string {
	parts := make([]string, 0, len(finalizers))
	for finalizer, n := range finalizers {
		parts = append(parts, fmt.Sprintf("%s in %d resource instances", finalizer, n))
	}
	slices.Sort(parts)
	return "Some content in the namespace has finalizers remaining: " + strings.Join(parts, ", ")
}

func joined(errs []error) string {
	texts := make([]string, 0, len(errs))
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

func compareResources(a, b schema.GroupVersionResource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Resource, b.Resource))
}
