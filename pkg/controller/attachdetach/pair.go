package attachdetach

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
)

// state is how a volume stands to a node.
type state int

const (
	absent state = iota
	// uncertain: a write was tried, or an object was found, and the outcome is not known.
	uncertain
	attached
)

// pair is what is remembered of a volume and a node.
type pair struct {
	state state
	// known: the source of the volume is known, not only its name in the status of a node.
	known bool
	// device is what a FlexVolume driver said when it attached the volume.
	device string
	// assumed: it counts as in use until the node has been seen more often than seen.
	assumed bool
	seen    uint64
	// wanted: a pod on the node wanted it at the last look, and pods are those that did.
	wanted bool
	pods   []podName
	// gone is since when no pod wants it.
	gone time.Time
	// leaving: it must go from the status of the node, whatever its state. It has gone when
	// as many changes of that status are done as left says.
	leaving bool
	left    uint64
	// waits: its detach waits for something of the node, which had been seen so often then.
	waits   bool
	waitsAt uint64
	// told: the pods on the node have the event that the volume is on another one.
	told bool
	// looked is when its attachment was last looked for live in vain.
	looked time.Time
	// tried is when its last operation began.
	tried time.Time
	op    operation
}

// reported reports whether it is to stand in the status of the node.
func (p pair) reported() bool { return p.state == attached && !p.leaving }

// exists reports whether the volume is attached to the node, or may be, or is about to be.
func (p pair) exists() bool { return p.state != absent || p.op.kind != none }

// podName names a pod that wants a volume.
type podName struct {
	types.NamespacedName
	uid types.UID
}

// operation is an attach or a detach under way.
type operation struct {
	kind  kind
	since time.Time
	// asked is when its object was made or deleted, which may be long after since if many
	// begin at once; zero until then.
	asked time.Time
	// pods get the event of an attach.
	pods []*corev1.Pod
	// over: its steps were all there is to it. Failed is what was said to a step.
	over   bool
	failed string
	// unsent: it failed before anything was asked of the driver.
	unsent bool
	// made is when the object of an attach was made again, which somebody had deleted.
	made time.Time
}

// driverSince is since when the driver knows of the operation.
func (o operation) driverSince() time.Time {
	if o.asked.IsZero() {
		return o.since
	}
	return o.asked
}

type kind string

const (
	none          kind = ""
	attachKind    kind = "volume_attach"
	detachKind    kind = "volume_detach"
	attachWait         = 2 * time.Minute        // for the driver
	firstLook          = 500 * time.Millisecond // until a failure that is there already counts
	forceAfter         = 6 * time.Minute
	firstPause         = 500 * time.Millisecond
	longestPause       = 2*time.Minute + 2*time.Second
	betweenMakes       = time.Second
	betweenPasses      = 100 * time.Millisecond // of the original
)

// backoff is the pause after operations of a kind that failed.
type backoff struct {
	kind  kind
	pause time.Duration
	until time.Time
}

// after returns the backoff after one more failure.
func (b backoff) after(failed kind, now time.Time) backoff {
	pause := firstPause
	if b.kind == failed {
		pause = min(2*b.pause, longestPause)
	}
	return backoff{kind: failed, pause: pause, until: now.Add(pause)}
}

// record is what is remembered of a volume. It is not changed once it is in the book.
type record struct {
	source *volumes.Source
	// pairs are by node.
	pairs map[string]pair
	// backoffs are by node, or under the empty name if the volume is for one node only.
	backoffs map[string]backoff
}
