package selinuxwarning

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	storageinformers "k8s.io/client-go/informers/storage/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// Caches are what the controller reads. The pods are those of [Informers].
type Caches struct {
	Pods    coreinformers.PodInformer
	Claims  coreinformers.PersistentVolumeClaimInformer
	Volumes coreinformers.PersistentVolumeInformer
	Drivers storageinformers.CSIDriverInformer
}

// Controller warns of pods in conflict; its keys are the names of pods.
type Controller struct {
	*reconcile.Controller[key]
	pods               toolscache.Indexer
	claims, persistent toolscache.Store
	drivers            storagelisters.CSIDriverLister
	book               *book
}

// New returns the controller, which is not running yet.
func New(in Caches, hand reconcile.Hand) (*Controller, error) {
	if err := cache.Ensure(in.Pods.Informer(), cache.PodsByClaim); err != nil {
		return nil, err
	}
	c := &Controller{
		pods: in.Pods.Informer().GetIndexer(), claims: in.Claims.Informer().GetStore(), persistent: in.Volumes.Informer().GetStore(),
		drivers: in.Drivers.Lister(), book: newBook(),
	}
	register(c.book)
	c.Controller = reconcile.New(reconcile.Options[key]{
		// One worker: each pod is compared with what was noted of the others.
		Runner: runner.Options[key]{Name: "selinux-warning-controller", Queue: "selinux_warning", Workers: 1},
		Hand:   hand,
		Note:   func(pod key, of any) { c.note(pod, of.(noted)) },
	}, c.observe, plan)
	return c, c.watch(in)
}

// note puts what was judged into the book. A driver that has changed meanwhile has not
// woken the pod.
func (c *Controller) note(pod key, now noted) {
	c.book.set(pod, now)
	for _, u := range now.uses {
		if u.driver != "" && c.supports(u.driver) != u.supported {
			c.Add(pod)
		}
	}
}

func (c *Controller) watch(in Caches) error {
	return errors.Join(
		runner.Watch(c.Runner, in.Pods.Informer(), func(change runner.Change[corev1.Pod], wake runner.Wake[key]) {
			if wakes(change) {
				wake.Add(client.ObjectKeyFromObject(change.Now()))
			}
		}),
		runner.Watch(c.Runner, in.Claims.Informer(), func(change runner.Change[corev1.PersistentVolumeClaim], wake runner.Wake[key]) {
			if newlyBound(change) {
				c.wakeUsers(client.ObjectKeyFromObject(change.New), wake)
			}
		}),
		runner.Watch(c.Runner, in.Volumes.Informer(), func(change runner.Change[corev1.PersistentVolume], wake runner.Wake[key]) {
			if ref := newlyClaimed(change); ref != nil {
				c.wakeUsers(key{Namespace: ref.Namespace, Name: ref.Name}, wake)
			}
		}),
		runner.Watch(c.Runner, in.Drivers.Informer(), func(change runner.Change[storagev1.CSIDriver], wake runner.Wake[key]) {
			if mountsWithLabels(change.Old) == mountsWithLabels(change.New) {
				return
			}
			for _, pod := range c.book.with(change.Now().Name) {
				wake.Add(pod)
			}
		}),
	)
}

// wakeUsers wakes the pods that use a claim.
func (c *Controller) wakeUsers(claim key, wake runner.Wake[key]) {
	pods, _ := cache.Lookup[corev1.Pod](c.pods, cache.PodsByClaim, claim.String()) // the index is there
	for _, pod := range pods {
		wake.Add(client.ObjectKeyFromObject(pod))
	}
}

// wakes reports whether a pod is to be judged: it is new, or it is gone or has ended.
func wakes(change runner.Change[corev1.Pod]) bool {
	before, after := change.Old, change.New
	return before == nil || after == nil || before.UID != after.UID || pods.Terminal(before) != pods.Terminal(after)
}

// newlyBound reports whether a claim has got its volume, or one that has it another owner.
func newlyBound(change runner.Change[corev1.PersistentVolumeClaim]) bool {
	bound := func(c *corev1.PersistentVolumeClaim) bool {
		return c != nil && c.Status.Phase == corev1.ClaimBound && c.Spec.VolumeName != ""
	}
	return bound(change.New) && (!bound(change.Old) || change.Old.UID != change.New.UID || !volumes.SameController(change.Old, change.New))
}

// newlyClaimed returns the claim that a volume has got.
func newlyClaimed(change runner.Change[corev1.PersistentVolume]) *corev1.ObjectReference {
	if change.New == nil || change.New.Spec.ClaimRef == nil {
		return nil
	}
	now := change.New.Spec.ClaimRef
	if old := change.Old; old != nil && old.Spec.ClaimRef != nil && old.Spec.ClaimRef.UID == now.UID {
		return nil
	}
	return now
}
