package resourceclaim

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/protection"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// lookAgain is when a consumer that the cache does not show is looked for again.
const lookAgain = time.Minute

// sighting is what is known of the object of one name and one UID.
type sighting struct {
	uid types.UID
	// deleted: it was seen to be deleted.
	deleted bool
	// cached is what the cache has of the name; nil: nothing. A pod may be of another UID.
	cached metav1.Object
	// looked: the cache lacks it, and live is the UID that a live read found; "" if none.
	looked bool
	live   types.UID
}

// unsure reports whether only a live read can say that it is gone: the cache may be behind.
func (s sighting) unsure() bool {
	return !s.deleted && !s.looked && (s.cached == nil || s.cached.GetUID() != s.uid)
}

// gone reports whether it is certain that there is no such object any more.
func (s sighting) gone() bool { return s.deleted || s.looked && s.live != s.uid }

// over reports whether nothing is used for it any more. What is only found live is not
// judged: the cache shows it in time.
func (s sighting) over() bool {
	if s.gone() {
		return true
	}
	pod, is := s.cached.(*corev1.Pod)
	return is && pod.UID == s.uid && done(pod)
}

// observedClaim is a claim and those that it is reserved for.
type observedClaim struct {
	claim *resourceapi.ResourceClaim
	// consumers are those of a kind that the controller knows.
	consumers map[reference]sighting
	// owner is the pod that controls the claim, if one does.
	owner *sighting
}

type reference = resourceapi.ResourceClaimConsumerReference

// left returns the consumers that stay, also those that the controller does not know.
func (o observedClaim) left() []reference {
	var stay []reference
	for _, ref := range o.claim.Status.ReservedFor {
		if seen, is := o.consumers[ref]; !is || !seen.over() {
			stay = append(stay, ref)
		}
	}
	return stay
}

// unseenAgain is when to look again at consumers that only a live read has shown: one that
// goes before the cache has it wakes nobody.
func (o observedClaim) unseenAgain() time.Duration {
	for _, seen := range o.consumers {
		if seen.live != "" {
			return lookAgain
		}
	}
	return 0
}

func (o observedClaim) plan() act.Plan {
	left := o.left()
	removed := len(o.claim.Status.ReservedFor) - len(left)
	held := slices.Contains(o.claim.Finalizers, resourceapi.Finalizer)
	switch {
	case removed > 0 && len(left) > 0:
		return act.Plan{
			Why:    fmt.Sprintf("%d of %d consumers have ended: removing them", removed, removed+len(left)),
			Stages: act.Stages(act.Status{Of: o.claim, Set: func(c client.Object) { c.(*resourceapi.ResourceClaim).Status.ReservedFor = left }}),
		}
	case removed > 0 && held:
		return o.deallocate(fmt.Sprintf("all %d consumers have ended", removed))
	case removed > 0:
		return act.Plan{
			Why: fmt.Sprintf("all %d consumers have ended", removed), Then: o.afterStatus,
			Stages: act.Stages(act.Status{Of: o.claim, Set: func(c client.Object) { c.(*resourceapi.ResourceClaim).Status.ReservedFor = nil }}),
		}
	case len(left) > 0:
		return act.Plan{Why: fmt.Sprintf("%d consumers need it", len(left)), RequeueAfter: o.unseenAgain()}
	case o.claim.DeletionTimestamp != nil && held && o.claim.Status.Allocation != nil:
		return o.deallocate("it is being deleted and has no consumers")
	case o.claim.DeletionTimestamp != nil && held:
		p := o.free(o.claim)
		p.Why = "it is being deleted and has no consumers"
		return p
	}
	return o.remove(o.claim)
}

// deallocate empties the consumers and the allocation in one write, then lets the claim go.
func (o observedClaim) deallocate(why string) act.Plan {
	return act.Plan{Why: why, Then: o.afterStatus, Stages: act.Stages(act.Status{Of: o.claim, Set: func(c client.Object) {
		status := &c.(*resourceapi.ResourceClaim).Status
		status.ReservedFor, status.Allocation = nil, nil
	}})}
}

// afterStatus goes on with the claim as it is after its status was written.
func (o observedClaim) afterStatus(results act.Results) act.Plan {
	claim, is := results[len(results)-1].Object.(*resourceapi.ResourceClaim)
	switch {
	case !is:
		return act.Plan{Why: "the claim is gone"}
	case slices.Contains(claim.Finalizers, resourceapi.Finalizer):
		return o.free(claim)
	}
	return o.remove(claim)
}

// free takes the finalizer off, and then deletes the claim if its pod is over.
func (o observedClaim) free(claim *resourceapi.ResourceClaim) act.Plan {
	return act.Plan{
		Why: "it is not allocated any more", Stages: act.Stages(protection.Free(claim, resourceapi.Finalizer)),
		Then: func(act.Results) act.Plan { return o.remove(claim) },
	}
}

// remove deletes a claim without consumers whose pod is over and still there. After a pod that
// is gone the garbage collector deletes it.
func (o observedClaim) remove(claim *resourceapi.ResourceClaim) act.Plan {
	switch {
	case claim.DeletionTimestamp != nil:
		return act.Plan{Why: "it is being deleted"}
	case o.owner == nil:
		return act.Plan{Why: "it has no consumers, and no pod controls it"}
	case o.owner.cached == nil:
		return act.Plan{Why: "its pod is not in the cache: if it is gone, the garbage collector deletes the claim"}
	case !o.owner.over():
		return act.Plan{Why: "its pod may need it"}
	}
	return act.Plan{Why: "its pod has ended", Stages: act.Stages(act.Delete{Of: claim})}
}
