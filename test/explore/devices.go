package explore

import (
	"fmt"
	"slices"
	"time"
)

const deviceDriver = "gpu.example"

func deviceTaints(d *Draw) []any {
	taints := []any{}
	for _, key := range []string{"a", "b"} {
		if d.Chance(40) {
			t := Object{"key": "x.example/" + key, "effect": One(d, "NoExecute", "NoExecute", "NoSchedule", "None")}
			if d.Chance(40) {
				t["value"] = One(d, "x", "y")
			}
			taints = append(taints, t)
		}
	}
	return taints
}

// twoDevices have taints, at times.
func twoDevices(d *Draw) []any {
	devices := []any{}
	for _, name := range []string{"one", "two"} {
		o := Object{"name": name}
		if taints := deviceTaints(d); len(taints) > 0 {
			o["taints"] = taints
		}
		devices = append(devices, o)
	}
	return devices
}

// deviceSlice publishes the devices of a driver.
func deviceSlice(d *Draw, name string, generation int) Object {
	return Object{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": Object{"name": name}, "spec": Object{
		"driver": deviceDriver, "allNodes": true, "pool": Object{"name": "pool", "generation": generation, "resourceSliceCount": 1},
		"devices": twoDevices(d)}}
}

func deviceRequest() Object {
	return Object{"devices": Object{"requests": []any{Object{"name": "r", "exactly": Object{"deviceClassName": "gpu"}}}}}
}

// deviceTolerations are what an allocation tolerates. None has an empty effect, which
// the two sides read otherwise.
func deviceTolerations(d *Draw) []any {
	tolerations := []any{}
	for range d.Int(0, 2) {
		t := Object{"effect": One(d, "NoExecute", "NoExecute", "NoSchedule"), "operator": "Exists"}
		if d.Chance(60) {
			t["key"] = One(d, "x.example/a", "x.example/b")
			if d.Chance(40) {
				t["operator"], t["value"] = "Equal", One(d, "x", "y")
			}
		}
		if t["effect"] == "NoExecute" && d.Chance(60) {
			t["tolerationSeconds"] = One(d, -1, 0, 2, 4, 300)
		}
		tolerations = append(tolerations, t)
	}
	return tolerations
}

// allocation is what a scheduler writes into the status of a claim.
func allocation(d *Draw) Object {
	result := Object{"request": "r", "driver": deviceDriver, "pool": "pool", "device": One(d, "one", "two")}
	if tolerations := deviceTolerations(d); len(tolerations) > 0 {
		result["tolerations"] = tolerations
	}
	return Object{"devices": Object{"results": []any{result}}}
}

// schedule plays the scheduler for the claims that a pattern names: a finalizer, a device, and at
// times who uses it.
func schedule(claims, pod string) func(*Draw, *Script) []string {
	return func(d *Draw, _ *Script) []string {
		status := "{" + `"allocation":` + jsonOf(allocation(d))
		switch d.Int(0, 3) {
		case 0: // the controller reserves it
		case 1:
			status += `,"reservedFor":[{"apiGroup":"x.example","resource":"things","name":"t","uid":"beef"},{"resource":"pods","name":"nobody","uid":"dead"}]`
		default:
			status += fmt.Sprintf(`,"reservedFor":[{"resource":"pods","name":"%s","uid":"$(pods/%s .metadata.uid)"}]`, pod, pod)
		}
		return []string{`patch resourceclaims/` + claims + ` {"metadata":{"finalizers":["resource.kubernetes.io/delete-protection"]}}` +
			"\nstatus resourceclaims/" + claims + " " + status + "}"}
	}
}

// taintDevices changes the taints of the devices of a slice.
func taintDevices(d *Draw, _ *Script) []string {
	return []string{"patch resourceslices/$NS-s " + jsonOf(Object{"spec": Object{"devices": twoDevices(d)}})}
}

// deviceUser is a pod with one claim: one of its own from a template, or the one that others have.
func deviceUser(d *Draw, name string) Object {
	claim := Object{"name": "gpu"}
	switch {
	case name == "shared":
		claim["resourceClaimName"] = "mine"
	default:
		claim["resourceClaimTemplateName"] = One(d, "gpu", "gpu", "gpu", "later")
	}
	spec := Object{"containers": []any{Object{"name": "c", "image": "one"}}, "resourceClaims": []any{claim}, "restartPolicy": One(d, "Always", "Never")}
	if d.Chance(30) {
		spec["terminationGracePeriodSeconds"] = One(d, 0, 1)
	}
	return Object{"apiVersion": "v1", "kind": "Pod", "metadata": d.Metadata(name), "spec": spec}
}

