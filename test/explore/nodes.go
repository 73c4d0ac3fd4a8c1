package explore

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

var taintKeys = []string{"a", "b", "node.kubernetes.io/out-of-service", "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/memory-pressure"}

// tolerating is a pod on a node of its own choice, with tolerations of all kinds.
func tolerating(d *Draw, name string) Object {
	tolerations := []any{}
	for range d.Int(0, 3) {
		t := Object{}
		if d.Chance(85) {
			t["key"] = One(d, taintKeys...)
		}
		if t["key"] == nil || d.Chance(50) {
			t["operator"] = "Exists"
		} else if d.Chance(60) {
			t["operator"], t["value"] = "Equal", One(d, "x", "y")
		}
		if d.Chance(60) {
			t["effect"] = One(d, "NoExecute", "NoExecute", "NoSchedule", "PreferNoSchedule")
		}
		if t["effect"] == "NoExecute" && d.Chance(60) {
			t["tolerationSeconds"] = One(d, 0, 1, 3, 5, 300, -1)
		}
		tolerations = append(tolerations, t)
	}
	spec := Object{"containers": []any{Object{"name": "c", "image": "one"}}, "tolerations": tolerations}
	if d.Chance(85) {
		spec["nodeName"] = One(d, "$NS-a", "$NS-a", "$NS-b", "$NS-gone")
	}
	if d.Chance(20) {
		spec["terminationGracePeriodSeconds"] = One(d, 0, 1)
	}
	if d.Chance(10) {
		spec["schedulingGates"] = []any{Object{"name": "x.example/gate"}}
		delete(spec, "nodeName")
	}
	return Object{"apiVersion": "v1", "kind": "Pod", "metadata": d.Metadata(name), "spec": spec}
}

