package replicas

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// WatchSets wakes each set for its own changes. T is the set's struct type.
func WatchSets[T any](e *Engine, informer toolscache.SharedInformer) error {
	return runner.Watch(e.Runner, informer, func(c runner.Change[T], wake runner.Wake[Key]) {
		set, ok := any(c.Now()).(metav1.Object)
		if !ok {
			return
		}
		wake.Add(Key{Namespace: set.GetNamespace(), Name: set.GetName()})
	})
}

// podChanged wakes the set that controls the pod, the one that did so before,
// and for a pod that nobody controls the sets that could adopt it.
func (e *Engine) podChanged(c runner.Change[corev1.Pod], wake runner.Wake[Key]) {
	pod := pods.WakeControllers(e.kind.Type().Kind, c, wake)
	if pod != nil && pods.Active(pod) && !(c.Old != nil && adoptable(c.Old) && maps.Equal(c.Old.Labels, pod.Labels)) {
		e.wakeSelecting(pod, wake)
	}
}

func (e *Engine) wakeSelecting(pod *corev1.Pod, wake runner.Wake[Key]) {
	keys, err := e.kind.Selecting(pod)
	if err != nil {
		klog.Background().WithName(e.Name()).Error(err, "Cannot find the owners that could adopt a pod; they are not woken", "pod", klog.KObj(pod))
		return
	}
	for _, key := range keys {
		wake.Add(key)
	}
}

func adoptable(pod *corev1.Pod) bool {
	return metav1.GetControllerOfNoCopy(pod) == nil && pods.Active(pod)
}
