package csi

import (
	"crypto/sha256"
	"fmt"
	"regexp"

	corev1 "k8s.io/api/core/v1"
)

// The annotations and finalizers that side-cars read and write.
const (
	storageProvisioner     = "volume.kubernetes.io/storage-provisioner"
	betaStorageProvisioner = "volume.beta.kubernetes.io/storage-provisioner"
	selectedNode           = "volume.kubernetes.io/selected-node"
	storageResizer         = "volume.kubernetes.io/storage-resizer"
	provisionedBy          = "pv.kubernetes.io/provisioned-by"
	migratedTo             = "pv.kubernetes.io/migrated-to"
	deletionSecretName     = "volume.kubernetes.io/provisioner-deletion-secret-name"
	deletionSecretSpace    = "volume.kubernetes.io/provisioner-deletion-secret-namespace"

	// ProvisionerFinalizer keeps a volume until its provisioner has deleted what is behind it.
	ProvisionerFinalizer = "external-provisioner.volume.kubernetes.io/finalizer"
)

var unfit = regexp.MustCompile(`[^a-zA-Z0-9-]`)

// AttacherFinalizer is what the attacher of a driver puts on attachments and volumes.
func AttacherFinalizer(driver string) string {
	return "external-attacher/" + unfit.ReplaceAllString(driver, "-")
}

// AttachmentName is the name of the VolumeAttachment for a volume and a node.
func AttachmentName(driver, handle, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(handle+driver+node)))
}

// UniqueName is what the status of a node calls a volume of a driver.
func UniqueName(driver, handle string) string {
	return "kubernetes.io/csi/" + driver + "^" + handle
}

// volumeName is the name of the volume that is provisioned for a claim.
func volumeName(claim *corev1.PersistentVolumeClaim) string { return "pvc-" + string(claim.UID) }
