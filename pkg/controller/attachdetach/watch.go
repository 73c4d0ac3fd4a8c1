package attachdetach

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/nodes"
	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// managedBy is on the nodes whose volumes this controller attaches. Its value does not count.
const managedBy = "volumes.kubernetes.io/controller-managed-attach-detach"

func (c *Controller) watch(in Informers) error {
	return errors.Join(
		runner.Watch(c.Runner, in.Pods.Informer(), c.podChanged),
		runner.Watch(c.Runner, in.Claims.Informer(), c.claimChanged),
		runner.Watch(c.Runner, in.PVs.Informer(), pvChanged),
		runner.Watch(c.Runner, in.Nodes.Informer(), c.nodeChanged),
		runner.Watch(c.Runner, in.Attachments.Informer(), c.attachmentChanged),
		runner.Watch(c.Runner, in.Drivers.Informer(), c.csiDriverChanged),
	)
}

// podChanged wakes the volumes of a pod that came to a node, ended or went.
func (c *Controller) podChanged(change runner.Change[corev1.Pod], wake runner.Wake[key]) {
	pod := change.Now()
	if pod.Spec.NodeName == "" {
		return
	}
	if old, now := change.Old, change.New; old != nil && now != nil &&
		old.UID == now.UID && old.Spec.NodeName == now.Spec.NodeName && pods.Stopped(old) == pods.Stopped(now) {
		return
	}
	if change.Old != nil {
		for _, volume := range c.book.wantedBy(change.Old.UID) {
			wake.Add(key{volume: volume})
		}
	}
	c.wakePod(pod, wake)
}

// wakePod wakes the volumes of a pod, as far as they are known.
func (c *Controller) wakePod(pod *corev1.Pod, wake runner.Wake[key]) {
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		source, err := volumes.OfPodVolume(volume, pod.Namespace)
		if claim, _ := volumes.ClaimOf(pod, volume); claim != "" {
			source, err = c.claimed(pod.Namespace + "/" + claim)
		}
		if err == nil && source != nil {
			wake.Add(key{volume: source.Unique})
		}
	}
}

// claimed is the volume that a claim names; nil if none is cached.
func (c *Controller) claimed(name string) (*volumes.Source, error) {
	claim, err := reconcile.Cached[corev1.PersistentVolumeClaim](c.claims, name)
	if err != nil || claim.Spec.VolumeName == "" {
		return nil, err
	}
	pv, err := reconcile.Cached[corev1.PersistentVolume](c.pvs, claim.Spec.VolumeName)
	if err != nil {
		return nil, err
	}
	return volumes.OfPV(pv)
}

// claimChanged wakes the volume of a claim. One whose PersistentVolume is not cached yet is
// woken by that.
func (c *Controller) claimChanged(change runner.Change[corev1.PersistentVolumeClaim], wake runner.Wake[key]) {
	if change.Old != nil && change.New != nil && change.Old.UID == change.New.UID &&
		change.Old.Spec.VolumeName == change.New.Spec.VolumeName && change.Old.Status.Phase == change.New.Status.Phase &&
		volumes.SameController(change.Old, change.New) {
		return
	}
	for _, claim := range []*corev1.PersistentVolumeClaim{change.Old, change.New} {
		if claim == nil || claim.Spec.VolumeName == "" {
			continue
		}
		if pv, err := reconcile.Cached[corev1.PersistentVolume](c.pvs, claim.Spec.VolumeName); err == nil {
			wakePV(pv, wake)
		}
	}
}

// pvChanged wakes the volume under its name of before and of now: the name of a migrated
// one also follows from labels (its zone) and annotations (its resource group).
func pvChanged(change runner.Change[corev1.PersistentVolume], wake runner.Wake[key]) {
	if change.Old != nil && change.New != nil && apiequality.Semantic.DeepEqual(change.Old.Spec, change.New.Spec) &&
		maps.Equal(change.Old.Labels, change.New.Labels) && maps.Equal(change.Old.Annotations, change.New.Annotations) {
		return
	}
	for _, pv := range []*corev1.PersistentVolume{change.Old, change.New} {
		if pv != nil {
			wakePV(pv, wake)
		}
	}
}

func wakePV(pv *corev1.PersistentVolume, wake runner.Wake[key]) {
	if source, err := volumes.OfPV(pv); err == nil && source != nil {
		wake.Add(key{volume: source.Unique})
	}
}

