package consistency

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

var (
	conflict = apierrors.NewConflict(pods, "a", errors.New("admission webhook denied the request"))
	notFound = apierrors.NewNotFound(pods, "a")
)

// foreign is an answer that is not the API server's own.
func foreign(code int) error {
	return apierrors.NewGenericServerResponse(code, "post", pods, "a", "<html>", 0, true)
}

func onWire(err error) error { return &url.Error{Op: "Post", URL: "https://server", Err: err} }

func TestOutcomeUnknown(t *testing.T) {
	for name, tc := range map[string]struct {
		err     error
		unknown bool
	}{
		"no error":                            {nil, false},
		"forbidden":                           {apierrors.NewForbidden(pods, "a", errors.New("quota")), false},
		"conflict":                            {conflict, false},
		"already exists":                      {apierrors.NewAlreadyExists(pods, "a"), false},
		"invalid":                             {apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "a", nil), false},
		"bad request":                         {apierrors.NewBadRequest("x"), false},
		"too many requests of the API server": {apierrors.NewTooManyRequests("later", 1), false},
		"too many requests, as plain text":    {foreign(429), false},
		"connection refused":                  {onWire(syscall.ECONNREFUSED), false},
		"wrapped":                             {fmt.Errorf("create: %w", conflict), false},

		"a proxy's 404":               {foreign(404), true},
		"request timeout":             {apierrors.NewGenericServerResponse(http.StatusRequestTimeout, "post", pods, "a", "", 0, false), true},
		"timeout":                     {apierrors.NewTimeoutError("no answer", 1), true},
		"server timeout":              {apierrors.NewServerTimeout(pods, "post", 1), true},
		"internal error":              {apierrors.NewInternalError(errors.New("x")), true},
		"etcd":                        {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: "etcdserver: request timed out"}}, true},
		"bad gateway":                 {foreign(502), true},
		"unavailable":                 {apierrors.NewServiceUnavailable("x"), true},
		"gateway timeout":             {foreign(504), true},
		"stream reset":                {onWire(errors.New("stream error: stream ID 1; INTERNAL_ERROR")), true},
		"connection reset":            {onWire(syscall.ECONNRESET), true},
		"broken pipe":                 {onWire(syscall.EPIPE), true},
		"cut before the answer":       {onWire(io.EOF), true},
		"cut body":                    {io.ErrUnexpectedEOF, true},
		"connection lost":             {onWire(errors.New("http2: client connection lost")), true},
		"server sent GOAWAY":          {onWire(errors.New("http2: server sent GOAWAY and closed the connection")), true},
		"own deadline":                {context.DeadlineExceeded, true},
		"stopped":                     {context.Canceled, true},
		"an answer that does not fit": {errors.New("couldn't decode"), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := OutcomeUnknown(tc.err); got != tc.unknown {
				t.Errorf("unknown %t: %v", got, tc.err)
			}
		})
	}
}

// rig is a tracker with a cache, a clock and an API server.
type rig struct {
	*Tracker[string]
	clock  *clocktesting.FakePassiveClock
	cached cache.Store
	server []metav1.PartialObjectMetadata
	at     string
	down   error
	reads  int
}

func newRig(t *testing.T, cached ...*metav1.PartialObjectMetadata) *rig {
	t.Helper()
	r := &rig{clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)), cached: cache.NewStore(cache.MetaNamespaceKeyFunc), at: "100"}
	for _, o := range cached {
		if err := r.cached.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	r.Tracker = NewTracker[string](map[schema.GroupResource]Store{pods: r.cached})
	r.SetClock(r.clock)
	r.LookLive(func(_ context.Context, _ schema.GroupResource, _ string, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		r.reads++
		return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: r.at}, Items: r.server}, r.down
	})
	return r
}

func (r *rig) step(d time.Duration) { r.clock.SetTime(r.clock.Now().Add(d)) }

