package services

//lint:file-ignore SA1019 the old API of endpoints

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// offering is a subset; an address is "ip" or "ip/uid", and one that is not ready ends with "-".
func offering(ports string, addresses ...string) corev1.EndpointSubset {
	var s corev1.EndpointSubset
	for i, name := range strings.Fields(ports) {
		name, protocol, _ := strings.Cut(name, "/")
		s.Ports = append(s.Ports, corev1.EndpointPort{Name: name, Port: 80, Protocol: corev1.Protocol(protocol)})
		if name == "spoken" {
			s.Ports[i].AppProtocol = new(string)
		}
	}
	for _, a := range addresses {
		ip, uid, _ := strings.Cut(strings.TrimSuffix(a, "-"), "/")
		address := corev1.EndpointAddress{IP: ip}
		if uid != "" {
			address.TargetRef = &corev1.ObjectReference{UID: types.UID(uid)}
		}
		if strings.HasSuffix(a, "-") {
			s.NotReadyAddresses = append(s.NotReadyAddresses, address)
		} else {
			s.Addresses = append(s.Addresses, address)
		}
	}
	return s
}

func inWords(subsets []corev1.EndpointSubset) string {
	var all []string
	for _, s := range subsets {
		var words []string
		for _, p := range s.Ports {
			words = append(words, strings.TrimSuffix(p.Name+"/"+string(p.Protocol), "/"))
		}
		words = append(words, "at")
		for _, a := range s.Addresses {
			words = append(words, strings.TrimSuffix(a.IP+"/"+string(TargetUID(a)), "/"))
		}
		for _, a := range s.NotReadyAddresses {
			words = append(words, strings.TrimSuffix(a.IP+"/"+string(TargetUID(a)), "/")+"-")
		}
		all = append(all, strings.Join(words, " "))
	}
	return strings.Join(all, "; ")
}

func TestPortsOfTheSameAddressesComeTogether(t *testing.T) {
	for name, tc := range map[string]struct {
		subsets       []corev1.EndpointSubset
		apart, joined string
	}{
		"nothing":            {nil, "", ""},
		"two ports":          {[]corev1.EndpointSubset{offering("a b", "1", "2-")}, "a at 1 2-; b at 1 2-", "a b at 1 2-"},
		"in two subsets":     {[]corev1.EndpointSubset{offering("b", "1"), offering("a", "1")}, "b at 1; a at 1", "b a at 1"},
		"divided":            {[]corev1.EndpointSubset{offering("a b", "1"), offering("a", "2")}, "a at 1 2; b at 1", "a at 1 2; b at 1"},
		"ready and not":      {[]corev1.EndpointSubset{offering("a", "1"), offering("b", "1-")}, "a at 1; b at 1-", "a at 1; b at 1-"},
		"two protocols":      {[]corev1.EndpointSubset{offering("a/TCP a/UDP", "1")}, "a/TCP at 1; a/UDP at 1", "a/TCP a/UDP at 1"},
		"one is spoken":      {[]corev1.EndpointSubset{offering("spoken", "1"), {Ports: []corev1.EndpointPort{{Name: "spoken", Port: 80}}, Addresses: offering("", "2").Addresses}}, "spoken at 1; spoken at 2", "spoken at 1; spoken at 2"},
		"another pod":        {[]corev1.EndpointSubset{offering("a", "1/x"), offering("b", "1/y")}, "a at 1/x; b at 1/y", "a at 1/x; b at 1/y"},
		"no ports":           {[]corev1.EndpointSubset{offering("", "1"), offering("", "2")}, "at 1 2", "at 1 2"},
		"no ports, and some": {[]corev1.EndpointSubset{offering("", "1"), offering("a", "1")}, "at 1; a at 1", "a at 1"},
		"some, and no ports": {[]corev1.EndpointSubset{offering("a", "1"), offering("", "1"), offering("", "2")}, "a at 1; at 1 2", "a at 1; at 1 2"},
	} {
		t.Run(name, func(t *testing.T) {
			before := inWords(tc.subsets)
			apart := PerPort(tc.subsets)
			if got := inWords(apart); got != tc.apart {
				t.Errorf("by port %q, want %q", got, tc.apart)
			}
			if got := inWords(Together(apart, SameAddresses(apart))); got != tc.joined {
				t.Errorf("together %q, want %q", got, tc.joined)
			}
			if inWords(tc.subsets) != before {
				t.Error("the subsets that were given have changed")
			}
		})
	}
}

func TestAddressesThatDifferHaveDifferentKeys(t *testing.T) {
	ref := func(kind, namespace, name string) *corev1.ObjectReference {
		return &corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: name}
	}
	all := []corev1.EndpointAddress{{IP: "1"}, {IP: "2"}, {IP: "1", Hostname: "h"}, {IP: "1", NodeName: new("h")},
		{IP: "1", TargetRef: ref("k", "", "")}, {IP: "1", TargetRef: ref("", "k", "")}, {IP: "1", TargetRef: ref("", "", "k")}, {IP: "1", TargetRef: &corev1.ObjectReference{UID: "k"}}}
	var keys []string
	for _, a := range all {
		keys = append(keys, AddressKey(a))
	}
	slices.Sort(keys)
	if got := slices.Compact(slices.Clone(keys)); len(got) != len(all) {
		t.Error(fmt.Sprint(keys))
	}
}
