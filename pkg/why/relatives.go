package why

import (
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	podvolumes "github.com/kube-kcm/kube-controller-manager/pkg/volumes"
)

// indexed returns the cache of a kind that holds all of its objects; nil when there is none.
func (l *look) indexed(kind schema.GroupKind) toolscache.Indexer {
	served, ok := l.kinds.of(kind)
	if !ok {
		return nil
	}
	return l.all(served)
}

func (l *look) all(kind Kind) toolscache.Indexer {
	if found := l.Caches(kind); len(found) > 0 && !found[0].Part && found[0].Synced {
		return found[0].Indexer
	}
	return nil
}

// named is an object by its name, in a cache or not.
func (l *look) named(kind schema.GroupKind, namespace, name string) relative {
	object, _ := l.get(kind, namespace, name)
	return relative{kind, namespace, name, object}
}

// relativesOf are objects that a cache holds. An index that no running controller has
// asked for finds nothing: the owner's own numbers say then what there is.
func relativesOf[T any](kind schema.GroupKind, found []*T, err error) []relative {
	if err != nil {
		return nil
	}
	all := make([]relative, 0, len(found))
	for _, object := range found {
		if o, ok := any(object).(metav1.Object); ok {
			all = append(all, relative{kind, o.GetNamespace(), o.GetName(), object})
		}
	}
	return all
}

// controlled returns what an owner of type O controls.
func controlled[O, T any](kind schema.GroupKind) func(*look, *O) []relative {
	return func(l *look, owner *O) []relative {
		indexer := l.indexed(kind)
		o, ok := any(owner).(metav1.Object)
		if indexer == nil || !ok {
			return nil
		}
		found, err := cache.Controlled[T](indexer, o.GetNamespace(), o.GetUID())
		return relativesOf(kind, found, err)
	}
}

// ofStatefulSet are its pods and the claims of the wanted ones.
func ofStatefulSet(l *look, set *appsv1.StatefulSet) []relative {
	all := controlled[appsv1.StatefulSet, corev1.Pod](podKind)(l, set)
	first := 0
	if set.Spec.Ordinals != nil {
		first = int(set.Spec.Ordinals.Start)
	}
	for n := range min(wanted(set.Spec.Replicas), judgedAtMost) {
		for i := range set.Spec.VolumeClaimTemplates {
			name := set.Spec.VolumeClaimTemplates[i].Name + "-" + set.Name + "-" + strconv.Itoa(first+int(n))
			if claim := l.named(claims, set.Namespace, name); claim.object != nil {
				all = append(all, claim)
			}
		}
	}
	return all
}

// ofPod are the claims of a pod that does not run yet, and on its node what attaches them.
func ofPod(l *look, pod *corev1.Pod) (all []relative) {
	if pod.Status.Phase != corev1.PodPending && pod.Status.Phase != "" {
		return nil
	}
	for i := range pod.Spec.Volumes {
		name, _ := podvolumes.ClaimOf(pod, &pod.Spec.Volumes[i])
		if name == "" {
			continue
		}
		claim := l.named(claims, pod.Namespace, name)
		if of, is := claim.object.(*corev1.PersistentVolumeClaim); is && pod.Spec.NodeName != "" {
			all = append(all, l.attachmentsOf(of.Spec.VolumeName, pod.Spec.NodeName)...)
		}
		all = append(all, claim)
	}
	return append(all, l.devicesOf(pod)...)
}

// devicesOf are the ResourceClaims of a pod, as far as they have been made.
func (l *look) devicesOf(pod *corev1.Pod) (all []relative) {
	var names []*string
	for i := range pod.Spec.ResourceClaims {
		names = append(names, pod.Spec.ResourceClaims[i].ResourceClaimName)
	}
	for i := range pod.Status.ResourceClaimStatuses {
		names = append(names, pod.Status.ResourceClaimStatuses[i].ResourceClaimName)
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		names = append(names, &extended.ResourceClaimName)
	}
	for _, name := range names {
		if name != nil {
			all = append(all, l.named(devices, pod.Namespace, *name))
		}
	}
	return all
}

// ofVolume is where it is attached, or is to be.
func ofVolume(l *look, pv *corev1.PersistentVolume) []relative { return l.attachmentsOf(pv.Name, "") }

// attachmentsOf are those of a PersistentVolume, to one node or, for "", to all of them.
func (l *look) attachmentsOf(volume, node string) []relative {
	indexer := l.indexed(attachments)
	if indexer == nil || volume == "" {
		return nil
	}
	found, err := cache.Lookup[storagev1.VolumeAttachment](indexer, cache.AttachmentsByVolume, volume)
	if node != "" {
		found = slices.DeleteFunc(found, func(va *storagev1.VolumeAttachment) bool { return va.Spec.NodeName != node })
	}
	return relativesOf(attachments, found, err)
}

