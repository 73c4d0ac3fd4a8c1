package endpointslicemirroring

//lint:file-ignore SA1019 the old API is what this controller mirrors

import (
	"maps"
	"net"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	endpointsliceutil "k8s.io/endpointslice/util"
	utilnet "k8s.io/utils/net"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/services"
)

// slot is what one slice is for.
type slot struct {
	family discoveryv1.AddressType
	ports  string
}

// content is what is to be in the slice of a slot.
type content struct {
	slot
	ports     []corev1.EndpointPort
	endpoints []discoveryv1.Endpoint
}

// skipped are how many addresses are not mirrored.
type skipped struct {
	invalid, tooMany int
}

// contents returns what is mirrored, in a stable order, at most so many addresses of a
// subset, both families together. An address that is spelt in several ways is one endpoint,
// which is not ready when it is not in one of the spellings.
func contents(subsets []corev1.EndpointSubset, most int) (all []content, left skipped) {
	for i := range subsets {
		byFamily := map[discoveryv1.AddressType][]discoveryv1.Endpoint{}
		down, met, taken := map[identity]bool{}, map[identity]bool{}, 0
		for _, a := range subsets[i].NotReadyAddresses {
			_, id := normal(a)
			down[id] = true
		}
		for j, a := range slices.Concat(subsets[i].Addresses, subsets[i].NotReadyAddresses) {
			ip, id := normal(a)
			ready := j < len(subsets[i].Addresses)
			if ip == nil {
				left.invalid++
				continue
			}
			if met[id] || ready && down[id] {
				continue
			}
			met[id] = true
			if taken == most {
				left.tooMany++
				continue
			}
			taken++
			family := discoveryv1.AddressTypeIPv6
			if ip.To4() != nil {
				family = discoveryv1.AddressTypeIPv4
			}
			byFamily[family] = append(byFamily[family], endpointOf(a, id.ip, ready))
		}
		for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
			if endpoints := byFamily[family]; len(endpoints) > 0 {
				all = append(all, content{slot{family, portsKey(subsets[i].Ports)}, subsets[i].Ports, endpoints})
			}
		}
	}
	return all, left
}

// normal returns the IP of an address, nil if it has none, and what its endpoint is known
// by, however the IP is spelt.
func normal(a corev1.EndpointAddress) (net.IP, identity) {
	ip := utilnet.ParseIPSloppy(a.IP)
	return ip, identity{ip.String(), services.TargetUID(a)}
}

func endpointOf(a corev1.EndpointAddress, ip string, ready bool) discoveryv1.Endpoint {
	endpoint := discoveryv1.Endpoint{
		Addresses:  []string{ip},
		Conditions: discoveryv1.EndpointConditions{Ready: new(ready)},
		TargetRef:  a.TargetRef.DeepCopy(),
	}
	if a.NodeName != nil {
		endpoint.NodeName = new(*a.NodeName)
	}
	if a.Hostname != "" {
		endpoint.Hostname = new(a.Hostname)
	}
	return endpoint
}

// slotOf returns what a slice is for by what is in it.
func slotOf(slice *discoveryv1.EndpointSlice) slot {
	ports := make([]corev1.EndpointPort, 0, len(slice.Ports))
	for _, p := range slice.Ports {
		port := corev1.EndpointPort{AppProtocol: p.AppProtocol}
		if p.Name != nil {
			port.Name = *p.Name
		}
		if p.Protocol != nil {
			port.Protocol = *p.Protocol
		}
		if p.Port != nil {
			port.Port = *p.Port
		}
		ports = append(ports, port)
	}
	sortPorts(ports)
	return slot{slice.AddressType, portsKey(ports)}
}

// portsOf returns the ports in the order in which every Kubernetes stores them.
func portsOf(c content) []discoveryv1.EndpointPort {
	ports := make([]discoveryv1.EndpointPort, 0, len(c.ports))
	for _, p := range c.ports {
		port := discoveryv1.EndpointPort{Name: new(p.Name), Port: new(p.Port), Protocol: new(p.Protocol)}
		if p.AppProtocol != nil {
			port.AppProtocol = new(*p.AppProtocol)
		}
		ports = append(ports, port)
	}
	_ = endpointsliceutil.NewPortMapKey(ports) // brings them into that order
	return ports
}

// newSlice returns a slice for the content, without a name.
func newSlice(of *corev1.Endpoints, c content) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: of.Namespace, GenerateName: of.Name + "-"},
		AddressType: c.family,
	}
	fill(slice, of, c)
	return slice
}

// fill puts into a slice what is mirrored. Finalizers of others stay.
func fill(slice *discoveryv1.EndpointSlice, of *corev1.Endpoints, c content) {
	slice.Labels, slice.Annotations = labelsFor(of), annotationsFor(of)
	slice.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(of, corev1.SchemeGroupVersion.WithKind("Endpoints"))}
	slice.Ports, slice.Endpoints = portsOf(c), c.endpoints
}

// labelsFor are the labels of the Endpoints, but for the two that say whose a slice is.
func labelsFor(of *corev1.Endpoints) map[string]string {
	labels := make(map[string]string, len(of.Labels)+2)
	maps.Copy(labels, of.Labels)
	maps.Copy(labels, labelsOf(of.Name))
	return labels
}

// annotationsFor are those of the Endpoints, but for what is about the very object.
func annotationsFor(of *corev1.Endpoints) map[string]string {
	annotations := maps.Clone(of.Annotations)
	delete(annotations, corev1.EndpointsLastChangeTriggerTime)
	delete(annotations, corev1.LastAppliedConfigAnnotation)
	return annotations
}

// saysAll reports whether a slice says of the Endpoints what it should, besides what is in it.
func saysAll(slice *discoveryv1.EndpointSlice, of *corev1.Endpoints) bool {
	owner := metav1.GetControllerOfNoCopy(slice)
	return owner != nil && owner.UID == of.UID &&
		maps.Equal(slice.Labels, labelsFor(of)) && maps.Equal(slice.Annotations, annotationsFor(of))
}

// changes are how many endpoints differ between what is in a slice and what should be.
type changes struct {
	added, updated, removed int
}

func (c changes) any() bool { return c != changes{} }

func (c changes) plus(d changes) changes {
	return changes{c.added + d.added, c.updated + d.updated, c.removed + d.removed}
}

// differ counts what is to be changed, whatever the order. An endpoint that a slice has
// twice is removed once.
func differ(has, want []discoveryv1.Endpoint) (c changes) {
	there := make(map[identity]*discoveryv1.Endpoint, len(has))
	for i := range has {
		id := endpointIdentity(&has[i])
		if there[id] != nil {
			c.removed++
		}
		there[id] = &has[i]
	}
	for i := range want {
		id := endpointIdentity(&want[i])
		switch old := there[id]; {
		case old == nil:
			c.added++
		case !same(old, &want[i]):
			c.updated++
		}
		delete(there, id)
	}
	c.removed += len(there)
	return c
}

// same reports whether an endpoint is as it is wanted. The version of its target, hints and
// old topology do not count, as with the original.
func same(old, want *discoveryv1.Endpoint) bool {
	return slices.Equal(old.Addresses, want.Addresses) && ptr.Equal(old.Hostname, want.Hostname) &&
		endpointsliceutil.EndpointsEqualBeyondHash(old, want)
}

func endpointIdentity(e *discoveryv1.Endpoint) identity {
	var id identity
	if len(e.Addresses) > 0 {
		id.ip = e.Addresses[0]
	}
	if e.TargetRef != nil {
		id.uid = e.TargetRef.UID
	}
	return id
}
