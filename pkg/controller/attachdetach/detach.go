package attachdetach

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/nodes"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

var (
	errInUse         = errors.New("the node has the volume in use")
	errStillReported = errors.New("the status of the node still lists the volume")
)

// force is why a volume may be detached although it is in use.
type force struct {
	// outOfService: the node is.
	outOfService bool
	// late: it was wanted last so long ago that a node that is not well has to let it go.
	late bool
}

// now reports whether the volume may go from a node in this state.
func (f force) now(ready, outOfService bool) bool { return outOfService || f.late && !ready }

// reason is how the metric calls it; empty if it needs none.
func (f force) reason() string {
	switch {
	case f.late:
		return "timeout"
	case f.outOfService:
		return "out-of-service"
	}
	return ""
}

// detach has a volume go that no pod on the node wants any more: out of the status of the
// node first, and then from the node.
func (d *draft) detach(node string) {
	p, wanted := d.pairs[node], len(d.v.wants[node]) > 0
	p.waits = false
	if !wanted {
		p.wanted, p.pods, p.told = false, nil, false
	}
	if d.pairs[node] = p; wanted || p.state == absent || p.op.kind != none {
		return
	}
	if p.gone.IsZero() {
		p.gone = d.now
	}
	f, facts := d.force(p, node), d.v.nodes[node]
	inUse := facts.inUse || p.assumed && p.seen == facts.seen
	until, paused := d.paused(node, detachKind)
	other, busy := d.busy(node)
	switch {
	case paused:
		d.wake(until)
		d.say(node, "not wanted; the detach failed and is tried again at %s", until.UTC().Format(time.TimeOnly))
	case busy:
		d.say(node, "not wanted; an operation with node %s is under way", other)
	case inUse && !f.now(facts.ready, facts.outOfService):
		p.waits, p.waitsAt = true, facts.seen
		d.sayInUse(node, p, facts)
	case !d.v.plugged:
		d.backoffs[d.scope(node)] = d.backoffs[d.scope(node)].after(detachKind, d.now)
		until, _ := d.paused(node, detachKind)
		d.wake(until)
		d.sayUnknown(node, until)
	case !p.leaving:
		p.leaving = true
		d.parting = append(d.parting, node)
		d.say(node, "not wanted; leaves the status of the node")
	case facts.done < p.left:
		if facts.failed < p.left {
			d.parting = append(d.parting, node)
		}
		d.say(node, "not wanted; waits until the status of the node no longer lists it")
	default:
		d.pairs[node] = p
		d.beginDetach(node, f)
		return
	}
	d.pairs[node] = p
}

func (d *draft) force(p pair, node string) force {
	late := !d.v.options.WithoutForce && d.now.Sub(p.gone) > forceAfter
	return force{late: late, outOfService: d.v.nodes[node].outOfService}
}

// sayInUse says why a detach waits, and until when.
func (d *draft) sayInUse(node string, p pair, facts nodeFacts) {
	since := "in use"
	if !facts.inUse {
		since = "taken to be in use until the node has been updated"
	}
	at := p.gone.Add(forceAfter + time.Millisecond)
	switch {
	case d.v.options.WithoutForce:
		d.say(node, "not wanted, but %s; waits for the node to let it go, or to be out of service: --disable-force-detach-on-timeout is set", since)
	case facts.ready && !at.After(d.now):
		d.say(node, "not wanted, but %s; waits for the node to let it go; detached by force if the node is no longer ready, or out of service", since)
	case facts.ready:
		d.say(node, "not wanted, but %s; waits for the node to let it go; detached by force from %s on if the node is no longer ready, and at once if it is out of service", since, at.UTC().Format(time.TimeOnly))
	default:
		d.say(node, "not wanted, but %s; detached by force at %s because the node is not ready, and at once if it is out of service", since, at.UTC().Format(time.TimeOnly))
		d.wake(at)
	}
}

// sayUnknown says that nobody can detach the volume; the log has it once.
func (d *draft) sayUnknown(node string, until time.Time) {
	d.say(node, "not wanted, but no plugin knows the volume; looked at again at %s", until.UTC().Format(time.TimeOnly))
	if d.backoffs[d.scope(node)].pause == firstPause {
		d.errs = append(d.errs, fmt.Errorf("detach volume %s from node %s: no plugin knows it", d.v.name, node))
	}
}

// beginDetach starts a detach: a live look at the node, and then the deletion of the
// VolumeAttachment. One that the cache does not have must be gone live too.
func (d *draft) beginDetach(node string, f force) {
	attachment := d.ref(node)
	d.begin(node, detachKind, attachment == nil)
	if reason := f.reason(); reason != "" {
		if d.forced == nil {
			d.forced = map[string]string{}
		}
		d.forced[node] = reason
	}
	look := act.Check{Of: nodeNamed(node), IsWhole: func(live client.Object) error { return d.mayLeave(live, f) }}
	var then act.Step
	switch cached := d.v.attachments[node]; {
	case attachment == nil:
		then = d.callDetach(node)
	case cached == nil:
		then = isGone(attachment)
	case cached.DeletionTimestamp == nil:
		then = act.Delete{Of: cached}
	}
	stages := []act.Stage{act.InTurn(look)}
	if then != nil {
		stages = append(stages, act.InTurn(then))
	}
	d.say(node, "not wanted; detaching")
	d.steps = append(d.steps, act.Part{Of: nodeNamed(node), Stages: stages})
	// No event may come of a VolumeAttachment that is gone, or is going already.
	if cached := d.v.attachments[node]; cached == nil || cached.DeletionTimestamp != nil {
		d.again = true
	}
}

// mayLeave returns why a volume must not be detached from a node as it is now.
func (d *draft) mayLeave(live client.Object, f force) error {
	node, _ := live.(*corev1.Node)
	switch {
	case node == nil, f.now(nodes.Ready(node), nodes.OutOfService(node)):
		return nil
	case slices.Contains(node.Status.VolumesInUse, d.v.name):
		return errInUse
	case slices.ContainsFunc(node.Status.VolumesAttached, func(a corev1.AttachedVolume) bool { return a.Name == d.v.name }):
		return errStillReported
	}
	return nil
}

func nodeNamed(name string) *corev1.Node {
	node := &corev1.Node{}
	node.Name = name
	return node
}
