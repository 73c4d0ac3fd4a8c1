package explore

import "strings"

// hints draw the values that have to fit together, where those of the schema would
// almost never be admitted, by the end of the field's path.
var hints map[string]func(*Draw) any

// The table is filled at start because hints draw fields with hints.
func init() {
	hints = map[string]func(*Draw) any{
		"affinity":               affinity,
		"command":                anyOf([]any{"a"}, []any{"a", "b"}),
		"conditions":             anyOf(nil),
		"containers":             containers,
		"initContainers":         initContainers,
		"hostAliases":            anyOf([]any{Object{"ip": "127.0.0.1", "hostnames": []any{"a"}}}),
		"imagePullSecrets":       anyOf([]any{Object{"name": "a"}}),
		"lifecycle":              anyOf(Object{"preStop": Object{"exec": Object{"command": []any{"a"}}}}),
		"livenessProbe":          probe,
		"matchExpressions":       expressions,
		"matchLabels":            anyOf(Object{"app": "web"}, Object{"app": "web"}, Object{"app": "other"}, Object{"tier": "a"}),
		"nodeSelector":           anyOf(Object{"disk": "ssd"}, Object{"kubernetes.io/hostname": "$NS-b"}, Object{}),
		"nodeSelectorTerms":      func(d *Draw) any { return []any{d.nodeTerm()} },
		"os":                     anyOf(Object{"name": "linux"}),
		"ownerReferences":        anyOf(nil),
		"overhead":               anyOf(nil),
		"podFailurePolicy":       func(d *Draw) any { return Object{"rules": failureRules(d)} },
		"podFailurePolicy.rules": failureRules,
		"readinessGates":         anyOf([]any{Object{"conditionType": "x.example/gate"}}),
		"readinessProbe":         probe,
		"requiredDuringSchedulingIgnoredDuringExecution": func(d *Draw) any { return Object{"nodeSelectorTerms": []any{d.nodeTerm()}} },
		"resourceClaims":               anyOf(nil),
		"schedulingGates":              anyOf([]any{Object{"name": "x.example/gate"}}),
		"startupProbe":                 probe,
		"successPolicy":                func(d *Draw) any { return Object{"rules": successRules(d)} },
		"successPolicy.rules":          successRules,
		"template.metadata.finalizers": anyOf([]any{"x.example/hold"}),
		"tolerations":                  tolerations,
		"topologySpreadConstraints":    anyOf([]any{Object{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}}),
		"volumeClaimTemplates":         claims,
		"volumes":                      anyOf([]any{Object{"name": "v", "emptyDir": Object{}}}, []any{Object{"name": "v", "configMap": Object{"name": "a", "optional": true}}}),
	}
}

// hint finds the hint for a path: that for its last three steps, two, or one.
func hint(path []string) func(*Draw) any {
	for n := min(3, len(path)); n > 0; n-- {
		if draw := hints[strings.Join(path[len(path)-n:], ".")]; draw != nil {
			return draw
		}
	}
	return nil
}

func anyOf(values ...any) func(*Draw) any {
	return func(d *Draw) any { return copyOf(One(d, values...)) }
}

// copyOf keeps what was drawn apart from the table that it was drawn from.
func copyOf(v any) any { return deepCopy(Object{"": v})[""] }

func probe(d *Draw) any {
	p := Object{"tcpSocket": Object{"port": 80}}
	if d.Chance(50) {
		p = Object{"httpGet": Object{"path": "/", "port": 8080}}
	}
	if d.Chance(50) {
		p["initialDelaySeconds"] = d.Int(0, 30)
	}
	return p
}

func (d *Draw) nodeTerm() Object {
	one := One(d,
		Object{"key": "disk", "operator": "In", "values": []any{"ssd"}},
		Object{"key": "disk", "operator": "DoesNotExist"},
		Object{"key": "disk", "operator": "Exists"},
		Object{"key": "kubernetes.io/hostname", "operator": "NotIn", "values": []any{"$NS-a"}})
	if d.Chance(20) {
		return Object{"matchFields": []any{Object{"key": "metadata.name", "operator": "In", "values": []any{"$NS-b"}}}}
	}
	return Object{"matchExpressions": []any{one}}
}

