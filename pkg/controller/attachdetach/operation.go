package attachdetach

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// outcome is what has become of an operation.
type outcome struct {
	over bool
	err  error
	// lost: the object of an attach is gone, and is made once more.
	lost bool
	// due is when to look again.
	due time.Time
}

// proceed looks at the operation under way with a node, and ends it if it is over.
func (d *draft) proceed(node string) {
	p := d.pairs[node]
	var o outcome
	switch p.op.kind {
	case none:
		return
	case attachKind:
		o = attachOutcome(d.v.attachments[node], p.op, d.v.name, d.now)
	case detachKind:
		o = detachOutcome(d.v.attachments[node], p.op, d.v.name, d.now)
	}
	switch {
	case p.op.kind == attachKind && !d.v.attachable && (!o.over || o.err != nil):
		// Nobody waits for it, and nobody answers. As it was never attached, nobody uses it.
		p.op, p.state, p.assumed = operation{}, uncertain, false
		d.pairs[node], d.again = p, true
		d.say(node, "its driver needs no attaching any more")
	case !o.over:
		d.say(node, "%s under way since %s", words(p.op.kind), p.op.since.UTC().Format(time.TimeOnly))
		d.wake(o.due)
		if o.lost && len(d.v.wants[node]) > 0 {
			d.makeAgain(node)
		}
	case p.op.kind == attachKind:
		d.attachOver(node, o.err)
	default:
		d.detachOver(node, o.err)
	}
}

// makeAgain makes the object of an attach that somebody has deleted: at once, and then no
// more than once in a second, in case that they delete it again.
func (d *draft) makeAgain(node string) {
	p := d.pairs[node]
	if next := p.op.made.Add(betweenMakes); !p.op.made.IsZero() && d.now.Before(next) {
		d.wake(next)
		return
	}
	p.op.made = d.now
	d.pairs[node] = p
	d.steps = append(d.steps, act.Create{Object: d.attachment(node), MayExist: true})
}

func words(of kind) string {
	if of == attachKind {
		return "attach"
	}
	return "detach"
}

// attachOutcome is what has become of an attach. A failure that was there before counts
// only after a moment, in which the driver may take it back.
func attachOutcome(va *storagev1.VolumeAttachment, op operation, name volumes.Name, now time.Time) outcome {
	deadline, look := op.driverSince().Add(attachWait), op.driverSince().Add(firstLook)
	driver, handle, isCSI := volumes.ParseCSI(name)
	var failed error
	switch {
	case op.failed != "":
		return outcome{over: true, err: errors.New(op.failed)}
	case op.over:
		return outcome{over: true}
	case !isCSI:
		return outcome{over: true, err: errors.New("no outcome")}
	case va == nil:
	case va.DeletionTimestamp != nil:
		failed = errors.New("volume attachment is being deleted")
	case va.Status.Attached:
		return outcome{over: true}
	case va.Status.AttachError != nil:
		failed = errors.New(va.Status.AttachError.Message)
	}
	switch {
	case failed != nil && !now.Before(look):
		return outcome{over: true, err: failed}
	case failed != nil:
		return outcome{due: look}
	case !now.Before(deadline):
		return outcome{over: true, err: fmt.Errorf("timed out waiting for external-attacher of %s CSI driver to attach volume %s", driver, handle)}
	}
	return outcome{lost: va == nil, due: deadline}
}

// detachOutcome is what has become of a detach.
func detachOutcome(va *storagev1.VolumeAttachment, op operation, name volumes.Name, now time.Time) outcome {
	deadline, look := op.driverSince().Add(attachWait), op.driverSince().Add(firstLook)
	driver, handle, _ := volumes.ParseCSI(name)
	switch {
	case op.failed != "":
		return outcome{over: true, err: errors.New(op.failed)}
	case op.over || va == nil:
		return outcome{over: true}
	case va.Status.DetachError != nil && !now.Before(look):
		return outcome{over: true, err: errors.New(va.Status.DetachError.Message)}
	case va.Status.DetachError != nil:
		return outcome{due: look}
	case !now.Before(deadline):
		return outcome{over: true, err: fmt.Errorf("timed out waiting for external-attacher of %s CSI driver to detach volume %s", driver, handle)}
	}
	return outcome{due: deadline}
}

