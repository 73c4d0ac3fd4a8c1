package attachdetach

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// plan decides about a volume, or about the status of a node.
func plan(o observed, now time.Time) act.Plan {
	if o.node != nil {
		return planNode(o.node, now)
	}
	return planVolume(o.volume, now)
}

// planVolume looks first at what is under way, then detaches, then attaches, so that a
// volume leaves one node before it comes to another.
func planVolume(v *volumeView, now time.Time) act.Plan {
	d := &draft{v: v, now: now, pairs: maps.Clone(v.pairs), backoffs: maps.Clone(v.backoffs)}
	if d.pairs == nil {
		d.pairs = map[string]pair{}
	}
	if d.backoffs == nil {
		d.backoffs = map[string]backoff{}
	}
	nodes := v.inTurn()
	for _, node := range nodes {
		d.proceed(node)
		d.verify(node)
	}
	for _, node := range nodes {
		d.detach(node)
	}
	for _, node := range nodes {
		d.attach(node)
	}
	return d.plan()
}

// draft is a plan of a volume in the making.
type draft struct {
	v        *volumeView
	now      time.Time
	pairs    map[string]pair
	backoffs map[string]backoff
	steps    []act.Step
	says     []string
	errs     []error
	counts   []act.Count
	// forced is by node why a detach that begins is one by force.
	forced map[string]string
	due    time.Time
	again  bool
	unsure []string
	// parting are the nodes that the volume may leave, and whose status comes first.
	parting []string
}

// noted is what a plan has made of a volume.
type noted struct {
	record
	// again: what has become of it may call for more at once.
	again  bool
	unsure []string
}

func (d *draft) plan() act.Plan {
	p := act.Plan{Why: strings.Join(d.says, "; "), RequeueAt: d.due}
	if len(d.steps) > 0 {
		// Events come first: they say what has been done, also when a step has to wait.
		isEvent := func(s act.Step) bool { _, is := s.(act.Event); return is }
		isNone := func(s act.Step) bool { return !isEvent(s) }
		p.Stages = []act.Stage{
			act.Each(slices.DeleteFunc(slices.Clone(d.steps), isNone)...), act.Each(slices.DeleteFunc(slices.Clone(d.steps), isEvent)...),
		}
	}
	p.Counts = d.counted
	p.Note = func(results act.Results) any { return d.fold(results) }
	// What was said to a step is what an operation has failed for, which is said then.
	p.Retry = func(act.Results) error { return errors.Join(d.errs...) }
	return p
}

// counted are the metrics of the plan. What was withheld has not begun.
func (d *draft) counted(results act.Results) []act.Count {
	counts := slices.Clone(d.counts)
	for _, node := range slices.Sorted(maps.Keys(d.forced)) {
		if !slices.ContainsFunc(results, func(r act.Result) bool { return r.Became == act.OnHold && nodeOf(r.Step) == node }) {
			counts = append(counts, forced(d.forced[node]))
		}
	}
	return counts
}

// fold puts what became of the steps into the operations that they belong to.
func (d *draft) fold(results act.Results) noted {
	n := noted{record: record{source: d.v.source, pairs: maps.Clone(d.pairs), backoffs: maps.Clone(d.backoffs)}, again: d.again, unsure: slices.Clone(d.unsure)}
	for _, result := range results {
		node := nodeOf(result.Step)
		p, is := n.pairs[node]
		if !is {
			continue
		}
		switch check, checks := result.Step.(act.Check); {
		case result.Became == act.OnHold: // nothing was asked of anybody: it begins once more
			p.op = operation{}
		case p.op.kind == none && checks && check.Is != nil: // whether its attachment is gone
			p = d.verified(p, result)
			n.again = n.again || p.state == absent
		case p.op.kind == none && result.Kept == false: // its driver says that it is not attached
			p, n.again = pair{wanted: p.wanted, pods: p.pods}, true
		case p.op.kind == none:
		case result.Err != nil && p.op.failed == "":
			p.op.failed, p.op.unsent, n.again = failure(result), unsent(result), true
			if errors.Is(result.Err, errStillReported) {
				p.leaving, n.unsure = false, append(n.unsure, node)
			}
		case p.op.kind == attachKind && result.Kept != nil:
			p.device, _ = result.Kept.(string)
		}
		switch result.Step.(type) {
		case act.Create, act.Delete:
			if p.op.kind != none && result.Err == nil && p.op.asked.IsZero() {
				p.op.asked = result.At
			}
		}
		n.pairs[node] = p
	}
	for node, p := range n.pairs {
		if p.state == absent && p.op.kind == none && !p.wanted {
			delete(n.pairs, node)
		}
	}
	return n
}