func affinity(d *Draw) any {
	if d.Chance(30) {
		return Object{"podAntiAffinity": Object{"requiredDuringSchedulingIgnoredDuringExecution": []any{
			Object{"topologyKey": "kubernetes.io/hostname", "labelSelector": Object{"matchLabels": Object{"app": "web"}}}}}}
	}
	node := Object{}
	if d.Chance(80) {
		node["requiredDuringSchedulingIgnoredDuringExecution"] = Object{"nodeSelectorTerms": []any{d.nodeTerm()}}
	}
	if d.Chance(40) {
		node["preferredDuringSchedulingIgnoredDuringExecution"] = []any{Object{"weight": 1, "preference": d.nodeTerm()}}
	}
	return Object{"nodeAffinity": node}
}

func tolerations(d *Draw) any {
	out := []any{}
	for range d.Int(1, 2) {
		t := Object{}
		switch d.Int(0, 3) {
		case 0:
			t["operator"] = "Exists"
		case 1:
			t["key"], t["operator"], t["value"] = "a", "Equal", One(d, "1", "2")
		default:
			t["key"], t["operator"] = One(d, "a", "node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready"), "Exists"
		}
		if d.Chance(60) {
			t["effect"] = One(d, "NoSchedule", "NoExecute", "PreferNoSchedule")
		}
		if t["effect"] == "NoExecute" && d.Chance(30) {
			t["tolerationSeconds"] = One(d, 0, 1, 300)
		}
		out = append(out, t)
	}
	return out
}

// expressions match the label app=web, mostly.
func expressions(d *Draw) any {
	out := []any{One(d,
		Object{"key": "app", "operator": "In", "values": []any{"web", "other"}},
		Object{"key": "app", "operator": "In", "values": []any{"web"}},
		Object{"key": "app", "operator": "Exists"},
		Object{"key": "app", "operator": "NotIn", "values": []any{"other"}})}
	if d.Chance(40) {
		out = append(out, One(d,
			Object{"key": "tier", "operator": "DoesNotExist"},
			Object{"key": "tier", "operator": "NotIn", "values": []any{"b"}}))
	}
	return out
}

// rollingUpdate has some of the fields.
func rollingUpdate(d *Draw, fields ...string) any {
	u := Object{}
	for _, field := range fields {
		switch {
		case !d.Chance(50):
		case field == "partition":
			u[field] = d.Int(0, 3)
		default:
			u[field] = One[any](d, 0, 1, 2, "0%", "25%", "50%", "100%")
		}
	}
	return u
}

func failureRules(d *Draw) any {
	rules := []any{}
	for range d.Int(1, 3) {
		rule := Object{"action": One(d, "FailJob", "FailIndex", "Ignore", "Count")}
		if d.Chance(35) {
			rule["onPodConditions"] = []any{Object{"type": One(d, "DisruptionTarget", "x.example/gate"), "status": One(d, "True", "True", "False")}}
		} else {
			codes := Object{"operator": "In", "values": One(d, []any{1}, []any{2, 3}, []any{1, 2, 3})}
			if d.Chance(30) {
				codes = Object{"operator": "NotIn", "values": One(d, []any{0, 1}, []any{2})}
			}
			if d.Chance(30) {
				codes["containerName"] = One(d, "c", "i")
			}
			rule["onExitCodes"] = codes
		}
		rules = append(rules, rule)
	}
	return rules
}

func successRules(d *Draw) any {
	rules := []any{}
	for range d.Int(1, 2) {
		rule := Object{}
		if d.Chance(70) {
			rule["succeededIndexes"] = One(d, "0", "1", "0-1", "0,2", "1-2")
		}
		if len(rule) == 0 || d.Chance(30) {
			rule["succeededCount"] = One(d, 1, 1, 2)
		}
		rules = append(rules, rule)
	}
	return rules
}

func claims(d *Draw) any {
	out := []any{}
	names := []string{"data"}
	// The original lists the volumes of several claims in any order.
	if d.Chance(5) {
		names = append(names, "more")
	}
	for _, name := range names {
		c := Object{"metadata": Object{"name": name}, "spec": Object{"accessModes": []any{"ReadWriteOnce"}, "resources": Object{"requests": Object{"storage": One(d, "1Gi", "2Gi")}}}}
		if d.Chance(30) {
			Set(c, []string{"metadata", "labels"}, Object{"tier": "a"})
		}
		if d.Chance(30) {
			Set(c, []string{"spec", "storageClassName"}, One(d, "", "fast"))
		}
		if d.Chance(20) {
			Set(c, []string{"spec", "volumeMode"}, "Block")
		}
		out = append(out, c)
	}
	return out
}
