package persistentvolumeclaimprotection

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kube-kcm/kube-controller-manager/pkg/protection"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// Finalizer holds a claim while a pod uses it.
const Finalizer = "kubernetes.io/pvc-protection"

// observed is a claim and what is known of the pods that use it.
type observed struct {
	claim *corev1.PersistentVolumeClaim
	// pods are those in the cache that name the claim or may own it.
	pods []*corev1.Pod
	// live are those that a list for several claims has shown, if waited.
	live   []*corev1.Pod
	waited bool
	// waiting are the claims of the namespace that are being deleted by now.
	waiting sets.Set[types.UID]
	// unused: the condition Unused is kept too.
	unused bool
}

func plan(o observed, now time.Time) act.Plan {
	user := holder(o.claim, o.pods)
	switch {
	case o.unused && o.claim.DeletionTimestamp == nil:
		return report(o.claim, reference(o.claim, o.pods), now)
	case !protection.Held(o.claim, Finalizer) || user != "":
		return protection.Plan(o.claim, Finalizer, using(user))
	case o.waited:
		return shown(o.claim, o.live, sharedAgain)
	}
	return confirm(o)
}

// confirm lists the pods live before the finalizer is taken off.
func confirm(o observed) act.Plan {
	return act.Plan{
		Why:    "no pod in the cache uses it: listing the pods live",
		Stages: act.Stages(look(o.claim.Namespace)),
		Note: func(r act.Results) any {
			others := o.waiting.Clone().Delete(o.claim.UID)
			if of, at := listed(r); of != nil && len(others) > 0 {
				return &listing{of, at, others}
			}
			return nil
		},
		Then: func(r act.Results) act.Plan {
			of, _ := listed(r)
			return shown(o.claim, of[o.claim.Name], untilCached)
		},
	}
}

// shown is the plan by a live list. What uses the claim by it may have gone since, so it is
// looked at again.
func shown(claim *corev1.PersistentVolumeClaim, live []*corev1.Pod, again time.Duration) act.Plan {
	user := holder(claim, live)
	p := protection.Plan(claim, Finalizer, using(user))
	if user != "" {
		p.RequeueAfter = again
	}
	return p
}

func using(pod string) string {
	if pod == "" {
		return ""
	}
	return "pod " + pod + " uses it"
}
