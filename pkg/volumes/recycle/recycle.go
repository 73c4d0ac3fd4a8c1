package recycle

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// gi is a gibibyte.
const gi = 1 << 30

// Recycler is how volumes of one kind are recycled.
type Recycler struct {
	// Template is what its pods are copies of.
	Template *corev1.Pod
	// Minimum is the shortest time that a pod may run, and Increment what it may run for
	// each Gi of the volume; in seconds.
	Minimum, Increment int32
}

// Recyclers are how volumes are recycled, by what they are made of.
type Recyclers struct {
	HostPath, NFS Recycler
}

// For returns what recycles a volume; nil if nothing does.
func (r *Recyclers) For(volume *corev1.PersistentVolume) *Recycler {
	switch source := volume.Spec.PersistentVolumeSource; {
	case source.HostPath != nil:
		return &r.HostPath
	case source.NFS != nil:
		return &r.NFS
	}
	return nil
}

// prefix is what the name of a pod begins with; the name of its volume comes after it.
const prefix = "recycler-for-"

// Pod returns the pod that recycles a volume: a copy of the template whose first volume is
// that one.
func (r *Recycler) Pod(volume *corev1.PersistentVolume) *corev1.Pod {
	pod := r.Template.DeepCopy()
	pod.Name, pod.GenerateName = prefix+volume.Name, ""
	if pod.Namespace == "" {
		pod.Namespace = metav1.NamespaceDefault
	}
	deadline := r.deadline(volume)
	pod.Spec.ActiveDeadlineSeconds = &deadline
	pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{}
	switch source := volume.Spec.PersistentVolumeSource; {
	case source.HostPath != nil:
		pod.Spec.Volumes[0].HostPath = &corev1.HostPathVolumeSource{Path: source.HostPath.Path}
	case source.NFS != nil:
		pod.Spec.Volumes[0].NFS = &corev1.NFSVolumeSource{Server: source.NFS.Server, Path: source.NFS.Path}
	}
	return pod
}

// deadline is how many seconds the pod of a volume may run: the longer of the minimum and
// what its size gives.
func (r *Recycler) deadline(volume *corev1.PersistentVolume) int64 {
	size := volume.Spec.Capacity[corev1.ResourceStorage]
	return max(int64(r.Minimum), size.Value()/gi*int64(r.Increment))
}

// Outcome is what the state of a recycler pod means.
type Outcome struct {
	// Over: the pod runs no more.
	Over bool
	// Err is why the volume is not recycled; nil if it is, or if the pod runs.
	Err error
}

// OutcomeOf is what the state of a recycler pod means. Nil is one that was deleted.
func OutcomeOf(pod *corev1.Pod) Outcome {
	switch {
	case pod == nil:
		return failed("recycler pod was deleted")
	case pod.Status.Phase == corev1.PodSucceeded:
		return Outcome{Over: true}
	case pod.Status.Phase == corev1.PodFailed && pod.Status.Message != "":
		return failed(pod.Status.Message)
	case pod.Status.Phase == corev1.PodFailed:
		return failed("pod failed, pod.Status.Message unknown")
	}
	return Outcome{}
}

func failed(why string) Outcome {
	return Outcome{Over: true, Err: fmt.Errorf("failed to recycle volume: %s", why)}
}
