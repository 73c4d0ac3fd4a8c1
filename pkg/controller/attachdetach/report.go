package attachdetach

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// nodeView is what the plan of a node is made from.
type nodeView struct {
	name string
	// node is nil if there is none.
	node *corev1.Node
	// attached is what is to stand in its status, in order.
	attached []corev1.AttachedVolume
	// want is the number of the change that led to this. unsure means that what the status
	// holds now is not known.
	want   uint64
	unsure bool
	// verified is when its attachments were last compared, and lost are the volumes whose
	// VolumeAttachment does not say that they are attached.
	verified time.Time
	compares bool
	period   time.Duration
	lost     []volumes.Name
}

// reported is what a plan has made of a node.
type reported struct {
	// done is the number of the change that stands in its status now; 0 if it is not known.
	// Failed is that of a write that failed.
	done, failed uint64
	unsure       bool
	verified     time.Time
	lost         []volumes.Name
}

// observeNode reads the book before the cache: what is woken later is seen later.
func (c *Controller) observeNode(name string) (*nodeView, error) {
	v, known := c.book.report(name)
	if !known {
		return nil, reconcile.ErrAbsent
	}
	if node, err := reconcile.Cached[corev1.Node](c.nodes, name); err == nil {
		v.node = node
	}
	v.period, v.compares = c.options.SyncPeriod, !c.options.WithoutSync && len(v.attached) > 0
	if now := c.Clock().Now(); !v.compares || now.Before(v.verified.Add(v.period)) {
		return v, nil
	}
	for _, a := range v.attached {
		attachment := attachmentName(a.Name, name)
		if attachment == "" {
			continue
		}
		va, err := reconcile.Cached[storagev1.VolumeAttachment](c.attachments, attachment)
		if err != nil || !va.Status.Attached {
			v.lost = append(v.lost, a.Name)
		}
	}
	return v, nil
}

// report is what is to stand in the status of a node.
func (b *book) report(name string) (*nodeView, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.nodes[name]
	if n == nil {
		return nil, false
	}
	if n.verified.IsZero() {
		n.verified = b.began
	}
	v := &nodeView{name: name, want: n.want, unsure: n.unsure, verified: n.verified}
	for volume := range n.volumes {
		if p := b.volumes[volume].pairs[name]; p.reported() {
			v.attached = append(v.attached, corev1.AttachedVolume{Name: volume, DevicePath: p.device})
		}
	}
	slices.SortFunc(v.attached, func(a, b corev1.AttachedVolume) int { return cmp.Compare(a.Name, b.Name) })
	return v, true
}

// written notes what stands in the status of a node, and returns the volumes that waited
// for it, or for word of it.
func (b *book) written(name string, r reported) []volumes.Name {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.nodes[name]
	if n == nil {
		return nil
	}
	done, failed := n.done, n.failed
	n.done, n.failed, n.unsure, n.verified = max(n.done, r.done), max(n.failed, r.failed), r.unsure, r.verified
	woken := slices.Clone(r.lost)
	for volume := range n.volumes {
		p := b.volumes[volume].pairs[name]
		if p.leaving && (p.left > done && p.left <= n.done || p.left > failed && p.left <= n.failed) {
			woken = append(woken, volume)
		}
	}
	return woken
}

// missed reports whether a node that a detach waits for has been seen after the volume was
// looked at, and before the book said that it waits.
func (b *book) missed(name volumes.Name) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for node, p := range b.volumes[name].pairs {
		if p.waits && b.node(node).seen != p.waitsAt {
			return true
		}
	}
	return false
}

// planNode has the status of a node list what is attached to it. The list is sent whole.
func planNode(v *nodeView, now time.Time) act.Plan {
	n := reported{done: v.want, verified: v.verified, lost: v.lost}
	p := act.Plan{}
	if v.compares {
		due := v.verified.Add(v.period)
		if !now.Before(due) {
			n.verified = now
			due = now.Add(v.period)
			p.Counts = func(act.Results) []act.Count { return []act.Count{compared()} }
		}
		p.RequeueAt = due
	}
	p.Note = func(results act.Results) any {
		after := n
		if _, err := results.Failed(); err != nil {
			after.done, after.failed, after.unsure = 0, v.want, true
		}
		return after
	}
	switch {
	case v.node == nil:
		p.Why = fmt.Sprintf("there is no such node; %d volumes are attached to it", len(v.attached))
	case !v.unsure && same(v.node.Status.VolumesAttached, v.attached):
		p.Why = fmt.Sprintf("its status lists the %d volumes that are attached", len(v.attached))
	default:
		p.Why = fmt.Sprintf("its status lists %d volumes and should list %d", len(v.node.Status.VolumesAttached), len(v.attached))
		p.Stages = act.Stages(act.Patch{
			Of: v.node, Type: types.StrategicMergePatchType, Data: listing(v.node, v.attached), Subresource: "status", Required: true,
			AsRead: func(live metav1.Object) []byte { return listing(live, v.attached) },
		})
	}
	return p
}

// listing is the patch of a status; nothing attached removes the list. It names the version,
// because a request of an earlier process that comes late would list what has left.
func listing(node metav1.Object, attached []corev1.AttachedVolume) []byte {
	return act.Body(map[string]any{
		"metadata": map[string]any{"uid": node.GetUID(), "resourceVersion": node.GetResourceVersion()},
		"status":   map[string]any{"volumesAttached": attached},
	})
}

// same reports whether a status lists these volumes, in any order.
func same(listed, sorted []corev1.AttachedVolume) bool {
	if len(listed) != len(sorted) {
		return false
	}
	listed = slices.SortedFunc(slices.Values(listed), func(a, b corev1.AttachedVolume) int { return cmp.Compare(a.Name, b.Name) })
	return slices.Equal(listed, sorted)
}
