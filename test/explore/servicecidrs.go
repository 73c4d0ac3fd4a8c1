package explore

import (
	"slices"
	"time"
)

// servedRanges lie in one another, for some.
var servedRanges = []string{"10.205.0.0/24", "10.205.0.0/25", "10.205.0.128/25", "10.205.0.0/16", "10.205.1.0/24"}

func serviceCIDR(d *Draw, name string) Object {
	ranges := []any{One(d, servedRanges...)}
	switch d.Int(0, 4) {
	case 0:
		ranges = append(ranges, One(d, "fd00:205::/112", "fd00:205::/64"))
	case 1:
		ranges = []any{One(d, "fd00:205::/112", "fd00:205::/64")}
	}
	return Object{"apiVersion": "networking.k8s.io/v1", "kind": "ServiceCIDR", "metadata": d.Metadata("$NS-" + name), "spec": Object{"cidrs": ranges}}
}

// handedOut is an address that a service has, as an API server hands it out, or made by hand.
func handedOut(d *Draw, name string) Object {
	metadata := Object{"name": name}
	if d.Chance(80) {
		metadata["labels"] = Object{"ipaddress.kubernetes.io/managed-by": One(d, "ipallocator.k8s.io", "ipallocator.k8s.io", "ipallocator.k8s.io", "somebody"),
			"ipaddress.kubernetes.io/ip-family": One(d, "IPv4", "IPv6")}
	}
	return Object{"apiVersion": "networking.k8s.io/v1", "kind": "IPAddress", "metadata": metadata, "spec": Object{"parentRef": Object{"resource": "services", "namespace": "$NS", "name": "web"}}}
}

func init() {
	names, addresses := []string{"a", "b", "c"}, []string{"10.205.0.5", "10.205.0.200", "fd00:205::5"}
	register(&Family{
		Name:     "range",
		Start:    []string{"service-cidr-controller"},
		Compared: []string{"servicecidrs"},
		Quiet:    time.Second,
		Fresh:    true,
		Begin: func(d *Draw, s *Script) {
			for _, name := range names {
				s.Objects[name+".yaml"] = serviceCIDR(d, name)
			}
			for i, name := range addresses {
				s.Objects[[]string{"x", "y", "z"}[i]+".yaml"] = handedOut(d, name)
			}
			s.Steps = append(s.Steps, "apply a.yaml")
			if d.Chance(50) {
				s.Steps = append(s.Steps, "apply x.yaml", "apply b.yaml")
			}
		},
		Moves: slices.Concat([]Move{
			{6, About([]string{"a", "b", "c", "x", "y", "z"}, "apply %s.yaml")},
			// Addresses are looked at for as long as API servers may hand them out.
			// Of several that are deleted together ours keeps one.
			{4, Line("delete servicecidrs/$NS-a\npass 11s", "delete servicecidrs/$NS-a foreground\npass 11s", "delete servicecidrs/$NS-a\npass 11s\napply a.yaml")},
			{3, About(addresses, "delete ipaddresses/%s", `patch ipaddresses/%s {"metadata":{"finalizers":["x.example/hold"]}}`, `patch ipaddresses/%s {"metadata":{"finalizers":null}}`,
				"label ipaddresses/%s ipaddress.kubernetes.io/managed-by=ipallocator.k8s.io", "label ipaddresses/%s ipaddress.kubernetes.io/managed-by-")},
			{3, About(names, `patch servicecidrs/$NS-%s {"metadata":{"finalizers":null}}`, `patch servicecidrs/$NS-%s {"metadata":{"finalizers":["x.example/hold"]}}`, "label servicecidrs/$NS-%s team=x",
				`status servicecidrs/$NS-%s {"conditions":null}`, `status servicecidrs/$NS-%s {"conditions":[{"type":"Ready","status":"False","reason":"Other","message":"no","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`,
				`status servicecidrs/$NS-%s {"conditions":[{"type":"Ready","status":"Unknown","reason":"","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"},{"type":"Other","status":"True","reason":"Y","message":"z","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`)},
			{1, Line("restart", "pass 11s", "stop\napply b.yaml\nstart", "stop\ndelete servicecidrs/$NS-a\nstart\npass 11s")},
		}, Disturbances("servicecidrs", "servicecidrs/status")),
	})
}
