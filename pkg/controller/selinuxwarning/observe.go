package selinuxwarning

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// source is what a volume is, in whatever pod it is.
type source struct {
	// id is the same for all pods that use the volume; empty when no two of them can
	// conflict by it, or when it is not known.
	id volumes.Name
	// driver is the CSI driver, empty for another kind.
	driver string
	// supported: the volume can be mounted with a label.
	supported bool
}

// observed is a pod and the volumes that it mounts.
type observed struct {
	// pod is nil when it is gone or has ended.
	pod    *corev1.Pod
	mounts []mount
	// before is what was last noted of the pod, and had are its uses as the drivers are now.
	before noted
	had    []use
}

// mount is a volume that containers of the pod mount.
type mount struct {
	mounted
	// source is what the volume is, and waits what it waits for before that is known.
	source
	waits string
	// rivals are the other users of the volume.
	rivals []other
}

// other is another pod on a volume, as cached.
type other struct {
	pod *corev1.Pod
	rival
}

func (c *Controller) observe(_ context.Context, k key) (observed, error) {
	o := observed{before: c.book.of(k)}
	pod, err := reconcile.Cached[corev1.Pod](c.pods, k)
	if err != nil || pods.Terminal(pod) {
		return o, nil
	}
	if o.pod = pod; o.before.uid == pod.UID {
		o.had = c.asDriversAre(o.before.uses)
	}
	for _, of := range labels(pod) {
		at := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == of.name })
		if at < 0 {
			continue
		}
		m := mount{mounted: of}
		m.source, m.waits = c.resolve(pod, &pod.Spec.Volumes[at])
		m.rivals = c.rivals(k, m.id, wanted(pod, of.labels))
		o.mounts = append(o.mounts, m)
	}
	return o, nil
}

// asDriversAre returns uses with what their drivers support by now.
func (c *Controller) asDriversAre(uses []use) []use {
	now := slices.Clone(uses)
	for i := range now {
		if now[i].driver != "" {
			now[i].supported = c.supports(now[i].driver)
		}
	}
	return now
}

// resolve finds out what a volume of a pod is, or says what it waits for.
func (c *Controller) resolve(pod *corev1.Pod, v *corev1.Volume) (source, string) {
	claim, ofPod := volumes.ClaimOf(pod, v)
	if claim == "" {
		s, err := volumes.OfPodVolume(v, pod.Namespace)
		return c.withSupport(s, err)
	}
	pvc, err := reconcile.Cached[corev1.PersistentVolumeClaim](c.claims, key{Namespace: pod.Namespace, Name: claim})
	switch {
	case err != nil:
		return source{}, fmt.Sprintf("there is no claim %s", claim)
	case ofPod && !metav1.IsControlledBy(pvc, pod):
		return source{}, fmt.Sprintf("claim %s was not made for the pod", claim)
	case pvc.Status.Phase != corev1.ClaimBound || pvc.Spec.VolumeName == "":
		return source{}, fmt.Sprintf("claim %s is not bound", claim)
	}
	pv, err := reconcile.Cached[corev1.PersistentVolume](c.persistent, pvc.Spec.VolumeName)
	switch {
	case err != nil:
		return source{}, fmt.Sprintf("there is no volume %s", pvc.Spec.VolumeName)
	case !volumes.Bound(pvc, pv):
		return source{}, fmt.Sprintf("volume %s is not bound to claim %s", pv.Name, claim)
	}
	s, err := volumes.OfPV(pv)
	return c.withSupport(s, err)
}

// withSupport says what a volume is to other pods. Kinds that are not named here are
// mounted without labels always: nothing about them can conflict.
func (c *Controller) withSupport(v *volumes.Source, err error) (source, string) {
	switch {
	case err != nil:
		return source{}, err.Error() // only another volume can help
	case v == nil:
		return source{}, ""
	case v.Plugin == volumes.ISCSI || v.Plugin == volumes.FC:
		return source{id: v.Unique, supported: true}, ""
	case v.CSI() == nil:
		return source{}, ""
	}
	return source{v.Unique, v.CSI().Driver, c.supports(v.CSI().Driver)}, ""
}

// supports reports whether a CSI driver mounts with labels.
func (c *Controller) supports(name string) bool {
	driver, err := c.drivers.Get(name)
	return err == nil && mountsWithLabels(driver)
}

// mountsWithLabels reports whether the driver can mount a volume with a label.
func mountsWithLabels(driver *storagev1.CSIDriver) bool {
	return driver != nil && driver.Spec.SELinuxMount != nil && *driver.Spec.SELinuxMount
}

// rivals returns the other pods on a volume that ask for another label.
func (c *Controller) rivals(k key, volume volumes.Name, own label) []other {
	var all []other
	for _, r := range c.book.rivals(volume, k, own) {
		if pod, err := reconcile.Cached[corev1.Pod](c.pods, r.pod); err == nil { // else it has just gone
			all = append(all, other{pod, r})
		}
	}
	return all
}
