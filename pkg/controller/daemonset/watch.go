package daemonset

import (
	"errors"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/rejections"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

type wake = runner.Wake[Key]

// watch says which change wakes which DaemonSet, and marks the nodes it concerns.
func (c *Controller) watch(sets, history, pods, nodes toolscache.SharedInformer) error {
	return errors.Join(
		runner.Watch(c.daemons.Runner, sets, c.setChanged),
		runner.Watch(c.daemons.Runner, history, c.revisionChanged),
		runner.Watch(c.daemons.Runner, pods, c.podChanged),
		runner.Watch(c.nodeRunner, nodes, nodeChanged),
	)
}

// setChanged wakes a set; a resync has all of its nodes looked at again.
func (c *Controller) setChanged(change runner.Change[appsv1.DaemonSet], w wake) {
	ds := change.Now()
	key := Key{Namespace: ds.Namespace, Name: ds.Name}
	if change.Old != nil && change.New != nil && change.Old.ResourceVersion == change.New.ResourceVersion {
		if b := c.known(key, ds.UID); b != nil {
			b.markAll()
		}
	}
	w.Add(key)
}

// revisionChanged wakes the set that controls the revision, the one that did so before, and
// for one that nobody controls the sets that could adopt it.
func (c *Controller) revisionChanged(change runner.Change[appsv1.ControllerRevision], w wake) {
	if change.Old != nil && change.New != nil && change.Old.ResourceVersion == change.New.ResourceVersion {
		return
	}
	for _, state := range []*appsv1.ControllerRevision{change.Old, change.New} {
		if state == nil {
			continue
		}
		if ref := metav1.GetControllerOfNoCopy(state); ref != nil && ref.Kind == kind.Kind {
			w.Add(Key{Namespace: state.Namespace, Name: ref.Name})
		}
	}
	if change.New != nil && metav1.GetControllerOfNoCopy(change.New) == nil {
		c.wakeAdopters(change.New, w)
	}
}

// podChanged wakes the set that controls the pod, the one that did so before, and
// for a pod that nobody controls the sets that could adopt it.
func (c *Controller) podChanged(change runner.Change[corev1.Pod], w wake) {
	if !concerns(change.Old) && !concerns(change.New) || change.Old != nil && change.New != nil && alike(change.Old, change.New) {
		return
	}
	c.wakeOwner(change.Old, w)
	c.wakeOwner(change.New, w)
	pod := change.New
	if pod != nil && pods.Adoptable(pod) && (change.Old == nil || !pods.Adoptable(change.Old) || !maps.Equal(change.Old.Labels, pod.Labels)) {
		c.wakeAdopters(pod, w)
	}
}

// concerns reports whether a pod may be of a DaemonSet or become so.
func concerns(pod *corev1.Pod) bool {
	if pod == nil {
		return false
	}
	ref := metav1.GetControllerOfNoCopy(pod)
	return ref == nil || ref.Kind == kind.Kind
}

// alike reports whether nothing changed that a node is considered by.
func alike(a, b *corev1.Pod) bool {
	return a.UID == b.UID && nodeOf(a) == nodeOf(b) && a.Status.Phase == b.Status.Phase &&
		a.DeletionTimestamp.Equal(b.DeletionTimestamp) && maps.Equal(a.Labels, b.Labels) &&
		pods.Ready(a) == pods.Ready(b) && rejections.Accepted(a) == rejections.Accepted(b) && pods.ReadySince(a).Equal(pods.ReadySince(b)) &&
		apiequality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences)
}

func (c *Controller) wakeOwner(pod *corev1.Pod, w wake) {
	if pod == nil {
		return
	}
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || ref.Kind != kind.Kind {
		return
	}
	key := Key{Namespace: pod.Namespace, Name: ref.Name}
	if b := c.known(key, ref.UID); b != nil {
		b.mark(nodeOf(pod))
	}
	// A set that has just adopted the pod has no book yet, and waits for it.
	w.Add(key)
}

func (c *Controller) wakeAdopters(orphan metav1.Object, w wake) {
	sets, err := cache.Selecting(c.setIndex, func(ds *appsv1.DaemonSet) (labels.Selector, error) { return c.selectors.Of(ds, ds.Spec.Selector) }, orphan)
	if err != nil {
		klog.Background().WithName(Name).Error(err, "Cannot find the DaemonSets that could adopt an object; they are not woken", "object", klog.KObj(orphan))
		return
	}
	for _, ds := range sets {
		w.Add(Key{Namespace: ds.Namespace, Name: ds.Name})
	}
}

// nodeChanged wakes a node for what decides where pods are to be. What a node
// reports about itself wakes nobody.
func nodeChanged(change runner.Change[corev1.Node], w runner.Wake[string]) {
	before, after := change.Old, change.New
	if before != nil && after != nil && before.UID == after.UID && maps.Equal(before.Labels, after.Labels) && slices.EqualFunc(before.Spec.Taints, after.Spec.Taints, func(a, b corev1.Taint) bool {
		return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect
	}) {
		return
	}
	w.Add(change.Now().Name)
}
