package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// recreatesHistory finds the reference creating ControllerRevisions again for a set that is being
// deleted.
func recreatesHistory(s *Script, _ []harness.AuditEvent, finding *compare.Finding) string {
	again := strings.HasPrefix(finding.Subject, "ControllerRevision ") && strings.HasPrefix(finding.Detail, "only with the reference")
	if again && slices.Contains(s.Steps, "delete statefulsets/web foreground") {
		return "The original creates history again for a set that is being deleted and whose history went first."
	}
	return ""
}

func init() {
	image := func(image string) string {
		return `patch statefulsets/web {"spec":{"template":{"spec":{"containers":[{"name":"c","image":"` + image + `"}]}}}}`
	}
	register(&Family{
		Name:     "statefulset",
		Start:    []string{"statefulset-controller", "garbage-collector-controller"},
		Compared: []string{"statefulsets", "pods", "persistentvolumeclaims", "controllerrevisions"},
		Explains: recreatesHistory,
		Begin: func(d *Draw, s *Script) {
			if d.Chance(10) {
				s.Add("stranger.yaml", Object{"apiVersion": "v1", "kind": "Pod", "metadata": Object{"name": One(d, "web-0", "web-1"),
					"labels": Object{"app": One(d, "web", "other")}}, "spec": Object{"containers": []any{Object{"name": "c", "image": "one"}}}})
			}
			s.Add("web.yaml", drawStatefulSet(d))
		},
		Moves: slices.Concat([]Move{
			{6, Change("web.yaml", "statefulsets/web", "spec", "spec.selector", "spec.template", "spec.volumeClaimTemplates", "spec.serviceName", "spec.podManagementPolicy")},
			{2, Change("web.yaml", "statefulsets/web", "spec.template", "spec.template.metadata")},
			{6, Line(image("one"), image("two"), image("three"))},
			{5, Line("scale statefulsets/web %d")},
			{3, Line(`patch statefulsets/web {"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":1}}}}`,
				`patch statefulsets/web {"spec":{"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"partition":0}}}}`,
				`patch statefulsets/web {"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}`,
				`patch statefulsets/web {"spec":{"minReadySeconds":30}}`, `patch statefulsets/web {"spec":{"minReadySeconds":0}}`)},
			{3, readySince},
			{2, Line(`patch statefulsets/web {"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete"}}}`,
				`patch statefulsets/web {"spec":{"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Delete"}}}`,
				`patch statefulsets/web {"spec":{"persistentVolumeClaimRetentionPolicy":{"whenScaled":"Retain","whenDeleted":"Retain"}}}`)},
			{2, Line("delete persistentvolumeclaims/data-web-%d", `patch persistentvolumeclaims/data-web-%d {"metadata":{"finalizers":null}}`,
				`patch persistentvolumeclaims/data-web-%d {"metadata":{"ownerReferences":null}}`)},
			{1, Line("delete statefulsets/web background", "delete statefulsets/web foreground", "delete statefulsets/web orphan",
				"delete controllerrevisions,app=web", "label controllerrevisions,app=web app=other")},
			{2, Line("apply web.yaml")},
			{1, Line(`patch pods/web-%d {"metadata":{"labels":{"statefulset.kubernetes.io/pod-name":null}}}`, "delete pods/stranger", "annotate statefulsets/web x.example/note=n")},
			{1, Quota},
			// Without changes that are refused: the original gives a claim its owner by one, and makes no pod before.
			{1, Line("webhook create persistentvolumeclaims 403", "webhook delete persistentvolumeclaims 409",
				"proxy refuse 500 create persistentvolumeclaims times=1", "proxy delay 300ms write persistentvolumeclaims times=3",
				"proxy watches cut persistentvolumeclaims", "proxy watches expire persistentvolumeclaims")},
		}, MadeAgain("statefulsets/web", "web.yaml"), PodMoves("statefulsets/web"), Disturbances("pods", "statefulsets")),
	})
}

// readySince has pods ready for long or only just when the set is scaled down, so that
// some of them are not available.
func readySince(d *Draw, _ *Script) []string {
	lines := []string{"kubelet off"}
	for i := range 3 {
		lines = append(lines, fmt.Sprintf(`status pods/web-%d {"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"%s"}]}`,
			i, One(d, "2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z")))
	}
	lines = append(lines, d.Sprintf(`patch statefulsets/web {"spec":{"minReadySeconds":600,"replicas":%d}}`, 1), "pass 500ms", "kubelet on")
	return []string{d.numbered(`patch statefulsets/web {"spec":{"minReadySeconds":0,"replicas":` + One(d, "2", "3", "%d") + `}}`), strings.Join(lines, "\n")}
}

func drawStatefulSet(d *Draw) Object {
	o := Object{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": d.Metadata("web"), "spec": Object{
		"replicas": d.Int(0, 4), "selector": Object{"matchLabels": Object{"app": "web"}}, "template": d.Template(Object{"app": "web"})}}
	put := func(value any, path ...string) { Set(o, append([]string{"spec"}, path...), value) }
	if d.Chance(40) {
		put(claims(d), "volumeClaimTemplates")
		if d.Chance(60) {
			put(Object{"whenScaled": One(d, "Retain", "Delete"), "whenDeleted": One(d, "Retain", "Delete")}, "persistentVolumeClaimRetentionPolicy")
		}
	}
	if d.Chance(30) {
		put("RollingUpdate", "updateStrategy", "type")
		put(rollingUpdate(d, "maxUnavailable", "partition"), "updateStrategy", "rollingUpdate")
	}
	if d.Chance(20) {
		put(d.Int(1, 30), "minReadySeconds")
	}
	d.Dress(o, 3, []string{"spec"}, "spec.template", "spec.selector")
	d.Dress(o, 1, []string{"spec.template"}, "spec.template.metadata")
	return o
}
