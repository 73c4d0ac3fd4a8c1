package attachdetach

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// attach has a volume come to a node whose pods want it.
func (d *draft) attach(node string) {
	pods := d.v.wants[node]
	if len(pods) == 0 {
		return
	}
	p := d.pairs[node]
	p.wanted, p.pods, p.gone = true, namesOf(pods), time.Time{}
	if p.state != absent && !p.known {
		p.known, d.again = true, true
	}
	if d.pairs[node] = p; p.op.kind != none {
		return
	}
	if p.state == attached {
		p.leaving, p.told = false, false
		d.pairs[node] = p
		d.say(node, "attached, and wanted by %d pods", len(pods))
		return
	}
	if other, busy := d.busy(node); busy {
		d.say(node, "wanted; an operation with node %s is under way", other)
		return
	}
	if other, parts := d.parts(node); parts {
		d.say(node, "wanted; the volume leaves node %s first", other)
		return
	}
	if d.elsewhere(node) {
		d.refuse(node)
		return
	}
	if until, paused := d.paused(node, attachKind); paused {
		d.wake(until)
		d.say(node, "wanted; the attach failed and is tried again at %s", until.UTC().Format(time.TimeOnly))
		return
	}
	d.beginAttach(node)
}

// beginAttach starts an attach. An object that is there already will do.
func (d *draft) beginAttach(node string) {
	p := d.pairs[node]
	if p.state == absent {
		p.assumed, p.seen = true, d.v.nodes[node].seen
	}
	p.known, p.leaving = true, false
	d.pairs[node] = p
	attachment := d.ref(node)
	d.begin(node, attachKind, attachment == nil)
	d.say(node, "wanted by %d pods; attaching", len(d.v.wants[node]))
	switch {
	case attachment == nil:
		if call := d.callAttach(node); call != nil {
			d.steps = append(d.steps, call)
		}
		d.again = true
	case d.v.attachments[node] == nil:
		d.steps = append(d.steps, act.Create{Object: d.attachment(node), MayExist: true})
		d.wake(d.now.Add(attachWait)) // the driver may never answer
	default:
		d.again = true // it may be attached already
	}
}

// attachment is the VolumeAttachment to make. That of a volume which a pod describes itself
// has the specification, because there is no PersistentVolume.
func (d *draft) attachment(node string) *storagev1.VolumeAttachment {
	va := d.ref(node)
	if source := d.v.sourceAt(node); source != nil && source.PV == "" {
		va.Spec.Source.InlineVolumeSpec = source.Spec
	} else if source != nil {
		va.Spec.Source.PersistentVolumeName = &source.PV
	}
	return va
}

func namesOf(pods []*corev1.Pod) []podName {
	names := make([]podName, 0, len(pods))
	for _, pod := range pods {
		names = append(names, podName{types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, pod.UID})
	}
	return names
}
