package statefulset

import (
	"errors"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// watch adds what wakes a set: its own changes, those of its pods, an orphan with
// the name of one, and the end of a claim that a pod to come may wait for.
func (c *Controller) watch(sets, pods, claims toolscache.SharedInformer) error {
	return errors.Join(
		runner.Watch(c.Runner, sets, c.setChanged),
		runner.Watch(c.Runner, pods, c.podChanged),
		runner.Watch(c.Runner, claims, c.claimChanged),
	)
}

func (c *Controller) setChanged(change runner.Change[appsv1.StatefulSet], wake runner.Wake[Key]) {
	set := change.Now()
	key := Key{Namespace: set.Namespace, Name: set.Name}
	if change.New == nil || change.Old != nil && change.Old.UID != change.New.UID {
		forgetMetrics(key) // the next set of the name may have another policy
	}
	wake.Add(key)
}

func (c *Controller) podChanged(change runner.Change[corev1.Pod], wake runner.Wake[Key]) {
	// Only the set whose pod would have this name could adopt it.
	if pod := pods.WakeControllers(kind.Kind, change, wake); pod != nil && pod.DeletionTimestamp == nil {
		if of, _, ok := parent(pod.Name); ok {
			c.wakeExisting(pod.Namespace, of, wake)
		}
	}
}

// claimChanged wakes the set whose pod may wait for the end of a claim of this
// name, or that it does not go with the pod before: after each dash in it a set's name may begin.
func (c *Controller) claimChanged(change runner.Change[corev1.PersistentVolumeClaim], wake runner.Wake[Key]) {
	if change.New != nil && (change.Old == nil || apiequality.Semantic.DeepEqual(change.Old.OwnerReferences, change.New.OwnerReferences)) {
		return
	}
	name, _, ok := parent(change.Old.Name)
	for ok {
		if _, name, ok = strings.Cut(name, "-"); ok {
			c.wakeExisting(change.Old.Namespace, name, wake)
		}
	}
}

func (c *Controller) wakeExisting(namespace, name string, wake runner.Wake[Key]) {
	if _, err := c.sets.StatefulSets(namespace).Get(name); err == nil {
		wake.Add(Key{Namespace: namespace, Name: name})
	}
}
