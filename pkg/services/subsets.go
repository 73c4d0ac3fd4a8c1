package services

//lint:file-ignore SA1019 the old API of endpoints

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// PortKey is a port by value.
type PortKey struct {
	name, appProtocol string
	protocol          corev1.Protocol
	port              int32
	hasAppProtocol    bool
	// none stands for addresses without ports.
	none bool
}

// KeyOf returns the key of a port; nil is none.
func KeyOf(port *corev1.EndpointPort) PortKey {
	if port == nil {
		return PortKey{none: true}
	}
	key := PortKey{name: port.Name, protocol: port.Protocol, port: port.Port}
	if port.AppProtocol != nil {
		key.appProtocol, key.hasAppProtocol = *port.AppProtocol, true
	}
	return key
}

// PerPort returns what subsets offer as one subset for each port, in the order of the
// ports, with the addresses as they come; and one without ports for addresses that have none.
func PerPort(subsets []corev1.EndpointSubset) []corev1.EndpointSubset {
	var all []corev1.EndpointSubset
	at := map[PortKey]int{}
	add := func(key PortKey, ports []corev1.EndpointPort, from *corev1.EndpointSubset) {
		i, known := at[key]
		if !known {
			i = len(all)
			at[key] = i
			all = append(all, corev1.EndpointSubset{Ports: append([]corev1.EndpointPort(nil), ports...)})
		}
		all[i].Addresses = append(all[i].Addresses, from.Addresses...)
		all[i].NotReadyAddresses = append(all[i].NotReadyAddresses, from.NotReadyAddresses...)
	}
	for i := range subsets {
		s := &subsets[i]
		if len(s.Ports) == 0 {
			add(KeyOf(nil), nil, s)
		}
		for j := range s.Ports {
			add(KeyOf(&s.Ports[j]), s.Ports[j:j+1], s)
		}
	}
	return all
}

// Together joins the ports that the same addresses offer, each with a subset of its own. A
// subset without ports adds nothing to one with the same addresses, and goes. Two subsets
// whose keys are equal have the same addresses.
func Together(perPort []corev1.EndpointSubset, key func(i int) string) []corev1.EndpointSubset {
	joined := []corev1.EndpointSubset{}
	at := map[string]int{}
	for i, s := range perPort {
		of := key(i)
		if j, known := at[of]; known {
			joined[j].Ports = append(joined[j].Ports, s.Ports...)
			continue
		}
		at[of] = len(joined)
		joined = append(joined, s)
	}
	return joined
}

// SameAddresses returns a key for Together, for addresses in a stable order.
func SameAddresses(perPort []corev1.EndpointSubset) func(i int) string {
	return func(i int) string { return namesOf(perPort[i].Addresses) + "|" + namesOf(perPort[i].NotReadyAddresses) }
}

func namesOf(addresses []corev1.EndpointAddress) string {
	var all strings.Builder
	for i := range addresses {
		all.WriteString(AddressKey(addresses[i]))
		all.WriteByte(',')
	}
	return all.String()
}

// AddressKey is an address as a string: two that differ have different ones.
func AddressKey(a corev1.EndpointAddress) string {
	of := ptr.Deref(a.TargetRef, corev1.ObjectReference{})
	return fmt.Sprintf("%q %q %q %q", a.IP, a.Hostname, ptr.Deref(a.NodeName, ""), []string{of.Kind, of.Namespace, of.Name, string(of.UID)})
}

// CompareAddresses orders addresses by IP and pod.
func CompareAddresses(a, b corev1.EndpointAddress) int {
	return cmp.Or(cmp.Compare(a.IP, b.IP), cmp.Compare(TargetUID(a), TargetUID(b)))
}

// TargetUID is that of the object that has the address; empty if none is named.
func TargetUID(a corev1.EndpointAddress) types.UID {
	if a.TargetRef == nil {
		return ""
	}
	return a.TargetRef.UID
}
