package csi

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func class(mode storagev1.VolumeBindingMode) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: driver, VolumeBindingMode: &mode}
}

func claim(by string, change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	name := "fast"
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "1234", Annotations: map[string]string{storageProvisioner: by}},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &name, Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}}},
	}
	if change != nil {
		change(c)
	}
	return c
}

func volume(change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv", Annotations: map[string]string{provisionedBy: driver}, Finalizers: []string{ProvisionerFinalizer}},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			ClaimRef:                      &corev1.ObjectReference{Namespace: "ns", Name: "data", UID: "1234"},
			PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "handle"}},
		},
	}
	if change != nil {
		change(v)
	}
	return v
}

func attachment(change func(*storagev1.VolumeAttachment)) *storagev1.VolumeAttachment {
	name := "pv"
	va := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "va"},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: driver, NodeName: "node", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name}}}
	if change != nil {
		change(va)
	}
	return va
}

func bound(c *corev1.PersistentVolumeClaim) {
	c.Spec.VolumeName, c.Status.Phase = "pv", corev1.ClaimBound
	c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
}