// patient is a pod that stays for some seconds when its node gets the taint a.
func patient(d *Draw, name string) Object {
	pod := tolerating(d, name)
	spec, _ := pod["spec"].(Object)
	delete(spec, "schedulingGates")
	spec["nodeName"] = "$NS-a"
	spec["tolerations"] = []any{Object{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": One(d, 3, 5)}}
	return pod
}

// announces finds the reference saying of a pod what is not so, or once more: it books one that
// it has deleted, and that something holds, for another eviction, which it then cancels; after a
// restart it cancels those of lost nodes; and a pod that it gave up it announces with the next taint.
func announces(s *Script, requests []harness.AuditEvent, finding *compare.Finding) string {
	if finding.Kind == compare.KindMetric && strings.HasPrefix(finding.Subject, "node_collector_evictions_total{zone=:\x00:north}") && movesToNorth(s) {
		return "The original counts a tainted node that changes its zone once more."
	}
	if finding.Kind != compare.KindEvent {
		return ""
	}
	name, text, _ := strings.Cut(strings.TrimPrefix(finding.Subject, "Pod "), ":")
	deleted, refused := 0, 0
	for _, r := range requests {
		if r.Verb == "delete" && r.ObjectRef != nil && r.ObjectRef.Resource == "pods" && r.ObjectRef.Name == name {
			if r.ResponseStatus.Code == http.StatusOK {
				deleted++
			} else {
				refused++
			}
		}
	}
	switch cancelled := strings.Contains(text, "Cancelling deletion of Pod "); {
	case cancelled && slices.Contains(s.Steps, "restart"):
		return "After a restart the original takes the NoExecute taints of lost nodes off for a while."
	case cancelled && deleted > 0:
		return "The original says that it cancels the deletion of a pod that is on its way out."
	case strings.Contains(text, "Marking for deletion Pod ") && refused >= triesOfEviction && moreOfReference(finding.Detail):
		return "The original gives a pod up after five tries, and announces it again with the next taint."
	}
	return ""
}

// triesOfEviction is how often the reference asks for the deletion of a pod.
const triesOfEviction = 5

// movesToNorth reports whether a node changes its zone.
func movesToNorth(s *Script) bool {
	return slices.ContainsFunc(s.Steps, func(step string) bool { return strings.Contains(step, "topology.kubernetes.io/zone=north") })
}

// moreOfReference reports whether the reference sent an event more often, and ours sent it.
func moreOfReference(detail string) bool {
	var theirs, ours int
	_, err := fmt.Sscanf(detail, "%d times with the reference, %d times with ours", &theirs, &ours)
	return err == nil && ours > 0 && theirs > ours
}

func init() {
	pods, nodes := []string{"p", "q", "r"}, []string{"$NS-a", "$NS-a", "$NS-b", "$NS-c"}
	register(&Family{
		Name:  "node",
		Start: []string{"node-lifecycle-controller", "taint-eviction-controller"},
		Flags: []string{"--node-monitor-period=500ms", "--node-monitor-grace-period=4s", "--node-startup-grace-period=4s", "--node-eviction-rate=10", "--secondary-node-eviction-rate=5",
			"--terminated-pod-gc-threshold=1"},
		Compared: []string{"nodes", "pods"},
		Quiet:    1200 * time.Millisecond,
		Explains: announces,
		Begin: func(d *Draw, s *Script) {
			s.Steps = append(s.Steps, "node $NS-a ready zone=east\nnode $NS-b ready zone="+One(d, "east", "west")+"\nnode $NS-c "+One(d, "ready", "notready")+" zone=west")
			for _, pod := range pods {
				s.Objects[pod+".yaml"] = tolerating(d, pod)
			}
			if d.Chance(50) {
				s.Objects["p.yaml"] = patient(d, "p")
			}
			s.Steps = append(s.Steps, "apply p.yaml\napply q.yaml")
		},
		Moves: slices.Concat([]Move{
			{4, About(nodes, "node %s taint a=x:NoExecute", "node %s taint a=y:NoExecute", "node %s taint b=x:NoExecute", "node %s taint a=x:NoSchedule", "node %s taint b:PreferNoSchedule",
				"node %s taint node.kubernetes.io/out-of-service=nodeshutdown:NoExecute", "node %s taint node.kubernetes.io/memory-pressure:NoSchedule",
				"node %s taint node.kubernetes.io/unreachable:NoExecute", "node %s taint node.kubernetes.io/unschedulable:NoSchedule")},
			{4, About(nodes, "node %s untaint a", "node %s untaint b", "node %s untaint a:NoExecute", "node %s untaint node.kubernetes.io/out-of-service", "node %s untaint node.kubernetes.io/not-ready")},
			{3, About(nodes, "node %s taint a=x:NoExecute\npass 1s\nnode %s untaint a\npass 4s", "node %s taint a=x:NoExecute\npass 1s\nnode %s taint b=x:NoExecute\npass 4s")},
			{3, About(nodes, "node %s silent\npass 6s", "node %s notready", "node %s notready\npass 4s")},
			{4, About(nodes, "node %s back", "node %s ready")},
			{2, About(nodes, "node %s delete", "node %s ready zone=west", "node %s cordon", "node %s uncordon")},
			{2, About(nodes, `label nodes/%s topology.kubernetes.io/zone=north`, `label nodes/%s kubernetes.io/os=windows beta.kubernetes.io/os=other`, `label nodes/%s beta.kubernetes.io/arch-`,
				`label nodes/%s kubernetes.io/arch=arm64`, `label nodes/%s node.kubernetes.io/exclude-disruption=`, `patch nodes/%s {"spec":{"unschedulable":true}}`,
				`status nodes/%s {"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady"},{"type":"MemoryPressure","status":"True","reason":"R"}]}`,
				`status nodes/%s {"conditions":[{"type":"NetworkUnavailable","status":"True","reason":"R"},{"type":"Ready","status":"Unknown","reason":"R"}]}`)},
			// One after the other, as which of them a pass finds silent first is chance.
			{1, Lines([]string{"node $NS-a silent\npass 6s", "node $NS-b silent\npass 6s", "node $NS-c silent\npass 6s"})},
			{1, Line("node $NS-a notready\nnode $NS-b notready\nnode $NS-c notready", "node $NS-a back\nnode $NS-b back\nnode $NS-c back")},
			{4, About(pods, "apply %s.yaml", "apply %s.yaml", "delete pods/%s", "fail %s", "succeed %s", "unready %s", `patch pods/%s {"metadata":{"finalizers":null}}`)},
			{3, About(pods, `patch pods/%s {"spec":{"tolerations":[{"operator":"Exists"}]}}`)},
			{1, Line("kubelet slow-stop", "kubelet on", "kubelet on", "pass 3s")},
		}, Disturbances("pods", "nodes")),
	})
}
