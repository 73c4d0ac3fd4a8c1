package attachdetach

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

var (
	// pvsByVolume finds PersistentVolumes by the name of the volume that they are.
	pvsByVolume = cache.NewIndex("attachableVolume", func(object any) ([]string, error) {
		if pv, is := object.(*corev1.PersistentVolume); is {
			if source, err := volumes.OfPV(pv); err == nil && source != nil {
				return []string{string(source.Unique)}, nil
			}
		}
		return nil, nil
	})
	// podsByVolume finds the pods that have a node by the volumes that they describe themselves.
	podsByVolume = cache.NewIndex("attachableInlineVolume", func(object any) ([]string, error) {
		pod, is := object.(*corev1.Pod)
		if !is || pod.Spec.NodeName == "" {
			return nil, nil
		}
		var names []string
		for i := range pod.Spec.Volumes {
			if source, err := volumes.OfPodVolume(&pod.Spec.Volumes[i], pod.Namespace); err == nil && source != nil {
				names = append(names, string(source.Unique))
			}
		}
		return names, nil
	})
)

// wanted finds what a volume is and which live pods want it. Who was seen to want it does
// so until it ends, even if its claim is gone.
func (c *Controller) wanted(v *volumeView) error {
	var found []*corev1.Pod
	sources, places := map[types.UID]*volumes.Source{}, map[types.UID]int{}
	pvs, err := cache.Lookup[corev1.PersistentVolume](c.pvs, pvsByVolume, string(v.name))
	if err != nil {
		return err
	}
	slices.SortFunc(pvs, func(a, b *corev1.PersistentVolume) int { return cmp.Compare(a.Name, b.Name) })
	for _, pv := range pvs {
		users, err := c.usersOf(pv)
		if err != nil {
			return err
		}
		source, err := volumes.OfPV(pv)
		if err == nil && source != nil && (v.source == nil || len(users) > 0 && len(found) == 0) {
			v.source = source
		}
		for _, pod := range users {
			// Of several claims for one volume, the first in the pod says what it is.
			at := volumes.Place(pod, pv.Spec.ClaimRef.Name)
			if before, is := places[pod.UID]; !is || at < before {
				places[pod.UID], sources[pod.UID] = at, source.For(pod, pv.Spec.ClaimRef.Name)
			}
		}
		found = append(found, users...)
	}
	inline, err := cache.Lookup[corev1.Pod](c.pods, podsByVolume, string(v.name))
	if err != nil {
		return err
	}
	for _, pod := range inline {
		source := inlineSource(pod, v.name)
		if source != nil && (v.source == nil || len(found) == 0) {
			v.source = source
		}
		sources[pod.UID] = cmp.Or(sources[pod.UID], source)
		found = append(found, pod)
	}
	found = append(found, c.remembered(v.record)...)
	if v.attachable = v.source != nil && c.attachable(v.source); v.attachable {
		v.wants, v.sources = c.live(found), map[string]*volumes.Source{}
	}
	for node, pods := range v.wants {
		for _, pod := range pods {
			v.sources[node] = cmp.Or(v.sources[node], sources[pod.UID])
		}
	}
	return nil
}

// usersOf are the pods that use the claim of a PersistentVolume.
func (c *Controller) usersOf(pv *corev1.PersistentVolume) ([]*corev1.Pod, error) {
	if pv.Spec.ClaimRef == nil {
		return nil, nil
	}
	name := pv.Spec.ClaimRef.Namespace + "/" + pv.Spec.ClaimRef.Name
	claim, err := reconcile.Cached[corev1.PersistentVolumeClaim](c.claims, name)
	if err != nil || !volumes.Bound(claim, pv) {
		return nil, nil
	}
	users, err := cache.Lookup[corev1.Pod](c.pods, cache.PodsByClaim, name)
	if err != nil {
		return nil, fmt.Errorf("find the pods of claim %s: %w", name, err)
	}
	return slices.DeleteFunc(users, func(pod *corev1.Pod) bool { return !volumes.Uses(pod, claim) }), nil
}

// remembered are the pods that were seen to want a volume, and are there still.
func (c *Controller) remembered(known record) []*corev1.Pod {
	var there []*corev1.Pod
	for node, p := range known.pairs {
		for _, name := range p.pods {
			pod, err := reconcile.Cached[corev1.Pod](c.pods, name.NamespacedName)
			if err == nil && pod.UID == name.uid && pod.Spec.NodeName == node {
				there = append(there, pod)
			}
		}
	}
	return there
}

// live returns those that run on managed nodes, by node and in order of their names.
func (c *Controller) live(all []*corev1.Pod) map[string][]*corev1.Pod {
	slices.SortFunc(all, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	all = slices.CompactFunc(all, func(a, b *corev1.Pod) bool { return a.UID == b.UID })
	wants := map[string][]*corev1.Pod{}
	for _, pod := range all {
		if node := pod.Spec.NodeName; node != "" && !pods.Stopped(pod) && c.book.managed(node) {
			wants[node] = append(wants[node], pod)
		}
	}
	return wants
}

func inlineSource(pod *corev1.Pod, name volumes.Name) *volumes.Source {
	for i := range pod.Spec.Volumes {
		source, err := volumes.OfPodVolume(&pod.Spec.Volumes[i], pod.Namespace)
		if err == nil && source != nil && source.Unique == name {
			return source
		}
	}
	return nil
}

// attachable reports whether volumes of this source are attached at all. A CSI driver is
// taken to want that until it says otherwise.
func (c *Controller) attachable(source *volumes.Source) bool {
	if csi := source.CSI(); csi != nil {
		driver, err := reconcile.Cached[storagev1.CSIDriver](c.drivers, csi.Driver)
		return err != nil || attaches(driver)
	}
	return source.Flex == nil || c.options.Drivers != nil && c.options.Drivers.Attaches(source.Flex.Driver)
}

// plugged reports whether somebody knows how to detach a volume of this name.
func (c *Controller) plugged(name volumes.Name) bool {
	if _, _, is := volumes.ParseCSI(name); is {
		return true
	}
	plugin := volumes.PluginOf(name)
	return plugin == volumes.ISCSI || plugin == volumes.FC || c.options.Drivers != nil && c.options.Drivers.Attaches(plugin)
}
