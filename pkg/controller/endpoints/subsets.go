package endpoints

//lint:file-ignore SA1019 the old API is what this controller keeps

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/endpointslice"
	endpointsliceutil "k8s.io/endpointslice/util"
	utilnet "k8s.io/utils/net"

	"github.com/kube-kcm/kube-controller-manager/pkg/services"
)

// offer is a port and the addresses that offer it, in the order of the pods.
type offer struct {
	corev1.EndpointSubset
	// by names the same addresses as a string that can be compared.
	by strings.Builder
	// last is the number of the pod added last, from one.
	last int
}

// subsetsOf returns the subsets that the pods make for a Service, in the one
// order that equal subsets always have. Ports offered by exactly the same
// addresses share a subset.
func subsetsOf(service *corev1.Service, pods []*corev1.Pod) []corev1.EndpointSubset {
	offers := map[services.PortKey]*offer{}
	var order []*offer
	for i, pod := range pods {
		address, ok := addressOf(service, pod)
		if !ok {
			continue
		}
		ready := service.Spec.PublishNotReadyAddresses || endpointsliceutil.IsPodReady(pod)
		for _, port := range portsOf(service, pod) {
			key := services.KeyOf(port)
			o := offers[key]
			if o == nil {
				o = &offer{}
				if port != nil {
					o.Ports = []corev1.EndpointPort{*port}
				}
				offers[key] = o
				order = append(order, o)
			}
			o.add(i, address, ready)
		}
	}
	perPort := make([]corev1.EndpointSubset, len(order))
	for i, o := range order {
		perPort[i] = o.EndpointSubset
	}
	return sorted(services.Together(perPort, func(i int) string { return order[i].by.String() }))
}

// add adds the address of the i-th pod, once for each port.
func (o *offer) add(i int, address corev1.EndpointAddress, ready bool) {
	if o.last == i+1 {
		return // two equal ports of the Service
	}
	o.last = i + 1
	fmt.Fprintf(&o.by, "%d,", i)
	if ready {
		o.Addresses = append(o.Addresses, address)
	} else {
		o.NotReadyAddresses = append(o.NotReadyAddresses, address)
	}
}

// addressOf returns the address of a pod in the Service's first family, or false
// if the pod has none or is no endpoint. A pod that is shutting down is one only
// where the Service publishes addresses that are not ready.
func addressOf(service *corev1.Service, pod *corev1.Pod) (corev1.EndpointAddress, bool) {
	if !endpointsliceutil.ShouldPodBeInEndpoints(pod, service.Spec.PublishNotReadyAddresses) {
		return corev1.EndpointAddress{}, false
	}
	v6 := wantsIPv6(service, pod)
	for _, ip := range pod.Status.PodIPs {
		if utilnet.IsIPv6String(ip.IP) != v6 {
			continue
		}
		address := corev1.EndpointAddress{IP: canonical(ip.IP), TargetRef: &corev1.ObjectReference{
			Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}}
		if pod.Spec.NodeName != "" {
			address.NodeName = &pod.Spec.NodeName
		}
		if endpointsliceutil.ShouldSetHostname(pod, service) {
			address.Hostname = pod.Spec.Hostname
		}
		return address, true
	}
	return corev1.EndpointAddress{}, false
}

// canonical is the one form of an address that EndpointSlices have as well; a pod
// may say it with leading zeros, in capitals, or as IPv4 mapped into IPv6.
func canonical(address string) string {
	if ip := utilnet.ParseIPSloppy(address); ip != nil {
		return ip.String()
	}
	return address
}

// wantsIPv6 reports whether the Endpoints are of IPv6: by the Service's first family, that
// of its cluster IP where the API server set no families, and the pod's own
// for a headless Service without either.
func wantsIPv6(service *corev1.Service, pod *corev1.Pod) bool {
	switch {
	case len(service.Spec.IPFamilies) > 0:
		return service.Spec.IPFamilies[0] == corev1.IPv6Protocol
	case hasClusterIP(service):
		return utilnet.IsIPv6String(service.Spec.ClusterIP)
	}
	return utilnet.IsIPv6String(pod.Status.PodIP)
}

// portsOf returns the ports of the Service as the pod offers them, without those
// it does not name. A headless Service without ports gets one nil port, so that
// its addresses are listed all the same.
func portsOf(service *corev1.Service, pod *corev1.Pod) []*corev1.EndpointPort {
	if len(service.Spec.Ports) == 0 && service.Spec.ClusterIP == corev1.ClusterIPNone {
		return []*corev1.EndpointPort{nil}
	}
	ports := make([]*corev1.EndpointPort, 0, len(service.Spec.Ports))
	for i := range service.Spec.Ports {
		of := &service.Spec.Ports[i]
		number, err := endpointslice.FindPort(pod, of)
		if err != nil {
			continue // this pod has no port of that name; others may
		}
		ports = append(ports, &corev1.EndpointPort{Name: of.Name, Port: int32(number), Protocol: of.Protocol, AppProtocol: of.AppProtocol})
	}
	return ports
}

// hasClusterIP reports whether a Service has an address of its own, and is not headless.
func hasClusterIP(service *corev1.Service) bool {
	return service.Spec.ClusterIP != "" && service.Spec.ClusterIP != corev1.ClusterIPNone
}
