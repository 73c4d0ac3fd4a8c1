package resourceclaim

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

var claimKind = resourceapi.SchemeGroupVersion.WithKind("ResourceClaim")

func (c *Controller) observe(ctx context.Context, k key) (observed, error) {
	switch k.kind {
	case ofPod:
		return c.observePod(ctx, k.NamespacedName)
	case ofGroup:
		return c.observeGroup(ctx, k.NamespacedName)
	}
	return c.observeClaim(ctx, k.NamespacedName)
}

func (c *Controller) observePod(ctx context.Context, name types.NamespacedName) (observed, error) {
	pod, err := reconcile.Cached[corev1.Pod](c.pods, name)
	if err != nil {
		return nil, err
	}
	o := observedPod{pod: pod, groups: c.groups != nil}
	if pod.DeletionTimestamp != nil || done(pod) {
		return o, nil
	}
	if group := groupOf(pod); o.groups && group != "" {
		o.group = cached[schedulingv1alpha2.PodGroup](c.groups, pod.Namespace, group)
		if o.group == nil {
			o.groupMissing = fmt.Errorf("the pod group %q is not in the cache", group)
			return o, nil
		}
	}
	o.holder, err = c.holder(ctx, ownerOfPod(pod), o.group)
	return o, err
}

func (c *Controller) observeGroup(ctx context.Context, name types.NamespacedName) (observed, error) {
	if c.groups == nil {
		return nil, reconcile.ErrAbsent
	}
	group, err := reconcile.Cached[schedulingv1alpha2.PodGroup](c.groups, name)
	if err != nil {
		return nil, err
	}
	h, err := c.holder(ctx, ownerOfGroup(group), nil)
	return observedGroup{h}, err
}

// holder looks up the claims of an owner. Group is that of a pod, if it shares claims.
func (c *Controller) holder(ctx context.Context, of owner, group *schedulingv1alpha2.PodGroup) (holder, error) {
	h := holder{
		owner: of, named: map[string]*resourceapi.ResourceClaim{}, live: map[string]bool{},
		templates: map[string]*resourceapi.ResourceClaimTemplate{}, listsAllowed: c.prioritizedList,
	}
	var err error
	if h.owned, err = cache.Controlled[resourceapi.ResourceClaim](c.claims, of.GetNamespace(), of.GetUID()); err != nil {
		return h, err
	}
	names := of.claimNames()
	if pod, is := of.Object.(*corev1.Pod); is && group != nil {
		h.shared = fromGroup(pod, group)
		for _, claim := range h.shared {
			if claim != nil {
				names = append(names, *claim)
			}
		}
	}
	for _, name := range names {
		h.named[name] = cached[resourceapi.ResourceClaim](c.claims, of.GetNamespace(), name)
	}
	for _, name := range of.templateNames() {
		h.templates[name] = cached[resourceapi.ResourceClaimTemplate](c.templates, of.GetNamespace(), name)
	}
	return h, c.lookForRecorded(ctx, h)
}

// lookForRecorded reads live the claims that are recorded and that the cache lacks: it may be
// behind, and a second claim would be made.
func (c *Controller) lookForRecorded(ctx context.Context, h holder) error {
	for _, w := range h.wants {
		e, recorded := h.entryOf(w.name)
		if _, shared := h.shared[w.name]; w.template == nil || shared || !recorded || e.claim == nil || h.named[*e.claim] != nil {
			continue
		}
		if _, is := h.known(w, nil); is {
			continue
		}
		live, err := c.readLive(ctx, claimKind, h.GetNamespace(), *e.claim)
		if err != nil {
			return err
		}
		h.live[*e.claim] = live != nil && h.keeps(live)
	}
	return nil
}

func (c *Controller) observeClaim(ctx context.Context, name types.NamespacedName) (observed, error) {
	claim, err := reconcile.Cached[resourceapi.ResourceClaim](c.claims, name)
	if err != nil {
		return nil, err
	}
	o := observedClaim{claim: claim, consumers: map[reference]sighting{}}
	for _, ref := range claim.Status.ReservedFor {
		kind, is := c.kindOf(ref)
		if !is {
			continue
		}
		if o.consumers[ref], err = c.see(ctx, kind, claim.Namespace, ref.Name, ref.UID); err != nil {
			return nil, err
		}
	}
	ref := controllerOf(claim, podKind.Kind)
	if ref == nil || len(o.left()) > 0 {
		return o, nil
	}
	if c.cachedOf(podKind, claim.Namespace, ref.Name) == nil {
		return o, nil // without the pod it is up to the garbage collector
	}
	seen, looked := o.consumers[reference{Resource: "pods", Name: ref.Name, UID: ref.UID}]
	if !looked {
		seen, err = c.see(ctx, podKind, claim.Namespace, ref.Name, ref.UID)
	}
	o.owner = &seen
	return o, err
}

// kindOf returns the kind of a consumer, if it is one that the controller knows.
func (c *Controller) kindOf(ref reference) (schema.GroupVersionKind, bool) {
	switch {
	case ref.APIGroup == "" && ref.Resource == "pods":
		return podKind, true
	case c.groups != nil && ref.APIGroup == groupKind.Group && ref.Resource == "podgroups":
		return groupKind, true
	}
	return schema.GroupVersionKind{}, false
}

// see finds out whether the very object of a name is there, live if the cache does not show it.
func (c *Controller) see(ctx context.Context, kind schema.GroupVersionKind, namespace, name string, uid types.UID) (sighting, error) {
	s := sighting{uid: uid}
	_, s.deleted = c.deleted.Get(uid)
	if s.cached = c.cachedOf(kind, namespace, name); !s.unsure() {
		return s, nil
	}
	live, err := c.readLive(ctx, kind, namespace, name)
	if err != nil {
		return s, err
	}
	if s.looked = true; live != nil {
		s.live = live.UID
	}
	return s, nil
}

func (c *Controller) cachedOf(kind schema.GroupVersionKind, namespace, name string) metav1.Object {
	if kind == groupKind {
		if group := cached[schedulingv1alpha2.PodGroup](c.groups, namespace, name); group != nil {
			return group
		}
		return nil
	}
	if pod := cached[corev1.Pod](c.pods, namespace, name); pod != nil {
		return pod
	}
	return nil
}

// readLive reads the metadata of an object; nil if there is none of the name.
func (c *Controller) readLive(ctx context.Context, kind schema.GroupVersionKind, namespace, name string) (*metav1.PartialObjectMetadata, error) {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(kind)
	err := c.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, live)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s %s/%s live: %w", kind.Kind, namespace, name, err)
	}
	return live, nil
}

// cached returns an object from its cache; nil if there is none of the name.
func cached[T any](store consistency.Store, namespace, name string) *T {
	object, _ := reconcile.Cached[T](store, types.NamespacedName{Namespace: namespace, Name: name})
	return object
}