// attachOver ends an attach, and tells the pods for which it began.
func (d *draft) attachOver(node string, err error) {
	p := d.pairs[node]
	op := p.op
	p.op = operation{}
	d.again = true
	kind, reason, message := corev1.EventTypeNormal, "SuccessfulAttachVolume", fmt.Sprintf("AttachVolume.Attach succeeded for volume %q ", d.title(node))
	if err != nil {
		p.state = uncertain
		d.fail(node, op.kind)
		kind, reason, message = corev1.EventTypeWarning, "FailedAttachVolume", fmt.Sprintf("AttachVolume.Attach failed for volume %q : %s", d.title(node), err)
		d.errs = append(d.errs, fmt.Errorf("attach volume %s to node %s: %w", d.title(node), node, err))
		d.say(node, "the attach failed: %s", err)
	} else {
		p.state, p.leaving, p.told = attached, false, false
		delete(d.backoffs, d.scope(node))
		d.say(node, "attached")
	}
	d.pairs[node] = p
	for _, pod := range op.pods {
		d.steps = append(d.steps, act.Event{On: pod, Type: kind, Reason: reason, Message: message})
	}
	d.counts = append(d.counts, took(d.v, p.known, op, err, d.now))
}

// detachOver ends a detach. A failure is logged and gives no event.
func (d *draft) detachOver(node string, err error) {
	p := d.pairs[node]
	d.counts = append(d.counts, took(d.v, p.known, p.op, err, d.now))
	kind := p.op.kind
	d.again = true
	if err != nil {
		if !p.op.unsent {
			p.state = uncertain
		}
		p.op = operation{}
		d.fail(node, kind)
		d.errs = append(d.errs, fmt.Errorf("detach volume %s from node %s: %w", d.title(node), node, err))
		d.say(node, "the detach failed: %s", err)
	} else {
		p = pair{wanted: p.wanted, pods: p.pods, told: p.told}
		delete(d.backoffs, d.scope(node))
		d.say(node, "detached")
	}
	d.pairs[node] = p
}

func (d *draft) fail(node string, of kind) {
	scope := d.scope(node)
	d.backoffs[scope] = d.backoffs[scope].after(of, d.now)
}

// title is how events about a node name the volume.
func (d *draft) title(node string) string {
	source := d.v.sourceAt(node)
	if source == nil {
		return string(d.v.name)
	}
	return source.Title
}

// verify looks whether what is taken to be attached is so. That the cache has no
// VolumeAttachment is no proof: a live look decides. A FlexVolume driver is asked.
func (d *draft) verify(node string) {
	p, source := d.pairs[node], d.v.source
	if source != nil && source.Flex != nil && len(d.v.wants[node]) == 0 {
		return // its answer would be taken for that of the detach which begins
	}
	if d.v.options.WithoutSync || p.state != attached || !p.known || p.op.kind != none || source == nil || !d.v.attachable {
		return
	}
	va := d.v.attachments[node]
	switch {
	case source.CSI() == nil && source.Flex == nil, va != nil && va.Status.Attached:
		return
	case va != nil:
		d.forget(node)
		return
	case p.looked.IsZero() && source.Flex != nil:
		p.looked = d.now // it has just been attached, or found
		d.pairs[node] = p
	}
	if again := p.looked.Add(d.v.options.SyncPeriod); !p.looked.IsZero() && d.now.Before(again) {
		d.wake(again)
		return
	}
	d.wake(d.now.Add(d.v.options.SyncPeriod))
	if source.Flex != nil {
		p.looked = d.now
		d.pairs[node] = p
		d.steps = append(d.steps, d.callAttached(node))
		return
	}
	d.say(node, "the cache has no VolumeAttachment any more: looking live")
	d.steps = append(d.steps, isGone(d.ref(node)))
}

// isGone looks live at an object that the cache does not have.
func isGone(attachment *storagev1.VolumeAttachment) act.Check {
	return act.Check{Of: attachment, Is: func(live metav1.Object) error {
		if live != nil {
			return errors.New("the VolumeAttachment exists, and the cache does not show it yet")
		}
		return nil
	}}
}

// forget takes a volume for not attached that the driver says is not. The
// VolumeAttachment of one that no pod wants still has to be deleted.
func (d *draft) forget(node string) {
	p := d.pairs[node]
	if len(d.v.wants[node]) > 0 {
		p = pair{wanted: p.wanted, pods: p.pods}
	} else {
		p.state = uncertain
	}
	d.say(node, "is not attached any more")
	d.pairs[node], d.again = p, true
}

// verified is what a live look makes of a pair.
func (d *draft) verified(p pair, result act.Result) pair {
	if result.Err == nil {
		return pair{wanted: p.wanted, pods: p.pods}
	}
	p.looked = d.now
	return p
}
