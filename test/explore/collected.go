package explore

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// vertices are the objects of an owner graph: file and what a story calls it.
var vertices = []struct{ name, target, apiVersion, kind string }{
	{"a", "configmaps/a", "v1", "ConfigMap"},
	{"b", "configmaps/b", "v1", "ConfigMap"},
	{"c", "secrets/c", "v1", "Secret"},
	{"d", "replicasets/d", "apps/v1", "ReplicaSet"},
	{"e", "pods/e", "v1", "Pod"},
	{"f", "serviceaccounts/f", "v1", "ServiceAccount"},
	{"g", "clusterroles/$NS-g", "rbac.authorization.k8s.io/v1", "ClusterRole"},
	{"h", "configmaps/$NS-b/h", "v1", "ConfigMap"},
	{"t", "things.$NS.example.com/t", "$NS.example.com/v1", "Thing"},
	{"u", "gadgets.$NS.example.com/$NS-u", "$NS.example.com/v1", "Gadget"},
}

// rightReference is the owner reference to a vertex.
func rightReference(to int) Object {
	v := vertices[to]
	return Object{"apiVersion": v.apiVersion, "kind": v.kind, "name": v.target[strings.LastIndex(v.target, "/")+1:], "uid": fmt.Sprintf("$(%s .metadata.uid)", v.target)}
}

// ownerReference is one to a vertex: mostly a right one.
func ownerReference(d *Draw, to int) Object {
	o := rightReference(to)
	switch d.Int(0, 19) {
	case 0:
		o["uid"] = "00000000-0000-0000-0000-000000000000"
	case 1:
		o["name"] = "gone"
	case 2:
		o["kind"] = One(d, "Secret", "Thing", "ConfigMap")
	case 3:
		o["apiVersion"] = One(d, "v1", "v2", "apps/v1beta1", "x.example/v1")
	case 4:
		o["kind"], o["uid"] = "Nothing", "00000000-0000-0000-0000-000000000001"
	}
	if d.Chance(35) {
		o["blockOwnerDeletion"] = d.Chance(75)
	}
	return o
}

func ownerReferences(d *Draw, below int) []any {
	out := []any{}
	for range One(d, 0, 1, 1, 1, 2, 2, 3) {
		out = append(out, ownerReference(d, d.Int(0, below)))
	}
	if len(out) > 0 && d.Chance(15) {
		first, _ := out[0].(Object)
		first["controller"] = true
	}
	return out
}

func vertex(d *Draw, i int) Object {
	v := vertices[i]
	m := d.Metadata(v.target[strings.LastIndex(v.target, "/")+1:])
	if parts := strings.Split(v.target, "/"); len(parts) == 3 {
		m["namespace"] = parts[1]
	}
	if d.Chance(5) {
		m["finalizers"] = []any{One(d, "orphan", "foregroundDeletion")}
	}
	if i > 0 {
		m["ownerReferences"] = ownerReferences(d, i-1)
	}
	o := Object{"apiVersion": v.apiVersion, "kind": v.kind, "metadata": m}
	switch v.kind {
	case "ReplicaSet":
		o["spec"] = Object{"replicas": 0, "selector": Object{"matchLabels": Object{"app": "web"}}, "template": PodTemplate(Object{"app": "web"})}
	case "Pod":
		o["spec"] = Object{"containers": []any{Object{"name": "c", "image": "one"}}}
	}
	return o
}

