package explore

import "slices"

// policyRules are what a policy may be about: kinds that are known, come later, or never.
func policyRules(d *Draw) []any {
	rules := []any{}
	for range d.Int(1, 2) {
		rules = append(rules, One(d,
			Object{"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "resources": []any{"services"}},
			Object{"apiGroups": []any{""}, "apiVersions": []any{"*"}, "resources": []any{"pods", "configmaps"}},
			Object{"apiGroups": []any{"apps"}, "apiVersions": []any{"v1"}, "resources": []any{"deployments", "statefulsets"}},
			Object{"apiGroups": []any{"apps"}, "apiVersions": []any{"v1"}, "resources": []any{"*"}},
			Object{"apiGroups": []any{"apps", ""}, "apiVersions": []any{"v1", "v2"}, "resources": []any{"deployments", "deployments/scale", "pods/*"}},
			Object{"apiGroups": []any{"*"}, "apiVersions": []any{"v1"}, "resources": []any{"services"}},
			Object{"apiGroups": []any{"$NS.example.com"}, "apiVersions": []any{"v1"}, "resources": []any{"things"}}))
	}
	for i := range rules {
		rule := copyOf(rules[i]).(Object)
		rule["operations"] = []any{One(d, "CREATE", "UPDATE", "*")}
		rules[i] = rule
	}
	return rules
}

var expressionsOfPolicies = []string{"object.metadata.name == 'x'", "object.spec.replicas > 1", "object.spec.replicaz > 1", "object.data.x == 'y'", "object.spec.replicas == 'many'", "has(object.spec.selector)",
	"oldObject.spec.replicas < object.spec.replicas", "params.data.x == object.metadata.name", "params.foo > 1", "request.operation == 'CREATE' && request.nonsense == 1", "variables.r > 1", "variables.r == 'x'",
	"namespaceObject.metadata.name == 'x'", "namespaceObject.nope == 'x'", "object.spec.size > 3", "object.spec.size.nope", "authorizer.group('').resource('pods').check('get').allowed()", "object.spec.ports.all(p, p.port > 80 && p.prot == 1)"}

// policySpec has expressions that are right for some kinds and wrong for others.
func policySpec(d *Draw) Object {
	spec := Object{"matchConstraints": Object{"resourceRules": policyRules(d)}, "failurePolicy": One(d, "Fail", "Ignore")}
	var validations []any
	for range d.Int(1, 3) {
		v := Object{"expression": One(d, expressionsOfPolicies...)}
		if d.Chance(30) {
			v["messageExpression"] = One(d, "'fewer than ' + string(object.spec.replicas)", "'a ' + object.spec.replicas", "object.metadata.name", "'x' + params.y")
		}
		validations = append(validations, v)
	}
	spec["validations"] = validations
	if d.Chance(60) {
		spec["variables"] = []any{Object{"name": "r", "expression": One(d, "object.spec.replicas", "1", "'x'", "object.nope")}}
	}
	if d.Chance(40) {
		spec["paramKind"] = One(d, Object{"apiVersion": "v1", "kind": "ConfigMap"}, Object{"apiVersion": "$NS.example.com/v1", "kind": "Thing"}, Object{"apiVersion": "v1", "kind": "Nothing"})
	}
	if d.Chance(25) {
		spec["matchConditions"] = []any{Object{"name": "m", "expression": One(d, "object.metadata.name != 'y'", "object.nope")}}
	}
	if d.Chance(25) {
		spec["auditAnnotations"] = []any{Object{"key": "k", "valueExpression": One(d, "object.metadata.name", "'n' + object.spec.replicas", "object.nope")}}
	}
	if d.Chance(15) {
		Set(spec, []string{"matchConstraints", "excludeResourceRules"}, policyRules(d))
	}
	return spec
}

func policy(d *Draw, name string) Object {
	return Object{"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": d.Metadata("$NS-" + name), "spec": policySpec(d)}
}

// thingDefinition defines a kind with a size.
func thingDefinition() Object {
	schema := Object{"type": "object", "properties": Object{"spec": Object{"type": "object", "properties": Object{"size": Object{"type": "integer"}, "replicas": Object{"type": "integer"}}}}}
	return Object{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": Object{"name": "things.$NS.example.com"}, "spec": Object{
		"group": "$NS.example.com", "scope": "Namespaced", "names": Object{"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
		"versions": []any{Object{"name": "v1", "served": true, "storage": true, "schema": Object{"openAPIV3Schema": schema}}}}}
}

func init() {
	names := []string{"x", "y"}
	about := "validatingadmissionpolicies/$NS-%s"
	register(&Family{
		Name:     "policy",
		Start:    []string{"validatingadmissionpolicy-status-controller"},
		Compared: []string{"validatingadmissionpolicies"},
		Begin: func(d *Draw, s *Script) {
			s.Objects["kind.yaml"] = thingDefinition()
			for _, name := range names {
				s.Objects[name+".yaml"] = policy(d, name)
			}
			if d.Chance(50) {
				s.Steps = append(s.Steps, "apply kind.yaml\n"+`within 10s expect customresourcedefinitions/things.$NS.example.com .status.conditions[?(@.type=="Established")].status == True`+"\npass 3s")
			}
			s.Steps = append(s.Steps, "apply x.yaml")
		},
		Moves: slices.Concat([]Move{
			{4, About(names, "apply %s.yaml")},
			{3, About(names, "delete "+about, "delete "+about+"\napply %s.yaml")},
			{9, func(d *Draw, _ *Script) []string {
				return []string{"patch validatingadmissionpolicies/$NS-" + One(d, names...) + " " + jsonOf(Object{"spec": policySpec(d)})}
			}},
			{3, About(names, `patch `+about+` {"spec":{"paramKind":null}}`, `patch `+about+` {"spec":{"variables":null}}`, `patch `+about+` {"spec":{"failurePolicy":"Ignore"}}`, `patch `+about+` {"spec":{"matchConditions":null}}`)},
			{3, About(names, `status `+about+` {"typeChecking":null}`, `status `+about+` {"observedGeneration":1,"typeChecking":null}`, `status `+about+` {"observedGeneration":9}`,
				`status `+about+` {"typeChecking":{"expressionWarnings":[{"fieldRef":"spec.validations[0].expression","warning":"w"}]}}`, `status `+about+` {"conditions":[{"type":"X","status":"True","reason":"Y","message":"z","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`)},
			{1, About(names, "label "+about+" team=x", "annotate "+about+" note=n%d", `patch `+about+` {"metadata":{"finalizers":["x.example/hold"]}}`, `patch `+about+` {"metadata":{"finalizers":null}}`)},
			{1, Line("stop\napply y.yaml\nstart", "stop\ndelete validatingadmissionpolicies/$NS-x\napply x.yaml\nstart")},
		}, Disturbances("validatingadmissionpolicies", "validatingadmissionpolicies/status")),
	})
}
