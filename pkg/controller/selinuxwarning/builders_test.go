package selinuxwarning

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const driver = "disk.example.com"

func level(l string) *corev1.SELinuxOptions { return &corev1.SELinuxOptions{Level: l} }

// aPod mounts volume "data" of claim "data" in one container.
func aPod(namespace, name string, options *corev1.SELinuxOptions) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name, p.UID = namespace, name, types.UID(namespace+"-"+name)
	p.Spec.SecurityContext = &corev1.PodSecurityContext{SELinuxOptions: options}
	p.Spec.Containers = []corev1.Container{{Name: "main", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}}
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	return p
}

func withPolicy(p *corev1.Pod, policy corev1.PodSELinuxChangePolicy) *corev1.Pod {
	p.Spec.SecurityContext.SELinuxChangePolicy = &policy
	return p
}

func inPhase(p *corev1.Pod, phase corev1.PodPhase) *corev1.Pod {
	p.Status.Phase = phase
	return p
}

func container(options *corev1.SELinuxOptions, volumes ...string) corev1.Container {
	c := corev1.Container{}
	if options != nil {
		c.SecurityContext = &corev1.SecurityContext{SELinuxOptions: options}
	}
	for _, v := range volumes {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v})
	}
	return c
}

// bound is the claim "data" of a namespace and the volume that it is bound to.
func bound(namespace, handle string) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data", UID: types.UID("claim-" + namespace)}}
	claim.Spec.VolumeName, claim.Status.Phase = "pv-"+namespace, corev1.ClaimBound
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + namespace}}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: "data", UID: claim.UID}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: handle}
	return claim, pv
}

func csiDriver(mounts bool) *storagev1.CSIDriver {
	d := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}}
	d.Spec.SELinuxMount = &mounts
	return d
}
