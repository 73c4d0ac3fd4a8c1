package explore

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

func init() {
	budget := func(spec string) string { return `patch poddisruptionbudgets/web {"spec":` + spec + `}` }
	register(&Family{
		Name:     "disruption",
		Start:    []string{"disruption-controller", "deployment-controller", "replicaset-controller", "statefulset-controller", "replicationcontroller-controller"},
		Compared: []string{"poddisruptionbudgets", "pods"},
		Begin: func(d *Draw, s *Script) {
			drawGuarded(d, s)
			s.Add("budget.yaml", drawBudget(d, "web"))
			// Of budgets over the same pods the original wakes one by chance.
			if d.Chance(5) {
				s.Add("more.yaml", drawBudget(d, "more"))
			}
		},
		Moves: slices.Concat([]Move{
			{6, Change("budget.yaml", "poddisruptionbudgets/web", "spec")},
			{4, Line(budget(`{"minAvailable":%d,"maxUnavailable":null}`), budget(`{"maxUnavailable":%d,"minAvailable":null}`),
				budget(`{"maxUnavailable":"50%","minAvailable":null}`), budget(`{"maxUnavailable":"34%","minAvailable":null}`),
				budget(`{"minAvailable":"50%","maxUnavailable":null}`), budget(`{"unhealthyPodEvictionPolicy":"AlwaysAllow"}`), budget(`{"unhealthyPodEvictionPolicy":"IfHealthyBudget"}`))},
			{6, guarded("evict %s#%d")},
			{4, guarded("unready %s#%d", "ready %s#%d", "unready %s", "ready %s")},
			{4, scaleGuarded},
			{2, guarded("kill %s#%d", "kill %s#%d now", "lose %s#%d", "fail %s#%d", "succeed %s#%d")},
			{2, guarded("label-pod %s#%d app=other", "label-pod %s#%d app-", "label pods,app=other app=web")},
			{4, atOnce([]string{"unready %s", "evict %s#0"},
				[]string{"proxy delay 100ms update poddisruptionbudgets/status", "unready %s#0", "pass 600ms", "evict %s#0"},
				[]string{"proxy delay 200ms update poddisruptionbudgets/status", "unready %s#0", "pass 600ms", "evict %s#0"}, []string{"unready %s#%d", "pass 600ms", "evict %s#%d"},
				[]string{"unready %s#%d", "unready %s#%d", "pass 600ms", "evict %s#%d"}, []string{"unready %s#0", "pass 600ms", "evict %s#0"},
				[]string{"evict %s#0", "evict %s#1"})},
			{3, fewerHealthy},
			{1, guarded("delete %s background", "delete %s orphan", "delete poddisruptionbudgets/web", "delete poddisruptionbudgets/more")},
			{2, applyAgain},
			{1, Line(`status poddisruptionbudgets/web {"conditions":null}`, `status poddisruptionbudgets/web {"disruptionsAllowed":%d}`, `status poddisruptionbudgets/web {"expectedPods":%d,"currentHealthy":%d}`,
				`status poddisruptionbudgets/web {"disruptedPods":{"gone":"2020-01-01T00:00:00Z"}}`)},
			{2, Line("proxy delay 100ms update poddisruptionbudgets/status", "proxy delay 200ms update poddisruptionbudgets/status")},
			{1, Line("kubelet off", "kubelet slow-start", "kubelet slow-stop", "kubelet pending")},
			{3, Line("kubelet on")},
		}, Disturbances("pods", "poddisruptionbudgets", "poddisruptionbudgets/status")),
		Leave: func(s *Script, before []string, step string) bool {
			return evictsTooSoon(s, before, step) || leavesUnseen(step)
		},
		Explains: staysBehind,
	})
}

var (
	losesPod = regexp.MustCompile(`^proxy (refuse 5\d\d|lose|cut) (create|write) pods`)
	delays   = regexp.MustCompile(`proxy delay \S+ update poddisruptionbudgets/status`)
)