func TestDeleteAnswered(t *testing.T) {
	for name, tc := range map[string]struct {
		answer, down error
		live         []metav1.PartialObjectMetadata
		want         Deletion
		failed       bool
		held         bool
	}{
		"agreed":                                     {answer: nil, want: Deleted, held: true},
		"not found, and gone":                        {answer: notFound, want: WasGone, held: true},
		"not found, and there":                       {answer: notFound, live: []metav1.PartialObjectMetadata{*object("a", "1", "9")}, failed: true},
		"refused with a conflict, and there":         {answer: conflict, live: []metav1.PartialObjectMetadata{*object("a", "1", "12")}, failed: true},
		"conflict with another of its name":          {answer: conflict, live: []metav1.PartialObjectMetadata{*object("a", "2", "12")}, want: WasGone, held: true},
		"conflict with one that is on its way out":   {answer: conflict, live: []metav1.PartialObjectMetadata{*leaving(object("a", "1", "12"))}, want: WasGone, held: true},
		"conflict, and the live read fails":          {answer: conflict, down: errors.New("down"), failed: true},
		"forbidden":                                  {answer: apierrors.NewForbidden(pods, "a", nil), failed: true},
		"the answer was lost":                        {answer: io.ErrUnexpectedEOF, failed: true, held: true},
		"the API server has an error in the storage": {answer: apierrors.NewInternalError(io.EOF), failed: true, held: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, object("a", "1", "9"))
			r.server, r.down = tc.live, tc.down
			got, err := r.DeleteAnswered(t.Context(), "k", pods, object("a", "1", "9"), tc.answer)
			if got != tc.want || (err != nil) != tc.failed {
				t.Errorf("got %v, %v", got, err)
			}
			if tc.failed && !errors.Is(err, tc.answer) {
				t.Errorf("the error %v lacks the answer", err)
			}
			if held := len(r.Behind("k")) > 0; held != tc.held {
				t.Errorf("held %t", held)
			}
		})
	}
}

func TestStill(t *testing.T) {
	for name, tc := range map[string]struct {
		refusal, down error
		live          []metav1.PartialObjectMetadata
		want          string
		failed        bool
		leaving       string // as which version it is there all the same
	}{
		"there, as it is now":      {refusal: conflict, live: []metav1.PartialObjectMetadata{*object("a", "1", "12")}, want: "12"},
		"not found, and there":     {refusal: notFound, live: []metav1.PartialObjectMetadata{*object("a", "1", "9")}, want: "9"},
		"gone":                     {refusal: notFound},
		"another of its name":      {refusal: conflict, live: []metav1.PartialObjectMetadata{*object("a", "2", "12")}},
		"on its way out":           {refusal: conflict, live: []metav1.PartialObjectMetadata{*leaving(object("a", "1", "12"))}, leaving: "12"},
		"the live read fails":      {refusal: conflict, down: errors.New("down"), failed: true},
		"the live read is refused": {refusal: notFound, down: notFound, failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, object("a", "1", "9"))
			r.server, r.down = tc.live, tc.down
			got := ""
			live, err := r.Still(t.Context(), pods, object("a", "1", "9"), tc.refusal)
			if live != nil {
				got = live.GetResourceVersion()
			}
			if got != tc.want || (err != nil) != tc.failed || tc.failed && !errors.Is(err, tc.refusal) {
				t.Errorf("got %q, %v", got, err)
			}
			there, err := r.There(t.Context(), pods, object("a", "1", "9"), tc.refusal)
			if got = tc.want + tc.leaving; there == nil && got != "" || there != nil && there.GetResourceVersion() != got || (err != nil) != tc.failed {
				t.Errorf("there is %v, %v", there, err)
			}
		})
	}
}

