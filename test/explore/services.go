package explore

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// addressed is what the pods of a service may differ in.
func addressed(d *Draw, name string) Object {
	container := Object{"name": "c", "image": "one"}
	if d.Chance(75) {
		container["ports"] = []any{Object{"name": One(d, "http", "http", "metrics"), "containerPort": One(d, 8080, 8081), "protocol": One(d, "TCP", "TCP", "UDP")}}
	}
	spec := Object{"containers": []any{container}, "restartPolicy": One(d, "Always", "Always", "Never")}
	if d.Chance(60) {
		spec["nodeName"] = One(d, "$NS-a", "$NS-b")
	}
	if d.Chance(30) {
		spec["hostname"], spec["subdomain"] = One(d, "a", "b", "web"), One(d, "web", "web", "other")
	}
	if d.Chance(15) {
		spec["initContainers"] = []any{Object{"name": "i", "image": "one", "restartPolicy": "Always", "ports": []any{Object{"name": "http", "containerPort": 8090}}}}
	}
	if d.Chance(10) {
		spec["readinessGates"] = []any{Object{"conditionType": "x.example/gate"}}
	}
	pod := Object{"apiVersion": "v1", "kind": "Pod", "metadata": d.Metadata(name), "spec": spec}
	Set(pod, []string{"metadata", "labels"}, Object{"app": One(d, "web", "web", "web", "other"), "tier": One(d, "front", "back")})
	return pod
}

// byHand are the addresses that somebody writes who has no pods.
func byHand(d *Draw, name string) Object {
	if d.Chance(50) {
		return Object{"apiVersion": "v1", "kind": "Endpoints", "metadata": d.Metadata(name), "subsets": []any{
			Object{"addresses": []any{Object{"ip": One(d, "10.9.0.1", "fd00::9"), "hostname": One(d, "a", "b")}, Object{"ip": "10.9.0.2"}},
				"ports": []any{Object{"name": "http", "port": 8080}}}}}
	}
	o := Object{"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": d.Metadata(name), "addressType": "IPv4",
		"endpoints": []any{Object{"addresses": []any{"10.9.0.3"}}}, "ports": []any{Object{"name": "http", "port": 8080}}}
	Set(o, []string{"metadata", "labels"}, Object{"kubernetes.io/service-name": One(d, "web", "other")})
	return o
}

// twoPorts gives a service of the pods web two ports.
const twoPorts = `patch services/web {"spec":{"selector":{"app":"web"},"ports":[{"name":"a","port":80},{"name":"b","port":81}]}}`

// reordered are the Endpoints of pod a written by hand in another order.
const reordered = `patch endpoints/web {"subsets":[{"ports":[{"name":"a","port":80,"protocol":"TCP"},{"name":"b","port":81,"protocol":"TCP"}],` +
	`"addresses":[{"ip":"$(pods/a .status.podIP)","nodeName":"$(pods/a .spec.nodeName)","targetRef":{"kind":"Pod","namespace":"$NS","name":"a","uid":"$(pods/a .metadata.uid)"}}]}]}`

// servicePods are the pods that services may have.
var servicePods = []string{"a", "b", "c"}

func beginServices(d *Draw, s *Script) {
	if d.Chance(60) {
		s.Steps = append(s.Steps, "node $NS-a ready zone=east\nnode $NS-b ready zone="+One(d, "east", "west"))
	}
	o := Object{"apiVersion": "v1", "kind": "Service", "metadata": d.Metadata("web"), "spec": Object{
		"selector": Object{"app": "web"}, "ports": servicePorts(d)}}
	switch d.Int(0, 5) {
	case 0:
		Set(o, []string{"spec", "clusterIP"}, "None")
	case 1:
		Set(o, []string{"spec", "type"}, One(d, "NodePort", "LoadBalancer", "ExternalName"))
	case 2:
		Remove(o, []string{"spec", "selector"})
	}
	d.Dress(o, 4, []string{"spec"})
	s.Add("web.yaml", o)
	for i, pod := range servicePods {
		s.Objects[pod+".yaml"] = addressed(d, pod)
		if i == 0 || d.Chance(50) {
			s.Steps = append(s.Steps, "apply "+pod+".yaml")
		}
	}
	s.Objects["hand.yaml"] = byHand(d, One(d, "web", "other"))
	s.Objects["other.yaml"] = Object{"apiVersion": "v1", "kind": "Service", "metadata": d.Metadata("other"), "spec": Object{"ports": servicePorts(d)}}
	if d.Chance(35) {
		s.Steps = append(s.Steps, "apply other.yaml", "apply hand.yaml")
	}
}

