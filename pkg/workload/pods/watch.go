package pods

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// WakeControllers wakes the object of this kind that controls a pod, and the one that did so
// before. It returns the pod if nobody controls it now.
func WakeControllers(kind string, c runner.Change[corev1.Pod], wake runner.Wake[types.NamespacedName]) *corev1.Pod {
	if c.Old != nil && c.New != nil && c.Old.ResourceVersion == c.New.ResourceVersion {
		return nil // a resync; what controls pods is resynced itself
	}
	before, was := controllerOf(c.Old, kind)
	after, is := controllerOf(c.New, kind)
	if was && (!is || before != after) {
		wake.Add(before)
	}
	if is {
		wake.Add(after)
	}
	if c.New == nil || metav1.GetControllerOfNoCopy(c.New) != nil {
		return nil
	}
	return c.New
}

func controllerOf(pod *corev1.Pod, kind string) (types.NamespacedName, bool) {
	if pod == nil {
		return types.NamespacedName{}, false
	}
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || ref.Kind != kind {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: pod.Namespace, Name: ref.Name}, true
}
