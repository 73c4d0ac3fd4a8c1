package endpoints

//lint:file-ignore SA1019 the old API is what this controller keeps

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func TestWhatMeansTheSameIsLeftAlone(t *testing.T) {
	web := service(target("web", intstr.FromString("web"), corev1.ProtocolTCP), target("dns", intstr.FromInt32(53), corev1.ProtocolUDP))
	pods := []*corev1.Pod{pod(1, offers("web", 1)), pod(2, offers("web", 2)), pod(3, offers("web", 2)), pod(4, unready)}
	shared := func(subsets []corev1.EndpointSubset) int { // the subset of two ports
		return slices.IndexFunc(subsets, func(s corev1.EndpointSubset) bool { return len(s.Ports) == 2 })
	}
	for name, tc := range map[string]struct {
		change func([]corev1.EndpointSubset) []corev1.EndpointSubset
		want   string
	}{
		"another order of everything": {func(s []corev1.EndpointSubset) []corev1.EndpointSubset {
			slices.Reverse(s)
			for i := range s {
				slices.Reverse(s[i].Ports)
				slices.Reverse(s[i].Addresses)
			}
			return s
		}, ""},
		"a subset divided by its addresses": {func(s []corev1.EndpointSubset) []corev1.EndpointSubset {
			i := shared(s)
			part := corev1.EndpointSubset{Addresses: s[i].Addresses[:1], Ports: s[i].Ports}
			s[i].Addresses = s[i].Addresses[1:]
			return append(s, part)
		}, ""},
		"a subset divided by its ports": {func(s []corev1.EndpointSubset) []corev1.EndpointSubset {
			i := shared(s)
			part := s[i]
			part.Ports = part.Ports[:1]
			s[i].Ports = s[i].Ports[1:]
			return append(s, part)
		}, ""},
		"an address listed twice": {func(s []corev1.EndpointSubset) []corev1.EndpointSubset {
			s[0].Addresses = append(s[0].Addresses, s[0].Addresses[0])
			return s
		}, ""},
		"another version of a pod": {func(s []corev1.EndpointSubset) []corev1.EndpointSubset {
			slices.Reverse(s)
			s[0].Addresses[0].TargetRef.ResourceVersion = "77"
			return s
		}, ""},
		"an address written in another way": {func(s []corev1.EndpointSubset) []corev1.EndpointSubset {
			s[0].Addresses[0].IP = "0" + s[0].Addresses[0].IP
			return s
		}, "update Endpoints web"},
		"an address that is ready and is not": {func(s []corev1.EndpointSubset) []corev1.EndpointSubset {
			s[0].NotReadyAddresses = append(s[0].NotReadyAddresses, s[0].Addresses[0])
			return s
		}, "update Endpoints web"},
		"the pod of an address is another": {func(s []corev1.EndpointSubset) []corev1.EndpointSubset {
			s[0].Addresses[0].TargetRef.UID = "other"
			return s
		}, "update Endpoints web"},
		"no node of an address": {func(s []corev1.EndpointSubset) []corev1.EndpointSubset {
			s[0].Addresses[0].NodeName = nil
			return s
		}, "update Endpoints web"},
		"a port of another protocol": {func(s []corev1.EndpointSubset) []corev1.EndpointSubset {
			s[0].Ports[0].Protocol = corev1.ProtocolSCTP
			return s
		}, "update Endpoints web"},
		"addresses without ports besides": {func(s []corev1.EndpointSubset) []corev1.EndpointSubset {
			return append(s, corev1.EndpointSubset{Addresses: s[0].Addresses, NotReadyAddresses: s[0].NotReadyAddresses})
		}, ""},
		"another address without ports besides": {func(s []corev1.EndpointSubset) []corev1.EndpointSubset {
			return append(s, corev1.EndpointSubset{Addresses: []corev1.EndpointAddress{{IP: "10.9.9.9"}}})
		}, "update Endpoints web"},
		"ports without addresses": {func(s []corev1.EndpointSubset) []corev1.EndpointSubset {
			s[0].Addresses = nil
			return s
		}, "update Endpoints web"},
	} {
		t.Run(name, func(t *testing.T) {
			current := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: labelsFor(web)}}
			for _, subset := range subsetsOf(web, pods) {
				current.Subsets = append(current.Subsets, *subset.DeepCopy())
			}
			current.Subsets = tc.change(current.Subsets)
			before := current.DeepCopy()
			if got := planFor(web, pods, current, noon); fixture.Planned(got) != tc.want {
				t.Errorf("got %s: %s; want %s", fixture.Planned(got), got.Why, tc.want)
			}
			if diff := cmp.Diff(before, current); diff != "" {
				t.Errorf("the cached object was changed: %s", diff)
			}
		})
	}
}

func TestAddressesAreWrittenInOneForm(t *testing.T) {
	for name, tc := range map[string]struct {
		service *corev1.Service
		says    string
		want    string
	}{
		"as it is":           {service(), "10.0.0.1", "10.0.0.1"},
		"leading zeros":      {service(), "010.000.0.001", "10.0.0.1"},
		"mapped into IPv6":   {service(), "::ffff:10.0.0.1", "10.0.0.1"},
		"capitals":           {service(v6First), "2001:DB8::A", "2001:db8::a"},
		"zeros written out":  {service(v6First), "2001:db8:0:0:0:0:0:1", "2001:db8::1"},
		"the longest zeros":  {service(v6First), "2001:0:0:1::1", "2001:0:0:1::1"},
		"what is no address": {service(), "soon", "soon"},
	} {
		t.Run(name, func(t *testing.T) {
			got := subsetsOf(tc.service, []*corev1.Pod{pod(1, func(p *corev1.Pod) {
				p.Status.PodIP, p.Status.PodIPs = tc.says, []corev1.PodIP{{IP: tc.says}}
			})})
			if len(got) != 1 || len(got[0].Addresses) != 1 || got[0].Addresses[0].IP != tc.want {
				t.Errorf("got %v, want %s", brief(got), tc.want)
			}
		})
	}
}
