package namespace

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// pageSize is how many objects a list returns at once.
	pageSize = 500
	// listWorth is how many objects cost about as much as a request, and
	// pageWorth how many lists of a namespace, most of them empty, a page does.
	listWorth = 60
	pageWorth = pageSize / listWorth

	// What cannot be read is asked again after firstProbe, then after a quarter of the
	// time that it has failed, for the whole process; no less often than every
	// probeEvery, and after longTrouble every probeSlowly.
	firstProbe  = 100 * time.Millisecond
	probeEvery  = 5 * time.Second
	longTrouble = 5 * time.Minute
	probeSlowly = 15 * time.Second
)

// tally is what a list shows of one kind in one namespace.
type tally struct {
	count int
	// open counts the objects that a deletion would change.
	open       int
	finalizers map[string]int
	// grace is the longest grace period of pods, in seconds.
	grace int64
}

func (t *tally) add(o metav1.Object) {
	t.count++
	if needDeleting(o) {
		t.open++
	}
	for _, finalizer := range o.GetFinalizers() {
		if t.finalizers == nil {
			t.finalizers = map[string]int{}
		}
		t.finalizers[finalizer]++
	}
}

func (t *tally) addAll(page *metav1.PartialObjectMetadataList) {
	for i := range page.Items {
		t.add(&page.Items[i])
	}
}

// errand is one kind to be read for some namespaces.
type errand struct {
	resource   resource
	namespaces []string
}

// reading is what came of an errand: what the namespaces hold, those without
// any left out, and why some could not be read.
type reading struct {
	held   map[string]tally
	unread map[string]failure
	// unserved: the answer was that nothing is served there.
	unserved bool
}

// failure is why a kind could not be read for a namespace.
type failure struct {
	err error
	// at is when the read for this very namespace failed; zero when it was that of another.
	at time.Time
	// doubted: discovery is to be asked whether the kind is served at all.
	doubted bool
}

var errNotRead = errors.New("not read yet")

// nothingRead is the reading of an errand that nobody ran.
func nothingRead(e errand, err error) reading {
	r := reading{held: map[string]tally{}, unread: map[string]failure{}}
	for _, name := range e.namespaces {
		r.unread[name] = failure{err: err}
	}
	return r
}

// allRead is the reading of an errand when nothing failed, by what the namespaces hold
// that hold anything.
func allRead(held map[string]tally) reading { return reading{held: held} }

// wholesale reports whether to begin with a list of the cluster in place of one of
// each namespace, and how many objects of it are no loss if there are too many.
func wholesale(namespaces int) (limit int64, ok bool) {
	return int64(min(namespaces*listWorth, pageSize)), namespaces > 1
}

// readOn reports after some pages of the cluster's objects whether the rest is
// still cheaper than a list of each namespace. A server need not say how much
// remains; then as much again as has been read is thought likely.
func readOn(namespaces, pages int, remaining *int64) bool {
	rest := pages
	if remaining != nil {
		rest = int((*remaining + pageSize - 1) / pageSize)
	}
	return rest*pageWorth <= namespaces
}

// unreachable distinguishes errors of a server that does not answer from those of one
// that answers for some objects only, as with a broken conversion.
func unreachable(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	switch status.Status().Code {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests:
		return true
	}
	return false
}

// unserved reports whether the answer is that a collection is not served in this
// way, or not at all. It is about this request: a server that has just begun, or
// one of several that does not know of a kind yet, answers so too.
func unserved(err error) bool {
	return apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err)
}

// naming makes an error say which API it is about, if it does not.
func naming(r schema.GroupVersionResource, err error) error {
	about := r.Group
	if about == "" {
		about = r.Resource
	}
	if strings.Contains(err.Error(), about) {
		return err
	}
	return fmt.Errorf("%s: %w", r.GroupResource(), err)
}

// pause is how long to wait, after it was asked last, until what fails since then
// is asked again.
func pause(since, last time.Time) time.Duration {
	failing := last.Sub(since)
	if failing > longTrouble {
		return probeSlowly
	}
	return min(max(failing/4, firstProbe), probeEvery)
}