func TestLookFor(t *testing.T) {
	of := func(owner types.UID, version string) metav1.PartialObjectMetadata {
		o := object("a", "1", version)
		o.OwnerReferences = []metav1.OwnerReference{{UID: owner, Controller: ptr.To(true)}}
		return *o
	}
	for name, tc := range map[string]struct {
		live   []metav1.PartialObjectMetadata
		down   error
		unseen bool
	}{
		"there is nothing":                  {},
		"the caches show it":                {live: []metav1.PartialObjectMetadata{of("owner", "9")}},
		"the caches do not show it":         {live: []metav1.PartialObjectMetadata{of("owner", "12")}, unseen: true},
		"what others own is not looked for": {live: []metav1.PartialObjectMetadata{of("other", "12"), *object("b", "2", "13")}},
		"the live read fails":               {down: errors.New("down")},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, object("a", "1", "9"))
			r.server, r.down = tc.live, tc.down
			unseen, err := r.LookFor(t.Context(), "k", pods, &metav1.ObjectMeta{UID: "owner"}, "app=web")
			if unseen != tc.unseen || !errors.Is(err, tc.down) || r.reads != 1 {
				t.Errorf("unseen: %t, %v", unseen, err)
			}
			if held := len(r.Behind("k")) > 0; held != tc.unseen {
				t.Errorf("held: %t", held)
			}
		})
	}
}

func TestWhatHasVanishedIsWaitedFor(t *testing.T) {
	onItsWay := leaving(object("a", "1", "9"))
	for name, tc := range map[string]struct {
		cached *metav1.PartialObjectMetadata
		live   []metav1.PartialObjectMetadata // what a later look finds
		held   bool
		later  bool
	}{
		"the cache shows it":                       {object("a", "1", "9"), nil, true, true},
		"the cache shows it on its way out":        {onItsWay, nil, true, true},
		"the cache shows another of its name":      {object("a", "2", "9"), nil, false, false},
		"the cache shows none":                     {nil, nil, false, false},
		"it is there all the same, on its way out": {onItsWay, []metav1.PartialObjectMetadata{*onItsWay}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if tc.cached != nil {
				r = newRig(t, tc.cached)
			}
			r.server = tc.live
			r.Vanished("k", pods, object("a", "1", "9"))
			if held := len(r.Behind("k")) > 0; held != tc.held {
				t.Errorf("held %t", held)
			}
			r.step(lookAfter)
			if err := r.Look(t.Context(), "k"); err != nil {
				t.Fatal(err)
			}
			if held := len(r.Behind("k")) > 0; held != tc.later {
				t.Errorf("held after a look: %t", held)
			}
		})
	}
	r := newRig(t)
	if r.Vanished("k", schema.GroupResource{Resource: "unwatched"}, object("a", "1", "9")); len(r.Behind("k")) > 0 {
		t.Error("waits for what no cache shows")
	}
}

