package tainteviction

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// observed is what a plan for a pod is made from.
type observed struct {
	key types.NamespacedName
	// pod is nil when it is gone, and its deletion was waiting.
	pod    *corev1.Pod
	in     surroundings
	booked *appointment
	// cleared is when all NoExecute taints of its node have last gone, as a number.
	cleared int
}

func (c *Controller) observe(_ context.Context, key types.NamespacedName) (observed, error) {
	o := observed{key: key, booked: c.appointmentOf(key)}
	pod, err := reconcile.Cached[corev1.Pod](c.pods, key)
	switch {
	case err != nil && o.booked != nil:
		return o, nil
	case err != nil:
		return o, err
	}
	o.pod = pod
	o.cleared = c.clearedOf(pod.Spec.NodeName) // before the taints are read: those that go later cancel
	o.in = c.surroundings(pod)
	return o, nil
}

func (c *Controller) surroundings(pod *corev1.Pod) surroundings {
	node, err := c.nodes.Get(pod.Spec.NodeName)
	if err != nil {
		return surroundings{gone: true}
	}
	return surroundings{taints: noExecute(node), compares: c.compares}
}