// nodeChanged wakes what waits for a node, and the volumes of the pods of one that has
// become managed. What changes nothing wakes nobody.
func (c *Controller) nodeChanged(change runner.Change[corev1.Node], wake runner.Wake[key]) {
	old, now := change.Old, change.New
	if now == nil {
		for _, volume := range c.book.nodeGone(old.Name, old.Status.VolumesInUse) {
			wake.Add(key{volume: volume})
		}
		wake.Add(key{node: old.Name})
		return
	}
	_, managed := now.Annotations[managedBy]
	changed := old == nil || nodes.Ready(old) != nodes.Ready(now) || nodes.OutOfService(old) != nodes.OutOfService(now) || !slices.Equal(old.Status.VolumesInUse, now.Status.VolumesInUse)
	became, waiting, has := c.book.nodeSeen(now.Name, managed, changed)
	for _, volume := range waiting {
		wake.Add(key{volume: volume})
	}
	if has && (old == nil || old.UID != now.UID || !slices.Equal(old.Status.VolumesAttached, now.Status.VolumesAttached)) {
		wake.Add(key{node: now.Name})
	}
	if !became {
		return
	}
	on, err := cache.Lookup[corev1.Pod](c.pods, cache.PodsByNode, now.Name)
	if err != nil {
		return // there is such an index
	}
	for _, pod := range on {
		c.wakePod(pod, wake)
	}
}

// attachmentChanged wakes the volume of a VolumeAttachment. One that no record has was made
// by an earlier process whose request came late.
func (c *Controller) attachmentChanged(change runner.Change[storagev1.VolumeAttachment], wake runner.Wake[key]) {
	va := change.Now()
	volume, is := c.book.attachmentOf(va.Name)
	if !is {
		if volume, is = c.volumeOf(va); !is {
			return
		}
	}
	if !change.Initial && change.New != nil && va.Name == attachmentName(volume, va.Spec.NodeName) && !c.othersAttach(va.Spec.NodeName) {
		c.book.stray(volume, va.Spec.NodeName)
	}
	wake.Add(key{volume: volume})
}

// othersAttach reports whether somebody else attaches the volumes of a node. Of one that is
// gone it is not known.
func (c *Controller) othersAttach(node string) bool {
	_, err := reconcile.Cached[corev1.Node](c.nodes, node)
	return err == nil && !c.book.managed(node)
}

// volumeOf is the volume of the PersistentVolume that a VolumeAttachment names.
func (c *Controller) volumeOf(va *storagev1.VolumeAttachment) (volumes.Name, bool) {
	name := va.Spec.Source.PersistentVolumeName
	if name == nil {
		return "", false
	}
	pv, err := reconcile.Cached[corev1.PersistentVolume](c.pvs, *name)
	if err != nil {
		return "", false
	}
	source, err := volumes.OfPV(pv)
	if err != nil || source == nil {
		return "", false
	}
	return source.Unique, true
}

// sweep is how long a driver is gone before its volumes are attached: one that need not be
// may only be made again. The original looks at all pods as often.
const sweep = 3 * time.Minute

// csiDriverChanged wakes the volumes of a driver that wants them attached, or no longer.
func (c *Controller) csiDriverChanged(change runner.Change[storagev1.CSIDriver], wake runner.Wake[key]) {
	if change.Initial || attaches(change.Old) == attaches(change.New) {
		return
	}
	after := time.Duration(0)
	if change.New == nil {
		after = sweep
	}
	c.wakePrefix(volumes.CSI+"/"+change.Now().Name+"^", wake, after)
}

// attaches reports whether volumes of a driver are attached; those of one that is not
// known are.
func attaches(driver *storagev1.CSIDriver) bool {
	return driver == nil || driver.Spec.AttachRequired == nil || *driver.Spec.AttachRequired
}

// driverChanged wakes the volumes of a FlexVolume driver that came or went.
func (c *Controller) driverChanged(driver string) { c.wakePrefix(driver+"/", c, 0) }

func (c *Controller) wakePrefix(prefix string, wake runner.Wake[key], after time.Duration) {
	names := append(cache.Values(c.pvs, pvsByVolume), cache.Values(c.pods, podsByVolume)...)
	for _, volume := range c.book.all() {
		names = append(names, string(volume))
	}
	slices.Sort(names)
	for _, volume := range slices.Compact(names) {
		if strings.HasPrefix(volume, prefix) {
			wake.AddAfter(key{volume: volumes.Name(volume)}, after)
		}
	}
}