// failure is what events say of a step that failed.
func failure(r act.Result) string {
	if _, is := r.Step.(act.Create); is {
		return "kubernetes.io/csi: attacher.Attach failed: " + r.Err.Error()
	}
	return r.Err.Error()
}

// unsent reports whether a step failed before the driver could learn of it.
func unsent(r act.Result) bool {
	switch r.Step.(type) {
	case act.Check:
		return true
	case act.Delete:
		return r.Became == act.Refused
	}
	return false
}

// nodeOf is the node that a step is for.
func nodeOf(step act.Step) string {
	switch o := step.About().(type) {
	case *storagev1.VolumeAttachment:
		return o.Spec.NodeName
	case *corev1.Node:
		return o.Name
	}
	return ""
}

func (d *draft) say(node, format string, args ...any) {
	d.says = append(d.says, node+": "+fmt.Sprintf(format, args...))
}

// wake has the volume looked at again at that time at the latest.
func (d *draft) wake(at time.Time) {
	if d.due.IsZero() || at.Before(d.due) {
		d.due = at
	}
}

// exclusive reports whether the volume is for one node only, by what the pods of this
// node use.
func (d *draft) exclusive(node string) bool {
	source := d.v.sourceAt(node)
	return source != nil && source.OneNode()
}

// busy is the node with which an operation is under way that leaves no room for one with
// this node; false if there is none.
func (d *draft) busy(node string) (string, bool) {
	if d.pairs[node].op.kind != none {
		return node, true
	}
	if d.exclusive(node) {
		for _, other := range slices.Sorted(maps.Keys(d.pairs)) {
			if d.pairs[other].op.kind != none {
				return other, true
			}
		}
	}
	return "", false
}

// scope is what a backoff is of: the volume, or the volume at a node.
func (d *draft) scope(node string) string {
	if d.exclusive(node) {
		return ""
	}
	return node
}

// paused returns until when operations of a kind have to wait after failures. A failure of
// the other kind counts for a moment: an attach and a detach may fail in turn.
func (d *draft) paused(node string, of kind) (time.Time, bool) {
	b := d.backoffs[d.scope(node)]
	if b.kind != of && b.kind != none {
		b.until = b.until.Add(betweenPasses - b.pause)
	}
	return b.until, d.now.Before(b.until)
}

// begin starts an operation. A backoff of the other kind is over with that.
func (d *draft) begin(node string, of kind, over bool) {
	p := d.pairs[node]
	p.op, p.tried = operation{kind: of, since: d.now, over: over}, d.now
	if of == attachKind {
		p.op.pods = d.v.wants[node]
	}
	d.pairs[node] = p
	if b := d.backoffs[d.scope(node)]; b.kind != of {
		delete(d.backoffs, d.scope(node))
	}
}

// ref is the VolumeAttachment of the volume and a node by its name; nil if it has none.
func (d *draft) ref(node string) *storagev1.VolumeAttachment {
	driver, handle, is := volumes.ParseCSI(d.v.name)
	if !is {
		return nil
	}
	va := &storagev1.VolumeAttachment{}
	va.Name = volumes.Attachment(driver, handle, node)
	va.Spec.Attacher, va.Spec.NodeName = driver, node
	return va
}