func TestALiveLookEndsTheWaitForWhatDidNotHappen(t *testing.T) {
	owner := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "owner", UID: "o"}}
	child := func(version string) metav1.PartialObjectMetadata {
		o := object("c", "c", version)
		o.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, schema.GroupVersionKind{Kind: "Pod"})}
		return *o
	}
	untouched := []metav1.PartialObjectMetadata{*object("a", "1", "9")}
	lostDelete := func(r *rig) {
		_, _ = r.DeleteAnswered(t.Context(), "k", pods, object("a", "1", "9"), io.EOF)
	}
	lostCreate := func(r *rig) { r.CreateLost("k", pods, owner, "") }
	deleted := func(r *rig) { r.Deleted("k", pods, object("a", "1", "9")) }
	wrote := func(r *rig) { r.Wrote("k", pods, object("b", "2", "50")) }
	for name, tc := range map[string]struct {
		write func(*rig)
		live  []metav1.PartialObjectMetadata
		at    string
		down  error
		after time.Duration
		want  string
	}{
		"too early to look":                               {write: lostDelete, live: untouched, after: time.Second, want: "[pods: 1 deletes not yet observed]"},
		"a lost delete that did not happen":               {write: lostDelete, live: untouched, after: 2 * time.Second, want: "[]"},
		"a lost delete that happened waits for the cache": {write: lostDelete, after: 2 * time.Second, want: "[pods: 1 deletes not yet observed]"},
		"a delete that was agreed to is given more time":  {write: deleted, live: untouched, after: 4 * time.Second, want: "[pods: 1 deletes not yet observed]"},
		"a delete that never shows":                       {write: deleted, live: untouched, after: 5 * time.Second, want: "[]"},
		"the API server cannot be asked":                  {write: deleted, live: untouched, down: io.EOF, after: 5 * time.Second, want: "[pods: 1 deletes not yet observed]"},
		"a lost create that made nothing":                 {write: lostCreate, live: untouched, after: 2 * time.Second, want: "[]"},
		"a lost create that made something":               {write: lostCreate, live: []metav1.PartialObjectMetadata{child("60")}, after: 2 * time.Second, want: "[pods: wrote 60, cache at 9]"},
		"a lost create is not looked for at once":         {write: lostCreate, after: time.Second, want: "[pods: the answer to a create was lost, a live look comes 2s after it]"},
		"a write that the cache will show":                {write: wrote, at: "50", after: 5 * time.Second, want: "[pods: wrote 50, cache at 9]"},
		"a write that a restored API server lacks":        {write: wrote, at: "49", after: 5 * time.Second, want: "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, object("a", "1", "9"))
			tc.write(r)
			r.server, r.down = tc.live, tc.down
			if tc.at != "" {
				r.at = tc.at
			}
			r.step(tc.after)
			if err := r.Look(t.Context(), "k"); (err != nil) != (tc.down != nil) {
				t.Errorf("look: %v", err)
			}
			if got := fmt.Sprint(r.Behind("k")); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestALongWaitIsLookedAtNowAndThen(t *testing.T) {
	r := newRig(t, object("a", "1", "9"))
	r.Deleted("k", pods, object("a", "1", "9"))
	for range 12 {
		r.step(time.Second)
		if err := r.Look(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
	}
	if behind := r.Behind("k"); r.reads != 2 || len(behind) != 1 || r.clock.Since(behind[0].Since) != 12*time.Second {
		t.Errorf("%d reads, %v", r.reads, behind)
	}
}

func TestFewLooksAreMadeAtOnce(t *testing.T) {
	r := newRig(t)
	for i := range 5 * looksAtOnce {
		name := fmt.Sprint("p", i)
		o := object(name, name, "9")
		if err := r.cached.Add(o); err != nil {
			t.Fatal(err)
		}
		r.Deleted("k", pods, o)
	}
	for turn := range 5 {
		r.step(lookAfter)
		if err := r.Look(t.Context(), "k"); err != nil || r.reads != looksAtOnce*(turn+1) {
			t.Fatalf("turn %d: %d reads, %v", turn, r.reads, err)
		}
	}
}

// Who has no live reads, or no cache of the resource, would wait in vain.
func TestALostCreateIsWaitedForWhereItCanBeFound(t *testing.T) {
	for name, tc := range map[string]struct {
		blind    bool
		resource schema.GroupResource
		behind   int
	}{
		"it can":        {resource: pods, behind: 1},
		"no live reads": {resource: pods, blind: true},
		"no cache":      {resource: schema.GroupResource{Resource: "services"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if tc.blind {
				r.LookLive(nil)
			}
			r.CreateLost("k", tc.resource, object("owner", "o", "1"), "")
			if got := r.Behind("k"); len(got) != tc.behind {
				t.Errorf("waits for %v", got)
			}
		})
	}
}

func TestNothingIsLookedAtWithoutLiveReads(t *testing.T) {
	r := newRig(t, object("a", "1", "9"))
	r.LookLive(nil)
	r.Deleted("k", pods, object("a", "1", "9"))
	r.step(time.Hour)
	if err := r.Look(t.Context(), "k"); err != nil || len(r.Behind("k")) != 1 {
		t.Errorf("%v, behind %v", err, r.Behind("k"))
	}
}

// What was written while a live look was under way is not what it is about.
func TestALiveLookIsAboutWhatWasWrittenBefore(t *testing.T) {
	r := newRig(t)
	r.at = "5" // restored from a copy
	r.Wrote("k", pods, object("a", "1", "9"))
	r.step(lookAfter)
	list := r.list
	r.LookLive(func(ctx context.Context, resource schema.GroupResource, namespace string, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		r.Wrote("k", pods, object("a", "1", "10"))
		return list(ctx, resource, namespace, o)
	})
	if err := r.Look(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if got := r.Behind("k"); len(got) != 1 || got[0].Wrote != "10" {
		t.Errorf("behind %v", got)
	}
}
