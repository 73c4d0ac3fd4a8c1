package endpointslicemirroring

//lint:file-ignore SA1019 the old API is what this controller mirrors

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
)

func port(name string, number int32) corev1.EndpointPort {
	return corev1.EndpointPort{Name: name, Port: number, Protocol: corev1.ProtocolTCP}
}

func speaking(p corev1.EndpointPort, protocol string) corev1.EndpointPort {
	p.AppProtocol = &protocol
	return p
}

func at(ips ...string) (all []corev1.EndpointAddress) {
	for _, ip := range ips {
		all = append(all, corev1.EndpointAddress{IP: ip})
	}
	return all
}

func offering(ready, notReady []corev1.EndpointAddress, ports ...corev1.EndpointPort) corev1.EndpointSubset {
	return corev1.EndpointSubset{Addresses: ready, NotReadyAddresses: notReady, Ports: ports}
}

// said is what slices hold, in words: not ready has a "!".
func said(all []content) string {
	var words []string
	for _, c := range all {
		var ports, addresses []string
		for _, p := range portsOf(c) {
			word := fmt.Sprintf("%s:%d", *p.Name, *p.Port)
			if p.AppProtocol != nil {
				word += "/" + *p.AppProtocol
			}
			ports = append(ports, word)
		}
		for _, e := range c.endpoints {
			word := strings.Join(e.Addresses, "+")
			if !*e.Conditions.Ready {
				word += "!"
			}
			if e.Hostname != nil {
				word += "(" + *e.Hostname + ")"
			}
			addresses = append(addresses, word)
		}
		words = append(words, fmt.Sprintf("%s %v %v", c.family, ports, addresses))
	}
	return strings.Join(words, "; ")
}