// ofClaim are its volume and its class.
func ofClaim(l *look, claim *corev1.PersistentVolumeClaim) (all []relative) {
	if claim.Spec.VolumeName != "" {
		all = append(all, l.named(volumes, "", claim.Spec.VolumeName))
	}
	if class := classOf(claim); class != "" {
		all = append(all, l.named(classes, "", class))
	}
	return all
}

// podsUsing returns the pods that name a claim.
func (l *look) podsUsing(claim *corev1.PersistentVolumeClaim) []*corev1.Pod {
	if indexer := l.indexed(podKind); indexer != nil {
		if found, err := cache.Lookup[corev1.Pod](indexer, cache.PodsByClaim, claim.Namespace+"/"+claim.Name); err == nil {
			return found
		}
	}
	return nil
}

// podsOn returns the pods of a node; false when no index has them.
func (l *look) podsOn(node string) ([]*corev1.Pod, bool) {
	indexer := l.indexed(podKind)
	if indexer == nil {
		return nil, false
	}
	found, err := cache.Lookup[corev1.Pod](indexer, cache.PodsByNode, node)
	return found, err == nil
}

// ofNode are its lease, and the pods that leave it or have to.
func ofNode(l *look, node *corev1.Node) []relative {
	all := []relative{l.named(leases, corev1.NamespaceNodeLease, node.Name)}
	on, _ := l.podsOn(node.Name)
	for _, pod := range on {
		if leavingOf(node, pod, l.now).leaves {
			all = append(all, relative{podKind, pod.Namespace, pod.Name, pod})
		}
	}
	return all
}

// slicesOf returns the slices of a Service; false when no index has them.
func (l *look) slicesOf(service *corev1.Service) ([]*discoveryv1.EndpointSlice, bool) {
	indexer := l.indexed(endpointSlice)
	if indexer == nil {
		return nil, false
	}
	found, err := cache.Selected[discoveryv1.EndpointSlice](indexer, service.Namespace, map[string]string{discoveryv1.LabelServiceName: service.Name})
	return found, err == nil
}

func ofService(l *look, service *corev1.Service) []relative {
	slices, _ := l.slicesOf(service)
	return relativesOf(endpointSlice, slices, nil)
}

// ofBudget are the pods that it selects.
func ofBudget(l *look, budget *policyv1.PodDisruptionBudget) []relative {
	indexer := l.indexed(podKind)
	selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
	if indexer == nil || err != nil {
		return nil
	}
	found, err := cache.Matching[corev1.Pod](indexer, budget.Namespace, selector)
	return relativesOf(podKind, found, err)
}

// ofAutoscaler is what it scales.
func ofAutoscaler(l *look, hpa *autoscalingv2.HorizontalPodAutoscaler) []relative {
	target := hpa.Spec.ScaleTargetRef
	return []relative{l.named(schema.FromAPIVersionAndKind(target.APIVersion, target.Kind).GroupKind(), hpa.Namespace, target.Name)}
}

// inNamespace counts the objects of a namespace by kind, as far as caches have them.
func (l *look) inNamespace(namespace string, each func(Kind, toolscache.Indexer, int)) {
	for _, kind := range l.kinds.all {
		if !kind.Namespaced {
			continue
		}
		if indexer := l.all(kind); indexer != nil {
			keys, err := indexer.IndexKeys(toolscache.NamespaceIndex, namespace)
			if err == nil && len(keys) > 0 {
				each(kind, indexer, len(keys))
			}
		}
	}
}

// ofNamespace are the objects that keep a namespace from ending: those that are being
// deleted still. As long as it does not end, nothing belongs to its answer.
func ofNamespace(l *look, namespace *corev1.Namespace) (all []relative) {
	if namespace.DeletionTimestamp == nil {
		return nil
	}
	l.inNamespace(namespace.Name, func(kind Kind, indexer toolscache.Indexer, _ int) {
		items, err := indexer.ByIndex(toolscache.NamespaceIndex, namespace.Name)
		if err != nil {
			return
		}
		for _, item := range items[:min(len(items), judgedAtMost)] {
			if o, ok := item.(metav1.Object); ok && o.GetDeletionTimestamp() != nil {
				all = append(all, relative{kind.GroupKind, namespace.Name, o.GetName(), item})
			}
		}
	})
	return all
}

// leftIn says what is left in a namespace, by kind.
func (l *look) leftIn(namespace string) (facts []string) {
	l.inNamespace(namespace, func(kind Kind, _ toolscache.Indexer, n int) {
		facts = append(facts, fmt.Sprintf("%d %s left", n, kind.GroupResource()))
	})
	return facts
}