// parts takes a slice away from its controller. The original waits for it in vain then,
// which docs/differences.md says, and all that follows would differ.
var parts = regexp.MustCompile(`^label endpointslices,\S+ (endpointslice\.kubernetes\.io/managed-by|kubernetes\.io/service-name)=`)

// faultsOfServices finds the reference writing Endpoints as they are, as it does in each
// reconcile of a Service that has the label of headless ones and is none; and missing a slice
// that somebody has deleted and that it has not written since its start.
func faultsOfServices(s *Script, requests []harness.AuditEvent, finding *compare.Finding) string {
	switch kind, _, _ := strings.Cut(finding.Subject, " "); {
	case finding.Kind != compare.KindObject:
	case kind == "Endpoints" && writesAgain(requests, "endpoints"):
		return "The original writes the Endpoints of a Service that has the label of headless ones, and is none, in each reconcile."
	case strings.HasPrefix(kind, "EndpointSlice") && strings.HasPrefix(finding.Detail, "only with ours") && deletedAfterRestart(s.Steps):
		return "After a restart the original does not notice that somebody deletes a slice which it has not written since."
	}
	return ""
}

func deletedAfterRestart(steps []string) bool {
	restart := slices.Index(steps, "restart")
	return restart >= 0 && slices.ContainsFunc(steps[restart:], func(step string) bool { return strings.HasPrefix(step, "delete endpointslices") })
}

