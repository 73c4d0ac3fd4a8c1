package explore

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

var rolls = regexp.MustCompile(`^(patch deployments/.*"template"|undo |apply )`)

// rollsOntoPodsThatStay reports whether a rollout begins while no pod can be deleted. The
// original stands still when an old ReplicaSet has more pods than it asks for; ours goes on.
func rollsOntoPodsThatStay(_ *Script, before []string, step string) bool {
	for _, earlier := range slices.Backward(strings.Split(strings.Join(before, "\n"), "\n")) {
		if strings.HasPrefix(earlier, "webhook ") {
			return strings.HasPrefix(earlier, "webhook delete pods") && rolls.MatchString(step)
		}
	}
	return false
}

var namesAnother = regexp.MustCompile(`(?m)\A(  .*\n)*-     message: ReplicaSet "\S+" has successfully progressed\.\n\+     message: ReplicaSet "\S+" has successfully progressed\.\n(  .*\n?)*\z`)

// staysWithItsName finds the condition of a complete Deployment naming another ReplicaSet than the
// reference's, after an old one was scaled: its name changes only when pods are seen that do not belong there.
func staysWithItsName(s *Script, _ []harness.AuditEvent, finding *compare.Finding) string {
	scaled := func(step string) bool { return strings.Contains(step, "scale replicasets") }
	if finding.Kind == compare.KindObject && strings.HasPrefix(finding.Subject, "Deployment ") && namesAnother.MatchString(finding.Detail) && slices.ContainsFunc(s.Steps, scaled) {
		return "Whether the pods are seen that come and go with an old ReplicaSet is chance; only then the condition names the new one."
	}
	return ""
}

func init() {
	register(&Family{
		Name:     "deployment",
		Start:    []string{"deployment-controller", "replicaset-controller", "garbage-collector-controller"},
		Compared: []string{"deployments", "replicasets", "pods"},
		Leave:    rollsOntoPodsThatStay,
		Explains: staysWithItsName,
		Begin: func(d *Draw, s *Script) {
			if d.Chance(15) {
				s.Add("bare.yaml", bareReplicaSet(d))
			}
			s.Add("web.yaml", drawDeployment(d, "web"))
			if d.Chance(10) {
				// Its selector covers the pods of the first one.
				s.Add("more.yaml", drawDeployment(d, "more"))
			}
		},
		Moves: slices.Concat([]Move{
			{6, Change("web.yaml", "deployments/web", "spec", "spec.selector", "spec.template")},
			{2, Change("web.yaml", "deployments/web", "spec.template", "spec.template.metadata")},
			{5, Line(`patch deployments/web {"spec":{"template":{"spec":{"containers":[{"name":"c","image":"two"}]}}}}`,
				`patch deployments/web {"spec":{"template":{"spec":{"containers":[{"name":"c","image":"three"}]}}}}`,
				`patch deployments/web {"spec":{"template":{"spec":{"containers":[{"name":"c","image":"one"}]}}}}`)},
			{5, Line("scale deployments/web %d", "scale deployments/web %d", "scale deployments/web 8")},
			{2, Line(restarted("1"), restarted("2"))},
			{2, Line(`patch deployments/web {"spec":{"paused":true}}`, `patch deployments/web {"spec":{"paused":false}}`)},
			{2, Line("undo deployments/web")},
			{1, Line("delete deployments/web background", "delete deployments/web foreground", "delete deployments/web orphan", "delete replicasets,app=web", "delete replicasets,app=web orphan")},
			{2, Line("apply web.yaml")},
			{1, Line("scale replicasets,app=web %d", "annotate replicasets,app=web deployment.kubernetes.io/desired-replicas=7", "label replicasets,app=web app=other")},
			{1, Line("scale replicasets/bare %d", "delete replicasets/bare orphan", `patch replicasets/bare {"metadata":{"ownerReferences":null}}`, "scale deployments/more %d")},
			{1, Line(`patch deployments/web {"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}`,
				`patch deployments/web {"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":"50%","maxUnavailable":1}}}}`,
				`patch deployments/web {"spec":{"progressDeadlineSeconds":2,"minReadySeconds":1}}`, `patch deployments/web {"spec":{"minReadySeconds":0}}`)},
			{1, Quota},
			{2, Line("webhook delete pods 409\nscale deployments/web 0\npass 1s\nwebhook off", "webhook delete pods 409\nscale deployments/web 1\npass 1s\nwebhook off")},
			{1, Line("annotate deployments/web deployment.kubernetes.io/revision=5", "annotate deployments/web x.example/note=n")},
		}, MadeAgain("deployments/web", "web.yaml"), PodMoves("deployments/web"), Disturbances("pods", "replicasets")),
	})
}

// restarted is what kubectl rollout restart writes.
func restarted(day string) string {
	return `patch deployments/web {"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-01-0` + day + `T00:00:00Z"}}}}}`
}

func drawDeployment(d *Draw, name string) Object {
	selector := Object{"matchLabels": Object{"app": "web"}}
	if d.Chance(20) {
		selector = Object{"matchExpressions": expressions(d)}
	}
	o := Object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": d.Metadata(name), "spec": Object{
		"replicas": d.Int(0, 4), "selector": selector, "template": d.Template(Object{"app": "web"})}}
	if d.Chance(25) {
		Set(o, []string{"spec", "strategy"}, Object{"type": "RollingUpdate", "rollingUpdate": rollingUpdate(d, "maxSurge", "maxUnavailable")})
	}
	d.Dress(o, 3, []string{"spec"}, "spec.template", "spec.selector")
	d.Dress(o, 1, []string{"spec.template"}, "spec.template.metadata")
	return o
}

// bareReplicaSet may be adopted, as the one of the template or as an old one.
func bareReplicaSet(d *Draw) Object {
	labels := Object{"app": "web"}
	template := PodTemplate(labels)
	if d.Chance(50) {
		Set(template, []string{"spec", "containers"}, []any{Object{"name": "c", "image": "two"}})
	}
	o := Object{"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": Object{"name": "bare", "labels": Object{"app": "web"}}, "spec": Object{
		"replicas": d.Int(0, 3), "selector": Object{"matchLabels": Object{"app": "web"}}, "template": template}}
	if d.Chance(30) {
		Set(o, []string{"metadata", "annotations"}, Object{"deployment.kubernetes.io/revision": One(d, "1", "3", "x")})
	}
	return o
}