// deviceRule taints some devices, all of a driver, or none.
func deviceRule(d *Draw, name string) Object {
	taint := Object{"key": One(d, "x.example/a", "x.example/rule"), "effect": One(d, "NoExecute", "NoExecute", "NoSchedule", "None")}
	if d.Chance(30) {
		taint["value"] = One(d, "x", "y")
	}
	spec := Object{"taint": taint}
	if d.Chance(90) {
		spec["deviceSelector"] = One(d, Object{"driver": deviceDriver}, Object{"pool": "pool"}, Object{"driver": deviceDriver, "pool": "pool", "device": One(d, "one", "two")}, Object{"device": "one"},
			Object{"driver": "other.example"}, Object{"driver": deviceDriver, "pool": "other"}, Object{})
	}
	return Object{"apiVersion": "resource.k8s.io/v1beta2", "kind": "DeviceTaintRule", "metadata": d.Metadata("$NS-" + name), "spec": spec}
}

// retaint changes the taint of a rule: nothing else of one may change.
func retaint(d *Draw, _ *Script) []string {
	name := One(d, "first", "second")
	rule, _ := deviceRule(d, name)["spec"].(Object)
	return []string{"patch devicetaintrules/$NS-" + name + " " + jsonOf(Object{"spec": Object{"taint": rule["taint"]}})}
}

func beginDevices(d *Draw, s *Script) {
	s.Head = append([]string{"apiserver " + serves}, s.Head...)
	for _, name := range []string{"gpu", "later"} {
		s.Objects[name+".yaml"] = Object{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": Object{"name": name},
			"spec": Object{"metadata": Object{"labels": Object{"tier": "a"}}, "spec": deviceRequest()}}
	}
	s.Objects["mine.yaml"] = Object{"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": d.Metadata("mine"), "spec": deviceRequest()}
	s.Objects["slice.yaml"] = deviceSlice(d, "$NS-s", 1)
	s.Objects["newer.yaml"] = deviceSlice(d, "$NS-n", 2)
	for _, pod := range []string{"own", "shared"} {
		s.Objects[pod+".yaml"] = deviceUser(d, pod)
	}
	for _, rule := range []string{"first", "second"} {
		s.Objects[rule+".yaml"] = deviceRule(d, rule)
	}
	s.Steps = append(s.Steps, "apply slice.yaml", "apply gpu.yaml", "apply mine.yaml", "apply own.yaml")
	if d.Chance(60) {
		s.Steps = append(s.Steps, "apply shared.yaml")
	}
}

func init() {
	pods, rules := []string{"own", "shared"}, []string{"first", "second"}
	register(&Family{
		Name:     "device",
		Start:    []string{"resourceclaim-controller", "device-taint-eviction-controller", "garbage-collector-controller"},
		Flags:    []string{"--feature-gates=DRADeviceTaintRules=true"},
		Compared: []string{"pods", "resourceclaims", "devicetaintrules"},
		Quiet:    time.Second,
		Begin:    beginDevices,
		Moves: slices.Concat([]Move{
			{6, schedule("own-gpu-*", "own")},
			{6, schedule("mine", "shared")},
			{6, taintDevices},
			{2, Line("apply newer.yaml", "delete resourceslices/$NS-n", "delete resourceslices/$NS-s", "apply slice.yaml")},
			{4, About(pods, "apply %s.yaml", "kill %s", "kill %s now", "lose %s", "delete pods/%s now\napply %s.yaml", `patch pods/%s {"metadata":{"finalizers":null}}`)},
			{3, Line("apply later.yaml", "delete resourceclaimtemplates/gpu", "apply gpu.yaml", "apply mine.yaml", "delete resourceclaims/mine",
				`status resourceclaims/mine {"reservedFor":[]}`, `status resourceclaims/mine {"reservedFor":[],"allocation":null}`, `patch resourceclaims/mine {"metadata":{"finalizers":null}}`)},
			{1, About(pods, "annotate pods/%s x.example/note=n%d", "label pods/%s team=x")},
			{4, About(rules, "apply %s.yaml")},
			{2, retaint},
			{3, About(rules, "delete devicetaintrules/$NS-%s", "delete devicetaintrules/$NS-%s\napply %s.yaml", `status devicetaintrules/$NS-%s {"conditions":null}`,
				`patch devicetaintrules/$NS-%s {"metadata":{"finalizers":null}}`, "label devicetaintrules/$NS-%s team=x",
				`status devicetaintrules/$NS-%s {"conditions":[{"type":"EvictionInProgress","status":"False","reason":"Hand","message":"m","lastTransitionTime":"2026-01-01T00:00:00Z"}]}`)},
			{2, Line("kubelet slow-stop", "kubelet pending", "kubelet off")},
			{3, Line("kubelet on")},
			{1, Line("pass 3s")},
		}, Disturbances("resourceclaims", "pods", "devicetaintrules")),
	})
}