func TestWhatIsMirrored(t *testing.T) {
	a, b := port("a", 80), port("b", 81)
	named := func(ip, host, uid string) []corev1.EndpointAddress {
		return []corev1.EndpointAddress{{IP: ip, Hostname: host, TargetRef: &corev1.ObjectReference{UID: types.UID(uid)}}}
	}
	for name, c := range map[string]struct {
		subsets []corev1.EndpointSubset
		most    int
		want    string
		left    skipped
	}{
		"none":                               {},
		"a subset without addresses":         {subsets: []corev1.EndpointSubset{offering(nil, nil, a)}},
		"one":                                {subsets: []corev1.EndpointSubset{offering(at("10.0.0.1"), nil, a)}, want: "IPv4 [a:80] [10.0.0.1]"},
		"without ports":                      {subsets: []corev1.EndpointSubset{offering(at("10.0.0.1"), nil)}, want: "IPv4 [] [10.0.0.1]"},
		"with and without ports":             {subsets: []corev1.EndpointSubset{offering(at("10.0.0.1"), nil), offering(at("10.0.0.1"), nil, a)}, want: "IPv4 [a:80] [10.0.0.1]"},
		"two ports of one subset":            {subsets: []corev1.EndpointSubset{offering(at("10.0.0.1"), nil, b, a)}, want: "IPv4 [b:81 a:80] [10.0.0.1]"},
		"one address, two subsets":           {subsets: []corev1.EndpointSubset{offering(at("10.0.0.1"), nil, a), offering(at("10.0.0.1"), nil, b)}, want: "IPv4 [b:81 a:80] [10.0.0.1]"},
		"the same ports twice":               {subsets: []corev1.EndpointSubset{offering(at("10.0.0.2"), nil, a), offering(at("10.0.0.1"), nil, a)}, want: "IPv4 [a:80] [10.0.0.1 10.0.0.2]"},
		"other addresses on another port":    {subsets: []corev1.EndpointSubset{offering(at("10.0.0.1", "10.0.0.2"), nil, a), offering(at("10.0.0.1"), nil, b)}, want: "IPv4 [a:80] [10.0.0.1 10.0.0.2]; IPv4 [b:81] [10.0.0.1]"},
		"ready for one port only":            {subsets: []corev1.EndpointSubset{offering(at("10.0.0.1"), nil, a), offering(nil, at("10.0.0.1"), b)}, want: "IPv4 [a:80] [10.0.0.1]; IPv4 [b:81] [10.0.0.1!]"},
		"ready and not ready":                {subsets: []corev1.EndpointSubset{offering(at("10.0.0.1"), at("10.0.0.1"), a)}, want: "IPv4 [a:80] [10.0.0.1!]"},
		"not ready, then ready":              {subsets: []corev1.EndpointSubset{offering(nil, at("10.0.0.1"), a), offering(at("10.0.0.1"), nil, a)}, want: "IPv4 [a:80] [10.0.0.1!]"},
		"the first record counts":            {subsets: []corev1.EndpointSubset{offering(named("10.0.0.1", "first", "u"), nil, a), offering(named("10.0.0.1", "second", "u"), nil, a)}, want: "IPv4 [a:80] [10.0.0.1(first)]"},
		"one address of two pods":            {subsets: []corev1.EndpointSubset{offering(append(named("10.0.0.1", "x", "u"), named("10.0.0.1", "y", "v")...), nil, a)}, want: "IPv4 [a:80] [10.0.0.1(x) 10.0.0.1(y)]"},
		"by address, in any order":           {subsets: []corev1.EndpointSubset{offering(at("10.0.0.3", "10.0.0.1", "10.0.0.2"), nil, a)}, want: "IPv4 [a:80] [10.0.0.1 10.0.0.2 10.0.0.3]"},
		"ready first, each by IP as text":    {subsets: []corev1.EndpointSubset{offering(at("10.0.0.9", "10.0.0.10"), at("10.0.0.1"), a)}, want: "IPv4 [a:80] [10.0.0.10 10.0.0.9 10.0.0.1!]"},
		"two families":                       {subsets: []corev1.EndpointSubset{offering(at("fd00::1", "10.0.0.1"), nil, a)}, want: "IPv4 [a:80] [10.0.0.1]; IPv6 [a:80] [fd00::1]"},
		"the cap is for both families":       {subsets: []corev1.EndpointSubset{offering(at("fd00::1", "10.0.0.1"), nil, a)}, most: 1, want: "IPv4 [a:80] [10.0.0.1]", left: skipped{tooMany: 1}},
		"the cap leaves out what is unready": {subsets: []corev1.EndpointSubset{offering(at("10.0.0.9"), at("10.0.0.1"), a)}, most: 1, want: "IPv4 [a:80] [10.0.0.9]", left: skipped{tooMany: 1}},
		"the cap is for each subset":         {subsets: []corev1.EndpointSubset{offering(at("10.0.0.1"), nil, a), offering(at("10.0.0.2"), nil, b)}, most: 1, want: "IPv4 [a:80] [10.0.0.1]; IPv4 [b:81] [10.0.0.2]"},
		"no address":                         {subsets: []corev1.EndpointSubset{offering(at("a.example", "10.0.0.1"), nil, a)}, most: 1, want: "IPv4 [a:80] [10.0.0.1]", left: skipped{invalid: 1}},
		"addresses in other spellings":       {subsets: []corev1.EndpointSubset{offering(at("010.0.0.01", "::ffff:10.0.0.2", "FD00:0::1"), nil, a)}, want: "IPv4 [a:80] [10.0.0.1 10.0.0.2]; IPv6 [a:80] [fd00::1]"},
		"two spellings of one address":       {subsets: []corev1.EndpointSubset{offering(at("10.0.0.1", "::ffff:10.0.0.1", "010.0.0.1"), nil, a)}, want: "IPv4 [a:80] [10.0.0.1]"},
		"one of them is not ready":           {subsets: []corev1.EndpointSubset{offering(at("10.0.0.1", "10.0.0.2"), at("::ffff:10.0.0.1"), a)}, want: "IPv4 [a:80] [10.0.0.2 10.0.0.1!]"},
		"one is, in another subset":          {subsets: []corev1.EndpointSubset{offering(nil, at("010.0.0.1", "FD00:0::1"), a), offering(at("10.0.0.1", "fd00::1"), nil, a)}, want: "IPv4 [a:80] [10.0.0.1!]; IPv6 [a:80] [fd00::1!]"},
		"spellings do not use up the cap":    {subsets: []corev1.EndpointSubset{offering(at("010.0.0.1", "10.0.0.1", "10.0.0.2"), at("10.0.0.3", "010.0.0.3"), a)}, most: 2, want: "IPv4 [a:80] [10.0.0.1 10.0.0.2]", left: skipped{tooMany: 1}},
		"not ready in a spelling past it":    {subsets: []corev1.EndpointSubset{offering(at("10.0.0.1", "10.0.0.2"), at("::ffff:10.0.0.1"), a)}, most: 1, want: "IPv4 [a:80] [10.0.0.2]", left: skipped{tooMany: 1}},
		"two spellings of two pods":          {subsets: []corev1.EndpointSubset{offering(named("010.0.0.1", "x", "u"), named("10.0.0.1", "y", "v"), a)}, want: "IPv4 [a:80] [10.0.0.1(x) 10.0.0.1!(y)]"},
		"application protocols":              {subsets: []corev1.EndpointSubset{offering(at("10.0.0.1"), nil, speaking(a, "x")), offering(at("10.0.0.2"), nil, speaking(a, "x"))}, want: "IPv4 [a:80/x] [10.0.0.1 10.0.0.2]"},
		"the cap leaves out of those too":    {subsets: []corev1.EndpointSubset{offering(at("10.0.0.1"), nil, speaking(a, "x")), offering(at("10.0.0.2"), nil, speaking(a, "x"))}, most: 1, want: "IPv4 [a:80/x] [10.0.0.1]", left: skipped{tooMany: 1}},
		"an application protocol or none":    {subsets: []corev1.EndpointSubset{offering(at("10.0.0.1"), nil, speaking(a, "x")), offering(at("10.0.0.2"), nil, a)}, want: "IPv4 [a:80/x] [10.0.0.1]; IPv4 [a:80] [10.0.0.2]"},
		"a name that is empty":               {subsets: []corev1.EndpointSubset{offering(at("10.0.0.1"), nil, port("", 80))}, want: "IPv4 [:80] [10.0.0.1]"},
	} {
		t.Run(name, func(t *testing.T) {
			most := c.most
			if most == 0 {
				most = 1000
			}
			all, left := contents(canonical(c.subsets), most)
			if got := said(all); got != c.want || left != c.left {
				t.Errorf("got %s, left out %+v, want %s, %+v", got, left, c.want, c.left)
			}
		})
	}
}

// What a slice is for is known by what is in it, also by one that another writer has filled.
func TestASliceIsFoundByItsPorts(t *testing.T) {
	c := content{slot: slot{discoveryv1.AddressTypeIPv4, portsKey([]corev1.EndpointPort{port("a", 80), speaking(port("b", 81), "x")})},
		ports: []corev1.EndpointPort{port("a", 80), speaking(port("b", 81), "x")}}
	slice := newSlice(&corev1.Endpoints{}, c)
	slice.Ports[0], slice.Ports[1] = slice.Ports[1], slice.Ports[0]
	if got := slotOf(slice); got != c.slot {
		t.Errorf("got %+v, want %+v", got, c.slot)
	}
	if none := slotOf(&discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}); none != (slot{discoveryv1.AddressTypeIPv4, portsKey(nil)}) {
		t.Errorf("no ports are %+v", none)
	}
}