// evictsTooSoon reports whether an eviction comes when both are known to differ. After a lost
// answer to the creation of a pod ours looks for two seconds whether the pod is there. And
// while statuses are slow, the original takes a new pod for the evicted one of its name.
func evictsTooSoon(_ *Script, before []string, step string) bool {
	if !strings.Contains(step, "evict ") {
		return false
	}
	for i := len(before) - 1; i >= 0 && !strings.HasPrefix(before[i], "proxy off"); i-- {
		if losesPod.MatchString(before[i]) {
			return true
		}
		step = before[i] + "\n" + step
	}
	return strings.Contains(step, "evict statefulsets/") && delays.MatchString(step)
}

// leavesUnseen reports whether a pod leaves its budget and no other takes its place. The
// original does not look at a budget then.
func leavesUnseen(step string) bool {
	return strings.HasPrefix(step, "label-pod ") && !strings.Contains(step, "deployments/") && !strings.Contains(step, "replicasets/") && !strings.Contains(step, "replicationcontrollers/")
}

var refusesStatus = regexp.MustCompile(`(webhook update|proxy refuse \d+ (update|write)) poddisruptionbudgets/status`)

// staysBehind finds a status of the reference that was refused and is not written again.
func staysBehind(s *Script, _ []harness.AuditEvent, finding *compare.Finding) string {
	if finding.Kind == compare.KindObject && strings.HasPrefix(finding.Subject, "PodDisruptionBudget ") &&
		strings.Contains(finding.Detail, "-   observedGeneration: <behind>\n+   observedGeneration: <current>") && refusesStatus.MatchString(strings.Join(s.Steps, "\n")) {
		return "The original waits for the next change when a status is refused."
	}
	return ""
}

// guarded draws one of the lines about what the budget is over, which is "%s".
func guarded(lines ...string) func(*Draw, *Script) []string {
	return func(d *Draw, s *Script) []string { return []string{d.numbered(aboutGuarded(d, s, One(d, lines...)))} }
}

// applyAgain applies one of the files that there are.
func applyAgain(d *Draw, s *Script) []string {
	return []string{"apply " + One(d, slices.Sorted(maps.Keys(s.Objects))...)}
}

// scaleGuarded changes how many pods there should be.
func scaleGuarded(d *Draw, s *Script) []string {
	if Kind(s.Objects["guarded.yaml"]).Kind == "Thing" {
		// Ours reads a scale once more a second after a change of a pod, and may find this one.
		return []string{"pass 1500ms\n" + d.numbered(`patch things.$NS.example.com/web {"spec":{"replicas":%d}}`)}
	}
	return guarded("scale %s %d")(d, s)
}

// atOnce does the same with groups of lines that follow upon each other.
func atOnce(groups ...[]string) func(*Draw, *Script) []string {
	return func(d *Draw, s *Script) []string {
		lines := strings.Join(One(d, groups...), "\n")
		return []string{d.numbered(aboutGuarded(d, s, lines))}
	}
}

// fewerHealthy has pods become unready while statuses are slow: first so many that no
// healthy pod may go, then so many that no unready one may either.
func fewerHealthy(d *Draw, s *Script) []string {
	if Kind(s.Objects["guarded.yaml"]).Group != "apps" {
		return nil
	}
	about := func(line string) string { return aboutGuarded(d, s, line) }
	return []string{
		`patch poddisruptionbudgets/web {"spec":{"minAvailable":2,"maxUnavailable":null,"unhealthyPodEvictionPolicy":"IfHealthyBudget"}}`, about("scale %s 3"),
		"proxy delay 100ms update poddisruptionbudgets/status", about("unready %s#0\npass 400ms\nunready %s#1\npass 400ms\nevict %s#1"), "proxy off", about("ready %s"),
	}
}

