package services

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	endpointsliceutil "k8s.io/endpointslice/util"
)

// Touch is a Service whose endpoints may differ.
type Touch struct {
	types.NamespacedName
	// Leaves reports that an endpoint goes, or takes no traffic any more.
	Leaves bool
}

// Touched returns the Services whose endpoints may differ because a pod changed
// from before to after; nil stands for a pod that does not exist. A change that no
// endpoint shows touches nothing.
func Touched(services toolscache.Indexer, before, after *corev1.Pod) ([]Touch, error) {
	before, after = eligible(before), eligible(after)
	unchanged := before != nil && after != nil && sameEndpoint(before, after)
	if unchanged && maps.Equal(before.Labels, after.Labels) {
		return nil, nil
	}
	was, err := keysOf(services, before)
	if err != nil {
		return nil, err
	}
	is, err := keysOf(services, after)
	if err != nil {
		return nil, err
	}
	touched := make([]Touch, 0, len(is))
	for key := range was {
		if _, both := is[key]; !both || !unchanged {
			touched = append(touched, Touch{key, !both || !onlyTurnsReady(before, after)})
		}
	}
	for key := range is {
		if _, both := was[key]; !both {
			touched = append(touched, Touch{key, false})
		}
	}
	slices.SortFunc(touched, func(a, b Touch) int { return cmp.Compare(a.Name, b.Name) })
	return touched, nil
}

// onlyTurnsReady reports whether all that a change of a pod means is one more
// endpoint that takes traffic.
func onlyTurnsReady(before, after *corev1.Pod) bool {
	if endpointsliceutil.IsPodReady(before) || !endpointsliceutil.IsPodReady(after) {
		return false
	}
	unready := *after
	unready.Status.Conditions = before.Status.Conditions
	return sameEndpoint(before, &unready)
}

// eligible returns the pod if an endpoint can be made of it: it has an address
// and has not run to its end.
func eligible(pod *corev1.Pod) *corev1.Pod {
	if pod == nil || !endpointsliceutil.ShouldPodBeInEndpoints(pod, true) {
		return nil
	}
	return pod
}

// sameEndpoint reports whether two states of a pod make the same endpoint, labels aside.
func sameEndpoint(a, b *corev1.Pod) bool {
	return a.UID == b.UID &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		endpointsliceutil.IsPodReady(a) == endpointsliceutil.IsPodReady(b) &&
		a.Status.PodIP == b.Status.PodIP &&
		slices.Equal(a.Status.PodIPs, b.Status.PodIPs) &&
		a.Spec.NodeName == b.Spec.NodeName &&
		a.Spec.Hostname == b.Spec.Hostname &&
		a.Spec.Subdomain == b.Spec.Subdomain
}

func keysOf(services toolscache.Indexer, pod *corev1.Pod) (map[types.NamespacedName]struct{}, error) {
	if pod == nil {
		return nil, nil
	}
	selecting, err := Selecting(services, pod.Namespace, pod.Labels)
	if err != nil {
		return nil, err
	}
	keys := make(map[types.NamespacedName]struct{}, len(selecting))
	for _, service := range selecting {
		keys[types.NamespacedName{Namespace: service.Namespace, Name: service.Name}] = struct{}{}
	}
	return keys, nil
}
