package explore

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

func init() {
	image := func(image string) string {
		return `patch daemonsets/web {"spec":{"template":{"spec":{"containers":[{"name":"c","image":"` + image + `"}]}}}}`
	}
	strategy := func(strategy string) string {
		return `patch daemonsets/web {"spec":{"updateStrategy":` + strategy + `}}`
	}
	register(&Family{
		Name:     "daemonset",
		Start:    []string{"daemonset-controller", "garbage-collector-controller"},
		Compared: []string{"daemonsets", "pods", "controllerrevisions"},
		Begin: func(d *Draw, s *Script) {
			s.Steps = append(s.Steps, "node $NS-a ready", "node $NS-b ready")
			if d.Chance(50) {
				s.Steps = append(s.Steps, "node $NS-c ready")
			}
			for d.Chance(40) {
				s.Steps = append(s.Steps, nodeMove(d, s)...)
			}
			if d.Chance(10) {
				s.Add("stranger.yaml", drawStranger(d))
			}
			s.Add("web.yaml", drawDaemonSet(d))
		},
		Moves: slices.Concat([]Move{
			{5, Change("web.yaml", "daemonsets/web", "spec", "spec.selector", "spec.template")},
			{2, Change("web.yaml", "daemonsets/web", "spec.template", "spec.template.metadata")},
			{6, Line(image("one"), image("two"), image("three"))},
			{12, wakingNodeMove},
			{3, Line(strategy(`{"type":"OnDelete","rollingUpdate":null}`), strategy(`{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1,"maxUnavailable":0}}`),
				strategy(`{"type":"RollingUpdate","rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}`), strategy(`{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"50%","maxUnavailable":0}}`))},
			{3, Line(`patch daemonsets/web {"spec":{"template":{"spec":{"nodeSelector":{"disk":"ssd"}}}}}`, `patch daemonsets/web {"spec":{"template":{"spec":{"nodeSelector":null}}}}`,
				`patch daemonsets/web {"spec":{"template":{"spec":{"tolerations":[{"operator":"Exists"}]}}}}`, `patch daemonsets/web {"spec":{"template":{"spec":{"tolerations":null}}}}`)},
			{2, Line("unready daemonsets/web", "ready daemonsets/web")},
			// The set changes at once after the taint, as the original waits for that.
			{2, Lines([]string{strategy(`{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1,"maxUnavailable":0}}`), "unready daemonsets/web",
				"node $NS-b taint a=1:NoSchedule\n" + image("v%d")})},
			{2, func(d *Draw, s *Script) []string {
				lines := []string{`patch daemonsets/web {"spec":{"template":{"spec":{"nodeSelector":{"disk":"ssd"}}}}}`}
				for _, line := range []string{"label nodes/$NS-b disk=ssd", "label nodes/$NS-b disk-"} {
					lines = append(lines, waking(d, s, line))
				}
				return lines
			}},
			{1, Line("delete daemonsets/web background", "delete daemonsets/web foreground", "delete daemonsets/web orphan", "delete controllerrevisions,app=web",
				"label controllerrevisions,app=web app=other")},
			{2, Line("apply web.yaml")},
			{1, Quota},
		}, MadeAgain("daemonsets/web", "web.yaml"), PodMoves("daemonsets/web"), Disturbances("pods", "daemonsets", "controllerrevisions")),
		// The original stands still on a node that is gone, until its pods are collected.
		Leave: func(s *Script, _ []string, step string) bool { return deletesNode.MatchString(step) && s.surges() },
	})
}

var (
	deletesNode = regexp.MustCompile(`^node \S+ delete`)
	surge       = regexp.MustCompile(`"maxSurge":"?[1-9]`)
)

// surges reports whether a set of the script may ever have a surge.
func (s *Script) surges() bool {
	return surge.MatchString(strings.Join(s.Steps, "\n")) ||
		slices.ContainsFunc(slices.Collect(maps.Values(s.Objects)), func(o Object) bool { return surge.MatchString(jsonOf(o)) })
}

// wake changes the set after something that the original does not look at by itself.
const wake = "\npass 300ms\nannotate daemonsets/web x.example/wake=%d%d%d%d"

// holdsPods reports whether a finalizer or a slow kubelet may hold the pods of the set.
func (s *Script) holdsPods() bool {
	all := jsonOf(s.Objects["web.yaml"]) + strings.Join(s.Steps, "\n")
	return strings.Contains(all, `"finalizers":["x.example/hold"]`) || strings.Contains(all, "kubelet slow-stop") || strings.Contains(all, "kubelet off")
}

// wakingNodeMove is something that happens to a node, and then to the set where
// the original waits for that.
func wakingNodeMove(d *Draw, s *Script) []string { return []string{waking(d, s, nodeMove(d, s)[0])} }

func waking(d *Draw, s *Script, line string) string {
	word := strings.Fields(line)
	// A label leaves the status behind only where a node lacks the pod that it wanted, or has one
	// that is held while it goes.
	lacks := word[0] == "label" && (s.Objects["quota.yaml"] != nil || s.holdsPods())
	if lacks || slices.Contains([]string{"delete", "taint", "untaint", "silent", "notready"}, word[2]) {
		return d.numbered(line + wake)
	}
	return line
}

// nodeMove is something that happens to a node.
func nodeMove(d *Draw, _ *Script) []string {
	node := "$NS-" + One(d, "a", "b", "b", "c")
	switch what := d.Int(0, 11); what {
	case 0, 1:
		return []string{"label nodes/" + node + " disk=ssd"}
	case 2, 3:
		return []string{"label nodes/" + node + One(d, " disk-", " disk=hdd")}
	case 4, 5:
		return []string{"node " + node + " taint a=" + One(d, "1", "2") + ":" + One(d, "NoSchedule", "NoExecute", "PreferNoSchedule")}
	case 6, 7:
		return []string{"node " + node + " untaint a"}
	case 8:
		return []string{"node " + node + One(d, " cordon", " uncordon")}
	case 9:
		return []string{"node " + node + One(d, " ready", " back", " ready zone=z")}
	case 10:
		return []string{"node " + node + One(d, " notready", " silent", " back")}
	}
	return []string{"node " + node + One(d, " delete", " ready")}
}

func drawDaemonSet(d *Draw) Object {
	o := Object{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": d.Metadata("web"), "spec": Object{
		"selector": Object{"matchLabels": Object{"app": "web"}}, "template": d.Template(Object{"app": "web"})}}
	if d.Chance(60) {
		Set(o, []string{"spec", "updateStrategy"}, Object{"type": "RollingUpdate", "rollingUpdate": One(d,
			Object{"maxSurge": One[any](d, 1, "50%", "100%"), "maxUnavailable": 0}, Object{"maxUnavailable": One[any](d, 1, 2, "50%", "100%")})})
	}
	for _, field := range []string{"nodeSelector", "tolerations", "affinity"} {
		if d.Chance(20) {
			Set(o, []string{"spec", "template", "spec", field}, hints[field](d))
		}
	}
	d.Dress(o, 2, []string{"spec"}, "spec.template", "spec.selector")
	d.Dress(o, 1, []string{"spec.template"}, "spec.template.metadata")
	return o
}
