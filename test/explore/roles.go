package explore

import "slices"

// aggregatedRoles may gather the rules of those after them, which never gather those of
// the ones before: in a cycle the original never rests.
var aggregatedRoles = []string{"a", "b", "c", "d"}

// selectingRoles select the roles that are to be part of a role.
func selectingRoles(d *Draw, name string) []any {
	selectors := []any{Object{"matchLabels": Object{"to": "$NS-" + name}}}
	if d.Chance(30) {
		selectors = append(selectors, One(d, Object{"matchLabels": Object{"part": "$NS"}}, Object{"matchExpressions": []any{Object{"key": "part", "operator": "In", "values": []any{"$NS", "none"}}}},
			Object{"matchLabels": Object{"to": "$NS-" + name, "part": "$NS"}}, Object{"matchLabels": Object{"to": "$NS-none"}}))
	}
	return selectors
}

// rightsOf are the rules of a role, some of them alike.
func rightsOf(d *Draw) []any {
	rules := []any{}
	for range d.Int(0, 3) {
		rule := Object{"apiGroups": []any{One(d, "", "", "apps")}, "resources": One(d, []any{"pods"}, []any{"pods", "services"}, []any{"services", "pods"}, []any{"pods/log"}), "verbs": One(d, []any{"get"}, []any{"get", "list"})}
		switch d.Int(0, 9) {
		case 0:
			rule = Object{"nonResourceURLs": []any{One(d, "/healthz", "/metrics")}, "verbs": []any{"get"}}
		case 1:
			rule["resourceNames"] = []any{One(d, "x", "y")}
		}
		rules = append(rules, rule)
	}
	return rules
}

func aggregatedRole(d *Draw, name string) Object {
	metadata, labels := d.Metadata("$NS-"+name), Object{}
	switch {
	case name == "b" && d.Chance(60):
		labels["to"] = "$NS-a"
	case name > "b" && d.Chance(80):
		labels["to"] = One(d, "$NS-a", "$NS-b", "$NS-b")
	case name == "a" && d.Chance(10):
		labels["to"] = "$NS-a"
	}
	if name > "b" && d.Chance(40) {
		labels["part"] = "$NS"
	}
	metadata["labels"] = labels
	o := Object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rightsOf(d)}
	if name < "c" && d.Chance(85) {
		o["aggregationRule"] = Object{"clusterRoleSelectors": selectingRoles(d, name)}
	}
	return o
}

// inTurn gives a role a rule for each resource.
func inTurn(name string, resources ...string) string {
	var rules []any
	for _, resource := range resources {
		rules = append(rules, Object{"apiGroups": []any{""}, "resources": []any{resource}, "verbs": []any{"get"}})
	}
	return "patch clusterroles/$NS-" + name + " " + jsonOf(Object{"rules": rules})
}

func init() {
	names := aggregatedRoles
	tops, leaves := names[:2], names[2:]
	register(&Family{
		Name:     "role",
		Start:    []string{"clusterrole-aggregation-controller"},
		Compared: []string{"clusterroles"},
		Begin: func(d *Draw, s *Script) {
			for _, name := range names {
				s.Objects[name+".yaml"] = aggregatedRole(d, name)
				if d.Chance(60) {
					s.Steps = append(s.Steps, "apply "+name+".yaml")
				}
			}
		},
		Moves: slices.Concat([]Move{
			{6, About(names, "apply %s.yaml")},
			{3, About(names, "delete clusterroles/$NS-%s", "delete clusterroles/$NS-%s\napply %s.yaml", "delete clusterroles/$NS-%s foreground")},
			{5, func(d *Draw, _ *Script) []string {
				return []string{"patch clusterroles/$NS-" + One(d, names...) + " " + jsonOf(Object{"rules": rightsOf(d)})}
			}},
			// The same rules in another order are other rules.
			{2, func(d *Draw, _ *Script) []string {
				name := One(d, leaves...)
				return []string{inTurn(name, "pods", "services"), inTurn(name, "services", "pods")}
			}},
			{3, func(d *Draw, _ *Script) []string {
				name := One(d, tops...)
				return []string{"patch clusterroles/$NS-" + name + " " + jsonOf(Object{"aggregationRule": Object{"clusterRoleSelectors": selectingRoles(d, name)}})}
			}},
			{1, About(tops, `patch clusterroles/$NS-%s {"aggregationRule":null}`, `patch clusterroles/$NS-%s {"rules":null}`)},
			{4, About(leaves, "label clusterroles/$NS-%s to=$NS-a", "label clusterroles/$NS-%s to=$NS-b", "label clusterroles/$NS-%s to-", "label clusterroles/$NS-%s part=$NS", "label clusterroles/$NS-%s part-")},
			{2, Line("label clusterroles/$NS-b to=$NS-a", "label clusterroles/$NS-b to-", "label clusterroles/$NS-a to=$NS-a", "label clusterroles/$NS-a to-")},
			{1, About(names, `patch clusterroles/$NS-%s {"metadata":{"finalizers":["x.example/hold"]}}`, `patch clusterroles/$NS-%s {"metadata":{"finalizers":null}}`,
				"annotate clusterroles/$NS-%s rbac.authorization.kubernetes.io/autoupdate=true", `patch clusterroles/$NS-%s {"metadata":{"managedFields":[{}]}}`)},
			{2, Line("stop\napply c.yaml\nstart", "stop\ndelete clusterroles/$NS-c\nstart", "stop\nlabel clusterroles/$NS-d to=$NS-b\napply b.yaml\nstart")},
		}, Disturbances("clusterroles")),
	})
}
