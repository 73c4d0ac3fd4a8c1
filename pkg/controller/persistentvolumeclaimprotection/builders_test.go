package persistentvolumeclaimprotection

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// claim is one of the namespace team.
func claim(name string, finalizers ...string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name + "-uid"), ResourceVersion: "7", Finalizers: finalizers}}
}

// leavingClaim is a claim that is being deleted and that the finalizer holds.
func leavingClaim(name string) *corev1.PersistentVolumeClaim {
	c := claim(name, "a", Finalizer, "b")
	c.DeletionTimestamp = &metav1.Time{Time: noon}
	return c
}

// says is a claim with a condition.
func says(c *corev1.PersistentVolumeClaim, user string) *corev1.PersistentVolumeClaim {
	c.Status.Conditions = append(c.Status.Conditions, condition(user, noon.Add(-time.Hour)))
	return c
}

// worded is a claim that says in other words that nobody uses it.
func worded(c *corev1.PersistentVolumeClaim, change func(*corev1.PersistentVolumeClaimCondition)) *corev1.PersistentVolumeClaim {
	change(&says(c, "").Status.Conditions[0])
	return c
}

// ownedBy makes the claim that of a pod's volume.
func ownedBy(c *corev1.PersistentVolumeClaim, pod *corev1.Pod) *corev1.PersistentVolumeClaim {
	c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))}
	return c
}

// pod is one on a node.
func pod(name string, volumes ...corev1.Volume) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name + "-uid")}}
	p.Spec.NodeName, p.Spec.Volumes, p.Status.Phase = "node", volumes, corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	return p
}

func naming(claim string) corev1.Volume {
	return corev1.Volume{Name: "v-" + claim, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}
}

func scratch(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}}
}

func unscheduled(p *corev1.Pod) *corev1.Pod {
	p.Spec.NodeName, p.Status.Phase, p.Status.ContainerStatuses = "", corev1.PodPending, nil
	return p
}

func ended(p *corev1.Pod, phase corev1.PodPhase) *corev1.Pod {
	p.Status.Phase, p.Status.ContainerStatuses = phase, nil
	return p
}

// deleted is a pod that is being deleted, with so many seconds of grace.
func deleted(p *corev1.Pod, grace int64) *corev1.Pod {
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: noon}, ptr.To(grace)
	return p
}

func idle(p *corev1.Pod) *corev1.Pod {
	p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	return p
}

func renewed(p *corev1.Pod) *corev1.Pod {
	p.UID = "another"
	return p
}
