package explore

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// contents are what a namespace may hold, by file.
func contents(d *Draw) map[string]Object {
	in := func(apiVersion, kind, name string) Object {
		m := d.Metadata(name)
		m["namespace"] = "$NS-a"
		if d.Chance(20) {
			m["finalizers"] = []any{One(d, "x.example/hold", "x.example/hold", "y.example/hold", "orphan", "foregroundDeletion")}
		}
		return Object{"apiVersion": apiVersion, "kind": kind, "metadata": m}
	}
	all := map[string]Object{
		"map": in("v1", "ConfigMap", "map"), "secret": in("v1", "Secret", "secret"), "pod": in("v1", "Pod", "pod"), "second": in("v1", "Pod", "second"), "front": in("v1", "Service", "front"),
		"set": in("apps/v1", "ReplicaSet", "set"), "quota": in("v1", "ResourceQuota", "quota"), "lease": in("coordination.k8s.io/v1", "Lease", "lease"), "account": in("v1", "ServiceAccount", "account"),
	}
	all["pod"]["spec"] = Object{"containers": []any{Object{"name": "c", "image": "one"}}, "terminationGracePeriodSeconds": One(d, 0, 1, 30)}
	all["second"]["spec"] = Object{"containers": []any{Object{"name": "c", "image": "one"}}, "nodeName": One(d, "$NS-a", "$NS-gone")}
	all["front"]["spec"] = Object{"ports": servicePorts(d)}
	all["set"]["spec"] = Object{"replicas": 0, "selector": Object{"matchLabels": Object{"app": "web"}}, "template": PodTemplate(Object{"app": "web"})}
	all["quota"]["spec"] = Object{"hard": Object{"pods": "9"}}
	return all
}

// refusing has a webhook that is down refuse some writes in the namespace.
func refusing(d *Draw) Object {
	return Object{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": Object{"name": "$NS-broken"}, "webhooks": []any{Object{
		"name": "broken.example.com", "clientConfig": Object{"url": "https://127.0.0.1:1/"}, "sideEffects": "None", "admissionReviewVersions": []any{"v1"}, "failurePolicy": "Fail",
		"namespaceSelector": Object{"matchLabels": Object{"kubernetes.io/metadata.name": "$NS-a"}},
		"rules":             []any{Object{"apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "operations": []any{"DELETE"}, "resources": []any{One(d, "configmaps", "secrets", "pods", "*")}}}}}}
}

var podFiles = regexp.MustCompile(`apply (pod|second)\.yaml`)

// refusesPods reports whether a webhook would refuse the deletion of pods that there are. Ours
// leaves all else as it is until they are gone; the original does not wait.
func refusesPods(s *Script, before []string, step string) bool {
	all := strings.Join(append(slices.Clone(before), step), "\n")
	hook := jsonOf(s.Objects["broken.yaml"])
	pods := strings.Contains(hook, `"resources":["pods"]`) || strings.Contains(hook, `"resources":["*"]`)
	return pods && podFiles.MatchString(all) && strings.Contains(all, "apply broken.yaml") && strings.Contains(step, "apply ")
}

var statusRefused = regexp.MustCompile(`proxy refuse \d+ (write|update) namespaces/status`)

// waitsWithStatus finds the reference waiting for what is left in a namespace, before it tries
// to write a refused status again.
func waitsWithStatus(s *Script, _ []harness.AuditEvent, finding *compare.Finding) string {
	refused := slices.ContainsFunc(s.Steps, statusRefused.MatchString)
	behind := strings.HasPrefix(finding.Subject, "Namespace ") && strings.Contains(finding.Detail, "\n+   conditions:") && !strings.Contains(finding.Detail, "\n-")
	if refused && finding.Kind == compare.KindObject && behind {
		return "The original writes a refused status again when it looks for what is left, ours at once."
	}
	return ""
}

func init() {
	inside := []string{"configmaps/$NS-a/map", "secrets/$NS-a/secret", "pods/$NS-a/pod", "pods/$NS-a/second", "services/$NS-a/front", "replicasets/$NS-a/set"}
	files := []string{"map", "secret", "pod", "second", "front", "set", "quota", "lease", "account"}
	register(&Family{
		Name:     "namespace",
		Start:    []string{"namespace-controller"},
		Compared: []string{"namespaces", "configmaps/$NS-a/*", "secrets/$NS-a/*", "pods/$NS-a/*", "services/$NS-a/*", "replicasets/$NS-a/*"},
		Quiet:    700 * time.Millisecond,
		Leave:    refusesPods,
		Explains: waitsWithStatus,
		Begin: func(d *Draw, s *Script) {
			space := Object{"apiVersion": "v1", "kind": "Namespace", "metadata": d.Metadata("$NS-a")}
			if d.Chance(20) {
				space["spec"] = Object{"finalizers": One(d, []any{"kubernetes", "x.example/last"}, []any{"x.example/last"}, []any{"kubernetes"})}
			}
			s.Objects["space.yaml"], s.Objects["broken.yaml"] = space, refusing(d)
			together := []string{"apply space.yaml"}
			all := contents(d)
			for _, name := range files {
				s.Objects[name+".yaml"] = all[name]
				if d.Chance(45) {
					together = append(together, "apply "+name+".yaml")
				}
			}
			s.Steps = append(s.Steps, strings.Join(together, "\n"))
		},
		Moves: slices.Concat([]Move{
			{5, Line("delete namespaces/$NS-a", "delete namespaces/$NS-a", "delete namespaces/$NS-a foreground", "delete namespaces/$NS-a orphan")},
			{1, Line("apply space.yaml")},
			{5, About(files, "apply %s.yaml")},
			{3, About(inside, "delete %s", "delete %s foreground", "delete %s now")},
			{3, About(inside, `patch %s {"metadata":{"finalizers":["x.example/hold"]}}`, `patch %s {"metadata":{"finalizers":["y.example/hold","x.example/hold"]}}`)},
			{5, About(inside, `patch %s {"metadata":{"finalizers":null}}`)},
			{3, Line(`patch namespaces/$NS-a {"metadata":{"finalizers":["x.example/space"]}}`, `patch namespaces/$NS-a {"metadata":{"finalizers":null}}`, "label namespaces/$NS-a team=x",
				`status namespaces/$NS-a {"conditions":null}`, `status namespaces/$NS-a {"phase":"Active"}`,
				`status namespaces/$NS-a {"conditions":[{"type":"NamespaceContentRemaining","status":"True","reason":"Other","message":"m"},{"type":"x.example/y","status":"False","reason":"R"}]}`)},
			{2, Line("apply broken.yaml", "delete validatingwebhookconfigurations/$NS-broken", "delete validatingwebhookconfigurations/$NS-broken")},
			{2, Line("kubelet slow-stop", "kubelet off")},
			{3, Line("kubelet on")},
		}, Disturbances("namespaces")),
	})
}