func aboutGuarded(d *Draw, s *Script, line string) string {
	switch Kind(s.Objects["guarded.yaml"]).Kind {
	case "Deployment":
		return strings.ReplaceAll(line, "%s", "deployments/web")
	case "ReplicaSet":
		return strings.ReplaceAll(line, "%s", "replicasets/web")
	case "StatefulSet":
		return strings.ReplaceAll(line, "%s", "statefulsets/web")
	case "ReplicationController":
		return strings.ReplaceAll(line, "%s", "replicationcontrollers/web")
	}
	line = strings.ReplaceAll(line, "%s#%d", "%s")
	return strings.ReplaceAll(strings.ReplaceAll(line, "%s#0", "pods/one"), "%s", One(d, "pods/one", "pods/two"))
}

// drawGuarded adds the pods that are guarded, and what owns them.
func drawGuarded(d *Draw, s *Script) {
	pod := func(name string) Object {
		return Object{"apiVersion": "v1", "kind": "Pod", "metadata": Object{"name": name, "labels": Object{"app": "web"}},
			"spec": Object{"containers": []any{Object{"name": "c", "image": "one"}}}}
	}
	kind := One(d, "Deployment", "Deployment", "Deployment", "Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "", "Thing")
	switch kind {
	case "":
		s.Add("one.yaml", pod("one"))
		s.Add("two.yaml", pod("two"))
	case "Thing":
		s.Add("kind.yaml", Object{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": Object{"name": "things.$NS.example.com"}, "spec": Object{
			"group": "$NS.example.com", "scope": "Namespaced", "names": Object{"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
			"versions": []any{Object{"name": "v1", "served": true, "storage": true,
				"subresources": Object{"status": Object{}, "scale": Object{"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
				"schema":       Object{"openAPIV3Schema": Object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}})
		s.Steps = append(s.Steps, `within 10s expect customresourcedefinitions/things.$NS.example.com .status.conditions[?(@.type=="Established")].status == True`)
		s.Add("guarded.yaml", Object{"apiVersion": "$NS.example.com/v1", "kind": "Thing", "metadata": Object{"name": "web"}, "spec": Object{"replicas": d.Int(1, 4)}})
		for _, name := range []string{"one", "two"} {
			p := pod(name)
			Set(p, []string{"metadata", "ownerReferences"}, []any{Object{"apiVersion": "$NS.example.com/v1", "kind": "Thing", "name": "web",
				"uid": "$(things.$NS.example.com/web .metadata.uid)", "controller": true}})
			s.Add(name+".yaml", p)
		}
	case "ReplicationController":
		s.Add("guarded.yaml", Object{"apiVersion": "v1", "kind": kind, "metadata": Object{"name": "web"}, "spec": Object{
			"replicas": d.Int(1, 5), "selector": Object{"app": "web"}, "template": PodTemplate(Object{"app": "web"})}})
	default:
		s.Add("guarded.yaml", Object{"apiVersion": "apps/v1", "kind": kind, "metadata": Object{"name": "web"}, "spec": Object{
			"replicas": d.Int(1, 5), "selector": Object{"matchLabels": Object{"app": "web"}}, "template": PodTemplate(Object{"app": "web"})}})
		// A ReplicaSet would adopt it, and who goes first then is chance.
		if kind == "Deployment" && d.Chance(15) {
			s.Add("one.yaml", pod("one"))
		}
	}
}

func drawBudget(d *Draw, name string) Object {
	spec := Object{"selector": Object{"matchLabels": Object{"app": "web"}}}
	switch d.Int(0, 11) {
	case 0:
		spec["selector"] = Object{}
	case 1:
		delete(spec, "selector")
	case 2:
		spec["selector"] = Object{"matchExpressions": expressions(d)}
	}
	amount := One[any](d, 0, 1, 2, 3, "0%", "25%", "34%", "50%", "75%", "99%", "100%", fmt.Sprint(d.Int(1, 99), "%"))
	spec[One(d, "minAvailable", "maxUnavailable")] = amount
	o := Object{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": d.Metadata(name), "spec": spec}
	if d.Chance(40) {
		spec["unhealthyPodEvictionPolicy"] = One(d, "IfHealthyBudget", "AlwaysAllow")
	}
	d.Dress(o, 1, []string{"spec"}, "spec.selector", "spec.minAvailable", "spec.maxUnavailable")
	return o
}
