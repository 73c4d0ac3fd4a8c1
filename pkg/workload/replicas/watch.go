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
	before, was := e.ownerOf(c.Old)
	after, is := e.ownerOf(c.New)
	if c.Old != nil && c.New != nil && c.Old.ResourceVersion == c.New.ResourceVersion {
		return // a resync; the sets are resynced themselves
	}
	if was && (!is || before != after) {
		wake.Add(before)
	}
	if is {
		wake.Add(after)
		return
	}
	if c.New != nil && adoptable(c.New) && !(c.Old != nil && adoptable(c.Old) && maps.Equal(c.Old.Labels, c.New.Labels)) {
		e.wakeSelecting(c.New, wake)
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

// ownerOf is the set of the engine's kind that the pod names as its controller.
func (e *Engine) ownerOf(pod *corev1.Pod) (Key, bool) {
	if pod == nil {
		return Key{}, false
	}
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || ref.Kind != e.kind.Type().Kind {
		return Key{}, false
	}
	return Key{Namespace: pod.Namespace, Name: ref.Name}, true
}

func adoptable(pod *corev1.Pod) bool {
	return metav1.GetControllerOfNoCopy(pod) == nil && pods.Active(pod)
}