// writesAgain reports whether the requests write an object as it is.
func writesAgain(requests []harness.AuditEvent, resource string) bool {
	written := map[string]string{}
	for _, r := range requests {
		if !r.Write() || r.ObjectRef == nil || r.ObjectRef.Resource != resource || r.ResponseStatus.Code >= http.StatusBadRequest {
			continue
		}
		var o struct {
			Metadata struct {
				Name   string            `json:"name"`
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Subsets, Endpoints, Ports []any
		}
		if json.Unmarshal(r.ResponseObject, &o) != nil || o.Metadata.Name == "" {
			continue
		}
		now := jsonOf(o)
		if written[o.Metadata.Name] == now {
			return true
		}
		written[o.Metadata.Name] = now
	}
	return false
}

func init() {
	pods := servicePods
	register(&Family{
		Name:     "service",
		Start:    []string{"endpoints-controller", "endpointslice-controller"},
		Compared: []string{"services", "endpoints", "endpointslices", "pods"},
		Begin:    beginServices,
		Explains: faultsOfServices,
		Leave:    func(_ *Script, _ []string, step string) bool { return parts.MatchString(step) },
		Moves: slices.Concat([]Move{
			{8, Change("web.yaml", "services/web", "spec")},
			{2, Change("other.yaml", "services/other", "spec")},
			{3, Line("apply web.yaml", "apply other.yaml", "apply hand.yaml", "delete services/web", "delete services/other", "delete services/web foreground")},
			{4, Line(`patch services/web {"spec":{"selector":{"app":"other"}}}`, `patch services/web {"spec":{"selector":{"app":"web"}}}`,
				`patch services/web {"spec":{"selector":{"tier":"front"}}}`, `patch services/web {"spec":{"selector":{"app":null,"tier":null}}}`,
				`patch services/web {"spec":{"publishNotReadyAddresses":true}}`, `patch services/web {"spec":{"publishNotReadyAddresses":false}}`,
				`patch services/web {"spec":{"type":"ExternalName","externalName":"a.example","clusterIP":null,"clusterIPs":null}}`,
				`patch services/web {"spec":{"type":"ClusterIP","externalName":null}}`)},
			{3, Line(`patch services/web {"spec":{"ports":[{"name":"http","port":80,"targetPort":"http"}]}}`,
				`patch services/web {"spec":{"ports":[{"name":"a","port":80},{"name":"b","port":81}]}}`,
				`patch services/web {"spec":{"ports":[{"name":"http","port":80,"targetPort":"http"},{"name":"m","port":81,"targetPort":"metrics","protocol":"UDP"}]}}`,
				`patch services/web {"spec":{"ports":[{"port":80,"targetPort":8080,"appProtocol":"h2c"}]}}`)},
			{4, Line("label services/web team=x", "label services/web team=y service.kubernetes.io/headless=", "label services/web team-", "label services/web service.kubernetes.io/service-proxy-name=p",
				"annotate services/web service.kubernetes.io/topology-mode=Auto", "annotate services/web service.kubernetes.io/topology-mode-", "annotate services/web x.example/note=n")},
			{5, About(pods, "unready %s", "ready %s")},
			{3, About(pods, "delete pods/%s", "delete pods/%s now", "fail %s", "succeed %s", "evict %s")},
			{4, About(pods, "apply %s.yaml", "label pods/%s app=other", "label pods/%s app=web", "label pods/%s tier-")},
			{2, About(pods, `status pods/%s {"podIP":"10.9.0.7","podIPs":[{"ip":"10.9.0.7"},{"ip":"FD00::7"}]}`, `status pods/%s {"podIP":"010.009.0.8","podIPs":[{"ip":"010.009.0.8"}]}`,
				`status pods/%s {"podIP":"127.0.0.1","podIPs":[{"ip":"127.0.0.1"}]}`, `status pods/%s {"podIP":null,"podIPs":null}`,
				`status pods/%s {"conditions":[]}`, `status pods/%s {"phase":"Unknown"}`)},
			{3, Lines([]string{"label pods/b app=other", "label pods/c app=other", "label pods/a app=web", twoPorts, reordered + "\nannotate services/web x.example/note=n%d"})},
			{3, Line(`delete endpoints/web`, `patch endpoints/web {"subsets":[]}`, `patch endpoints/web {"subsets":[{"addresses":[{"ip":"10.9.0.5"}],"ports":[{"port":1}]}]}`,
				"annotate endpoints/web x.example/note=n", "label endpoints/web team=z", "label endpoints/web endpointslice.kubernetes.io/skip-mirror=true", "label endpoints/web endpointslice.kubernetes.io/skip-mirror-",
				"annotate endpoints/web endpoints.kubernetes.io/over-capacity=truncated", "label endpoints/web service.kubernetes.io/headless=", "label endpoints/web endpoints.kubernetes.io/managed-by=x")},
			{3, Line(`delete endpointslices,kubernetes.io/service-name=web`, `patch endpointslices,kubernetes.io/service-name=web {"endpoints":[]}`,
				`patch endpointslices,kubernetes.io/service-name=web {"endpoints":[{"addresses":["10.9.0.6"]}]}`, `patch endpointslices,kubernetes.io/service-name=web {"ports":[]}`,
				`label endpointslices,kubernetes.io/service-name=web endpointslice.kubernetes.io/managed-by=x`,
				`label endpointslices,kubernetes.io/service-name=web x.example/y=z`, `annotate endpointslices,kubernetes.io/service-name=web x.example/y=z`)},
			{1, Line("kubelet off", "kubelet slow-start", "kubelet slow-stop", "kubelet reject OutOfcpu")},
			{2, Line("kubelet on")},
			{1, Line("node $NS-a delete", "node $NS-a ready zone=west", "label nodes/$NS-a topology.kubernetes.io/zone=north", "node $NS-b notready", "node $NS-b back")},
		}, Disturbances("endpoints", "endpointslices")),
	})
}

func servicePorts(d *Draw) []any {
	ports := []any{Object{"name": "http", "port": 80, "targetPort": One[any](d, "http", 8080, 80)}}
	if d.Chance(40) {
		ports = append(ports, Object{"name": "m", "port": 81, "targetPort": One[any](d, "metrics", "http", 8081), "protocol": One(d, "TCP", "UDP", "SCTP")})
	}
	return ports
}