// definition is that of a kind of custom resources.
func definition(kind, scope string) Object {
	plural := strings.ToLower(kind) + "s"
	return Object{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": Object{"name": plural + ".$NS.example.com"}, "spec": Object{
		"group": "$NS.example.com", "scope": scope, "names": Object{"plural": plural, "singular": strings.ToLower(kind), "kind": kind, "listKind": kind + "List"},
		"versions": []any{Object{"name": "v1", "served": true, "storage": true, "schema": Object{"openAPIV3Schema": Object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}}
}

// drawn are the vertices that a script has.
func drawn(s *Script) []int {
	var out []int
	for i, v := range vertices {
		if s.Objects[v.name+".yaml"] != nil {
			out = append(out, i)
		}
	}
	return out
}

func init() {
	register(&Family{
		Name:     "collector",
		Start:    []string{"garbage-collector-controller"},
		Compared: []string{"configmaps", "secrets", "replicasets", "pods", "serviceaccounts", "clusterroles", "configmaps/$NS-b/*"},
		Quiet:    600 * time.Millisecond,
		Begin: func(d *Draw, s *Script) {
			custom := d.Chance(6)
			if custom {
				// The collector looks for new kinds every half minute.
				s.Objects["things.yaml"], s.Objects["gadgets.yaml"] = definition("Thing", "Namespaced"), definition("Gadget", "Cluster")
				s.Steps = append(s.Steps, "apply things.yaml\napply gadgets.yaml\npass 35s")
			}
			var together []string
			for i, v := range vertices {
				other := strings.Contains(v.target, "$NS-b/")
				switch {
				case strings.Contains(v.kind, "Thing") || v.kind == "Gadget":
					if !custom {
						continue
					}
				case i > 0 && !d.Chance(55), other && !d.Chance(50):
					continue
				}
				if other {
					s.Objects["space.yaml"] = Object{"apiVersion": "v1", "kind": "Namespace", "metadata": Object{"name": "$NS-b"}}
					together = append(together, "apply space.yaml")
				}
				s.Objects[v.name+".yaml"] = vertex(d, i)
				together = append(together, "apply "+v.name+".yaml")
			}
			s.Steps = append(s.Steps, strings.Join(together, "\n"))
		},
		Leave: comesWhileItsOwnerWaits,
		Moves: slices.Concat([]Move{
			{8, onVertex("delete %s", "delete %s background", "delete %s foreground", "delete %s foreground", "delete %s orphan", "delete %s now")},
			{6, refer},
			{2, onVertex(`patch %s {"metadata":{"ownerReferences":null}}`)},
			{3, onVertex(`patch %s {"metadata":{"finalizers":["foregroundDeletion"]}}`, `patch %s {"metadata":{"finalizers":["orphan"]}}`, `patch %s {"metadata":{"finalizers":["x.example/hold"]}}`,
				`patch %s {"metadata":{"finalizers":["x.example/hold","orphan"]}}`, `patch %s {"metadata":{"finalizers":["foregroundDeletion","orphan"]}}`)},
			{4, onVertex(`patch %s {"metadata":{"finalizers":null}}`)},
			{2, onVertex("label %s team=x", "annotate %s x.example/note=n")},
			{9, again},
			{4, share},
			{1, Line("kubelet slow-stop", "kubelet on")},
		}, Disturbances("configmaps", "secrets", "replicasets")),
	})
}

// onVertex draws one of the lines about one of the objects.
func onVertex(lines ...string) func(*Draw, *Script) []string {
	return func(d *Draw, s *Script) []string {
		v := vertices[One(d, drawn(s)...)]
		return []string{strings.ReplaceAll(One(d, lines...), "%s", v.target)}
	}
}

// refer gives an object other owners: any, also those below it or itself. It does not block
// itself: under the original it would wait for itself without end.
func refer(d *Draw, s *Script) []string {
	all := drawn(s)
	refs, owners := []Object{}, []int{}
	for range d.Int(1, 2) {
		owner := One(d, all...)
		refs, owners = append(refs, ownerReference(d, owner)), append(owners, owner)
	}
	of := One(d, all...)
	for i, owner := range owners {
		if owner == of {
			delete(refs[i], "blockOwnerDeletion")
		}
	}
	return []string{"patch " + vertices[of].target + " " + jsonOf(Object{"metadata": Object{"ownerReferences": refs}})}
}

// comesWhileItsOwnerWaits reports whether a step makes an object again one of whose owners was
// told to wait for its dependents. Ours deletes it at once, the original leaves it.
func comesWhileItsOwnerWaits(s *Script, before []string, step string) bool {
	waits := map[string]bool{}
	for _, line := range strings.Split(strings.Join(before, "\n"), "\n") {
		if target, is := strings.CutSuffix(line, " foreground"); is {
			waits[target[strings.LastIndex(target, "/")+1:]] = true
		}
	}
	for line := range strings.SplitSeq(step, "\n") {
		file, is := strings.CutPrefix(line, "apply ")
		if !is {
			continue
		}
		metadata, _ := s.Objects[file]["metadata"].(Object)
		refs, _ := metadata["ownerReferences"].([]any)
		if slices.ContainsFunc(refs, func(ref any) bool { name, _ := ref.(Object)["name"].(string); return waits[name] }) {
			return true
		}
	}
	return false
}

// share gives an object two right owners, of which one is deleted then and waits for what
// depends on it.
func share(d *Draw, s *Script) []string {
	var near []int
	for _, i := range drawn(s) {
		if v := vertices[i]; len(strings.Split(v.target, "/")) == 2 && !strings.Contains(v.target, "$NS-") {
			near = append(near, i)
		}
	}
	if len(near) < 3 {
		return nil
	}
	d.random.Shuffle(len(near), func(i, j int) { near[i], near[j] = near[j], near[i] })
	waits, stays := rightReference(near[1]), rightReference(near[2])
	waits["blockOwnerDeletion"] = d.Chance(75)
	refs := []any{waits, stays}
	if d.Chance(50) {
		slices.Reverse(refs)
	}
	return []string{"patch " + vertices[near[0]].target + " " + jsonOf(Object{"metadata": Object{"ownerReferences": refs}}), "delete " + vertices[near[1]].target + " foreground"}
}

// again applies an object once more, or deletes it just before.
func again(d *Draw, s *Script) []string {
	v := vertices[One(d, drawn(s)...)]
	if d.Chance(50) {
		return []string{"apply " + v.name + ".yaml"}
	}
	// At once, as whether a finalizer is off by then would be chance.
	return []string{"delete " + v.target + "\napply " + v.name + ".yaml"}
}
