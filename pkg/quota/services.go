package quota

import (
	corev1 "k8s.io/api/core/v1"
)

// service measures what the spec asks for: node ports may be allocated later.
func service(s *corev1.Service) Usage {
	var ports, balancers int
	switch s.Spec.Type {
	case corev1.ServiceTypeNodePort:
		ports = len(s.Spec.Ports)
	case corev1.ServiceTypeLoadBalancer:
		ports, balancers = balancerPorts(s), 1
	}
	return Usage{Used: corev1.ResourceList{
		countName(Services):                  one(),
		corev1.ResourceServices:              one(),
		corev1.ResourceServicesNodePorts:     number(int64(ports)),
		corev1.ResourceServicesLoadBalancers: number(int64(balancers)),
	}}
}

// balancerPorts are the node ports of a load balancer; without allocation only
// those that are asked for by number.
func balancerPorts(s *corev1.Service) int {
	if allocate := s.Spec.AllocateLoadBalancerNodePorts; allocate == nil || *allocate {
		return len(s.Spec.Ports)
	}
	given := 0
	for i := range s.Spec.Ports {
		if s.Spec.Ports[i].NodePort != 0 {
			given++
		}
	}
	return given
}
