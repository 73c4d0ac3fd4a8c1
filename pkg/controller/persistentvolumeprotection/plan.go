package persistentvolumeprotection

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/protection"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// Finalizer holds a volume while it is bound.
const Finalizer = "kubernetes.io/pv-protection"

// plan goes by the phase of the volume alone: one that only names a claim is not bound.
func plan(volume *corev1.PersistentVolume, _ time.Time) act.Plan {
	user := ""
	if volume.Status.Phase == corev1.VolumeBound {
		user = "it is bound to a claim"
	}
	return protection.Plan(volume, Finalizer, user)
}
