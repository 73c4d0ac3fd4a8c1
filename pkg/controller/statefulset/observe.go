package statefulset

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/revisions"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// observed is what the plan is made of.
type observed struct {
	set      *appsv1.StatefulSet
	selector labels.Selector
	// malformed is why pods cannot be made for the set.
	malformed error
	// revisions and members are the revisions and the pods, by what has to become of them.
	revisions ownership.Claims[*appsv1.ControllerRevision]
	members   ownership.Claims[*corev1.Pod]
	// claims are the cached claims of these pods and of those to come, by name.
	claims     map[string]*corev1.PersistentVolumeClaim
	collisions int32
	// byMeaning compares revisions by their meaning: the gate StatefulSetSemanticRevisionComparison.
	byMeaning bool
	// severalAtOnce heeds maxUnavailable: the gate MaxUnavailableStatefulSet.
	severalAtOnce bool
	// backsOff replaces rejected pods ever more rarely; held is what follows from it.
	backsOff bool
	held     *setback

	// What follows is planned in stages from the rest: the set's own pods, those on
	// their way out and those that ended too, its history, and the revisions that it
	// comes from and goes to. The template of current is only there when a pod may be
	// made from it.
	pods            []*corev1.Pod
	history         []*appsv1.ControllerRevision
	current, update revision
}

// observe reads the set and what belongs to it from the caches.
func (c *Controller) observe(_ context.Context, key Key) (observed, error) {
	set, err := c.sets.StatefulSets(key.Namespace).Get(key.Name)
	if err != nil {
		forgetMetrics(key)
		return observed{}, reconcile.ErrAbsent
	}
	o := observed{set: set, collisions: ptr.Deref(set.Status.CollisionCount, 0),
		byMeaning: c.o.SemanticRevisions, severalAtOnce: c.o.MaxUnavailable, backsOff: c.o.RejectedPodBackoff}
	if o.selector, o.malformed = c.check(set); o.malformed != nil {
		return o, nil
	}
	if o.revisions, err = revisions.Claims(c.past, set, o.selector); err != nil {
		return o, err
	}
	if o.members, err = c.members(set, o.selector); err != nil {
		return o, err
	}
	o.claims = c.claimsOf(o)
	return o, nil
}

// check returns the selector of a set that pods can be made for. The API server
// validates all of it, so that another set was written past it.
func (c *Controller) check(set *appsv1.StatefulSet) (labels.Selector, error) {
	selector, err := c.selectors.Of(set, set.Spec.Selector)
	switch {
	case err != nil:
		return nil, fmt.Errorf("malformed selector: %w", err)
	case selector.Empty():
		return nil, fmt.Errorf("empty selector")
	case !selector.Matches(labels.Set(set.Spec.Template.Labels)):
		return nil, fmt.Errorf("selector %s does not match the template's labels", selector)
	}
	return selector, nil
}

// members reads the set's pods, and those it could adopt.
func (c *Controller) members(set *appsv1.StatefulSet, selector labels.Selector) (ownership.Claims[*corev1.Pod], error) {
	owned, err := cache.Controlled[corev1.Pod](c.pods, set.Namespace, set.UID)
	if err != nil {
		return ownership.Claims[*corev1.Pod]{}, err
	}
	orphans, err := cache.Adoptable[corev1.Pod](c.pods, set.Namespace, selector)
	if err != nil {
		return ownership.Claims[*corev1.Pod]{}, err
	}
	// An orphan whose name is not that of a pod of the set is none of it.
	orphans = slices.DeleteFunc(orphans, func(pod *corev1.Pod) bool { _, ok := ordinalIn(set, pod); return !ok })
	return letGo(set, ownership.Claim(set, selector, append(owned, orphans...))), nil
}

// letGo adds to the pods to release those whose name is none of the set, whatever
// their labels. A set that is being deleted releases nothing.
func letGo(set *appsv1.StatefulSet, claims ownership.Claims[*corev1.Pod]) ownership.Claims[*corev1.Pod] {
	if set.DeletionTimestamp != nil {
		return claims
	}
	claims.Owned = slices.DeleteFunc(claims.Owned, func(pod *corev1.Pod) bool {
		stray := !namedFor(set, pod)
		if stray {
			claims.Release = append(claims.Release, pod)
		}
		return stray
	})
	return claims
}

// claimsOf reads the claims of all places, and of the pods beyond them.
func (c *Controller) claimsOf(o observed) map[string]*corev1.PersistentVolumeClaim {
	found := map[string]*corev1.PersistentVolumeClaim{}
	templates := claimTemplates(o.set)
	if len(templates) == 0 {
		return found
	}
	look := func(ordinal int) {
		for _, template := range templates {
			name := claimName(o.set, template, ordinal)
			if item, ok, err := c.claims.GetByKey(o.set.Namespace + "/" + name); err == nil && ok {
				found[name] = item.(*corev1.PersistentVolumeClaim)
			}
		}
	}
	o.pods = slices.Concat(o.members.Owned, o.members.Adopt)
	places, condemned := o.lineUp()
	for i := range places {
		look(places[i].ordinal)
	}
	for _, pod := range condemned {
		if ordinal, ok := ordinalIn(o.set, pod); ok {
			look(ordinal)
		}
	}
	return found
}
