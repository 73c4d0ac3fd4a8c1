package explore

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// subset is a part of Endpoints that somebody writes by hand.
func subset(d *Draw) Object {
	addresses := func(most int) []any {
		list := []any{}
		for range d.Int(0, most) {
			a := Object{"ip": One(d, "10.9.0.1", "10.9.0.2", "10.9.0.3", "10.9.0.4", "fd00::9", "fd00:0::0:a")}
			if d.Chance(30) {
				a["hostname"] = One(d, "a", "b")
			}
			if d.Chance(30) {
				a["nodeName"] = One(d, "$NS-a", "$NS-b")
			}
			if d.Chance(20) {
				a["targetRef"] = Object{"kind": One(d, "Pod", "Node"), "namespace": "$NS", "name": One(d, "a", "b")}
			}
			list = append(list, a)
		}
		return list
	}
	s := Object{"addresses": addresses(4)}
	if d.Chance(40) {
		s["notReadyAddresses"] = addresses(2)
	}
	var ports []any
	for i := range d.Int(0, 2) {
		p := Object{"name": fmt.Sprintf("p%d", i), "port": One(d, 80, 81, 8080), "protocol": One(d, "TCP", "TCP", "UDP", "SCTP")}
		if d.Chance(20) {
			p["appProtocol"] = One(d, "http", "kubernetes.io/h2c")
		}
		ports = append(ports, p)
	}
	if ports != nil {
		s["ports"] = ports
	}
	return s
}

// written are Endpoints that no controller of the cluster looks after.
func written(d *Draw, name string) Object {
	o := Object{"apiVersion": "v1", "kind": "Endpoints", "metadata": d.Metadata(name)}
	subsets := []any{}
	for range d.Int(0, 3) {
		subsets = append(subsets, subset(d))
	}
	o["subsets"] = subsets
	return o
}

func rewrite(name string) func(*Draw, *Script) []string {
	return func(d *Draw, _ *Script) []string {
		return []string{"patch endpoints/" + name + " " + jsonOf(Object{"subsets": written(d, name)["subsets"]})}
	}
}

// writesSlicesAgain finds the reference creating a slice under the name of one that is there,
// after which nothing of it can be compared, or updating slices as they are.
func writesSlicesAgain(_ *Script, requests []harness.AuditEvent, finding *compare.Finding) string {
	if slices.ContainsFunc(requests, func(r harness.AuditEvent) bool {
		return r.Verb == "create" && r.ObjectRef != nil && r.ObjectRef.Resource == "endpointslices" && r.ResponseStatus.Code == http.StatusConflict
	}) {
		return "When both families change their ports, the original takes a slice over and creates it at once, which fails again and again."
	}
	if finding != nil && (finding.Kind == compare.KindWrites || strings.Contains(finding.Subject, "{operation=update}")) && writesAgain(requests, "endpointslices") {
		return "The original writes mirrored slices again when Endpoints get a label of the slices' own."
	}
	return ""
}

func init() {
	names := []string{"web", "web", "other"}
	ofService := "endpointslices,kubernetes.io/service-name=%s"
	register(&Family{
		Name:     "mirror",
		Start:    []string{"endpointslice-mirroring-controller"},
		Flags:    []string{"--mirroring-max-endpoints-per-subset=3"},
		Compared: []string{"services", "endpoints", "endpointslices"},
		Leave:    func(_ *Script, _ []string, step string) bool { return parts.MatchString(step) },
		Explains: writesSlicesAgain,
		Begin: func(d *Draw, s *Script) {
			for _, name := range []string{"web", "other"} {
				s.Objects[name+".yaml"] = Object{"apiVersion": "v1", "kind": "Service", "metadata": d.Metadata(name), "spec": Object{"ports": servicePorts(d)}}
				s.Objects[name+"-hand.yaml"] = written(d, name)
			}
			s.Steps = append(s.Steps, "apply web.yaml", "apply web-hand.yaml")
			if d.Chance(50) {
				s.Steps = append(s.Steps, "apply other-hand.yaml", "apply other.yaml")
			}
		},
		Moves: slices.Concat([]Move{
			{8, rewrite("web")},
			{2, rewrite("other")},
			{3, About(names, "apply %s.yaml", "apply %s-hand.yaml", "delete services/%s", "delete endpoints/%s", "delete endpoints/%s\napply %s-hand.yaml", "delete services/%s\napply %s.yaml")},
			{4, About(names, "label endpoints/%s endpointslice.kubernetes.io/skip-mirror=true", "label endpoints/%s endpointslice.kubernetes.io/skip-mirror=TRUE", "label endpoints/%s endpointslice.kubernetes.io/skip-mirror-",
				"annotate endpoints/%s control-plane.alpha.kubernetes.io/leader=x", "annotate endpoints/%s control-plane.alpha.kubernetes.io/leader-",
				`patch services/%s {"spec":{"selector":{"app":"web"}}}`, `patch services/%s {"spec":{"selector":null}}`, `patch services/%s {"spec":{"selector":{}}}`)},
			{3, About(names, "label endpoints/%s team=x", "label endpoints/%s team-", "label endpoints/%s kubernetes.io/service-name=y", "label endpoints/%s endpointslice.kubernetes.io/managed-by=z",
				"annotate endpoints/%s note=n", "annotate endpoints/%s endpoints.kubernetes.io/last-change-trigger-time=2026-01-01T00:00:00Z", "annotate endpoints/%s endpoints.kubernetes.io/over-capacity=truncated",
				"label endpoints/%s endpoints.kubernetes.io/managed-by=endpoint-controller", "label endpoints/%s service.kubernetes.io/headless=")},
			{4, About(names, "delete "+ofService, "patch "+ofService+` {"endpoints":[]}`, "patch "+ofService+` {"endpoints":[{"addresses":["10.9.0.9"]}]}`, "patch "+ofService+` {"ports":[]}`,
				"label "+ofService+" foreign=y", "annotate "+ofService+" foreign=y", "label "+ofService+" endpointslice.kubernetes.io/managed-by=x", "label "+ofService+" kubernetes.io/service-name=other",
				"patch "+ofService+` {"metadata":{"finalizers":["x.example/hold"]}}`, "patch "+ofService+` {"metadata":{"finalizers":null}}`)},
			{1, About(names, `patch services/%s {"spec":{"type":"ExternalName","externalName":"a.example","clusterIP":null,"clusterIPs":null}}`, `patch services/%s {"spec":{"type":"ClusterIP","externalName":null}}`,
				`patch endpoints/%s {"metadata":{"finalizers":["x.example/hold"]}}`, `patch endpoints/%s {"metadata":{"finalizers":null}}`)},
		}, Disturbances("endpoints", "endpointslices")),
	})
}
