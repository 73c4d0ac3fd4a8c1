package why

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
)

func judgeServiceHere(l *look, service *corev1.Service, _ []Controller) finding {
	slices, known := l.slicesOf(service)
	if !known && service.Spec.Type != corev1.ServiceTypeExternalName {
		return finding{facts: []string{"type " + string(service.Spec.Type)}}.with(Unknown, "its EndpointSlices are in no cache of a controller that runs here")
	}
	return judgeService(service, slices)
}

// judgeService is about a Service with these slices.
func judgeService(service *corev1.Service, slices []*discoveryv1.EndpointSlice) finding {
	ready, all := 0, 0
	for _, slice := range slices {
		r, n := endpointsOf(slice)
		ready, all = ready+r, all+n
	}
	f := finding{facts: []string{"type " + string(service.Spec.Type), plural(len(slices), "slice"), fmt.Sprintf("%d of %d endpoints ready", ready, all)}}
	switch {
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		return f.with(Complete, "it is a name for "+service.Spec.ExternalName)
	case service.Spec.Type == corev1.ServiceTypeLoadBalancer && len(service.Status.LoadBalancer.Ingress) == 0:
		return f.with(Waiting, "it waits for a cloud to give it a load balancer")
	case len(service.Spec.Selector) == 0 && all == 0:
		return f.with(Waiting, "it has no selector, and nobody has written endpoints for it")
	case all == 0:
		return f.with(Waiting, "no pod that has an address matches its selector")
	case ready == 0:
		return f.with(Waiting, fmt.Sprintf("none of its %s is ready", plural(all, "endpoint")))
	}
	return f.with(Complete, fmt.Sprintf("%d of %s ready", ready, plural(all, "endpoint")))
}

func endpointsOf(slice *discoveryv1.EndpointSlice) (ready, all int) {
	for i := range slice.Endpoints {
		if ptr.Deref(slice.Endpoints[i].Conditions.Ready, true) {
			ready++
		}
	}
	return ready, len(slice.Endpoints)
}

func judgeSlice(slice *discoveryv1.EndpointSlice) finding {
	ready, all := endpointsOf(slice)
	f := finding{facts: []string{string(slice.AddressType), fmt.Sprintf("%d of %d endpoints ready", ready, all), "written by " + slice.Labels[discoveryv1.LabelManagedBy]}}
	return f.with(Complete, fmt.Sprintf("%d of %s ready", ready, plural(all, "endpoint")))
}
