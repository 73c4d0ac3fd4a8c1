package explore

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// measured is a metric of an autoscaler; some are of objects that have none.
func measured(d *Draw) any {
	target := func(kinds ...string) Object {
		switch kind := One(d, kinds...); kind {
		case "Utilization":
			return Object{"type": kind, "averageUtilization": One(d, 1, 50, 50, 100)}
		case "AverageValue":
			return Object{"type": kind, "averageValue": One(d, "500m", "10", "100Mi", "20")}
		default:
			return Object{"type": kind, "value": One(d, "10", "20", "500m")}
		}
	}
	labels := func(metric Object) Object {
		if d.Chance(25) {
			metric["selector"] = Object{"matchLabels": Object{"q": One(d, "x", "y")}}
		}
		return metric
	}
	switch d.Int(0, 6) {
	case 0, 1:
		return Object{"type": "Resource", "resource": Object{"name": One(d, "cpu", "cpu", "memory"), "target": target("Utilization", "AverageValue")}}
	case 2, 3:
		return Object{"type": "ContainerResource", "containerResource": Object{"name": One(d, "cpu", "memory"), "container": One(d, "c", "c", "d"),
			"target": target("Utilization", "AverageValue")}}
	case 4:
		return Object{"type": "Pods", "pods": Object{"metric": labels(Object{"name": One(d, "rps", "rps", "other")}), "target": target("AverageValue")}}
	case 5:
		return Object{"type": "Object", "object": Object{"describedObject": Object{"apiVersion": "v1", "kind": "Service", "name": One(d, "front", "front", "other")},
			"metric": labels(Object{"name": "hits"}), "target": target("Value", "AverageValue")}}
	}
	return Object{"type": "External", "external": Object{"metric": labels(Object{"name": One(d, "queue", "queue", "other")}), "target": target("Value", "AverageValue")}}
}

func someMetrics(d *Draw) any {
	out := []any{}
	for range d.Int(1, 3) {
		out = append(out, measured(d))
	}
	return out
}

func scalingPolicies(d *Draw) any {
	out := []any{}
	for range d.Int(1, 2) {
		out = append(out, Object{"type": One(d, "Pods", "Percent"), "value": One(d, 1, 2, 50, 100), "periodSeconds": One(d, 1, 2, 1800)})
	}
	return out
}

func scalingRules(d *Draw) Object {
	rules := Object{}
	if d.Chance(50) {
		rules["policies"] = scalingPolicies(d)
	}
	if d.Chance(50) {
		rules["stabilizationWindowSeconds"] = One(d, 0, 1, 3600)
	}
	if d.Chance(40) {
		rules["selectPolicy"] = One(d, "Max", "Min", "Disabled")
	}
	if d.Chance(30) {
		rules["tolerance"] = One(d, "0", "20m", "500m")
	}
	return rules
}

func scaledBy(d *Draw) any {
	rules := Object{}
	for _, direction := range []string{"scaleUp", "scaleDown"} {
		if d.Chance(65) {
			rules[direction] = scalingRules(d)
		}
	}
	return rules
}

func scaleTarget(d *Draw) any {
	if d.Chance(80) {
		return Object{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
	}
	return One(d, Object{"apiVersion": "apps/v1", "kind": "Deployment", "name": "gone"}, Object{"apiVersion": "batch/v1", "kind": "Job", "name": "web"},
		Object{"apiVersion": "x.example/v1", "kind": "Thing", "name": "web"}, Object{"kind": "Deployment", "name": "web"}, Object{"apiVersion": "apps/v1beta1", "kind": "Deployment", "name": "web"},
		Object{"apiVersion": "v1", "kind": "ReplicationController", "name": "web"})
}

func autoscaler(d *Draw, name string) Object {
	o := Object{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": d.Metadata(name), "spec": Object{
		"maxReplicas": d.Int(1, 6), "scaleTargetRef": Object{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "metrics": someMetrics(d)}}
	if d.Chance(15) {
		Set(o, []string{"spec", "scaleTargetRef"}, scaleTarget(d))
	}
	if d.Chance(50) {
		Set(o, []string{"spec", "behavior"}, scaledBy(d))
	}
	d.Dress(o, 2, []string{"spec"}, "spec.scaleTargetRef")
	return o
}

// requesting is a Deployment whose pods ask for something, each container or as a whole.
func requesting(d *Draw) Object {
	requests := func(o Object) Object {
		if d.Chance(75) {
			o["resources"] = Object{"requests": One(d, Object{"cpu": "200m"}, Object{"cpu": "200m", "memory": "100Mi"}, Object{"memory": "100Mi"})}
		}
		return o
	}
	template := PodTemplate(Object{"app": "web"})
	containers := []any{requests(Object{"name": "c", "image": "one"})}
	if d.Chance(40) {
		containers = append(containers, requests(Object{"name": "d", "image": "two"}))
	}
	Set(template, []string{"spec", "containers"}, containers)
	if d.Chance(20) {
		Set(template, []string{"spec", "initContainers"}, []any{requests(Object{"name": "i", "image": "one", "restartPolicy": One(d, "Always", "Never")})})
	}
	if d.Chance(40) {
		Set(template, []string{"spec", "resources"}, Object{"requests": One(d, Object{"cpu": "400m"}, Object{"memory": "1Gi"}, Object{"cpu": "1", "memory": "1Gi"})})
	}
	if d.Chance(40) {
		Set(template, []string{"spec", "runtimeClassName"}, "$NS-class")
	}
	return Object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": Object{"name": "web"}, "spec": Object{
		"replicas": d.Int(0, 4), "selector": Object{"matchLabels": Object{"app": "web"}}, "template": template}}
}

// serves is what an API server needs that admits no replicas as the least of an
// autoscaler, and has rules that taint devices. All families have it.
const serves = "--feature-gates=HPAScaleToZero=true,DRADeviceTaintRules=true --runtime-config=resource.k8s.io/v1beta2=true"

// autoscalerFlags make looks frequent. Five seeds in a row share a manager.
var autoscalerFlags = []string{
	"flags --horizontal-pod-autoscaler-initial-readiness-delay=0s",
	"flags --horizontal-pod-autoscaler-initial-readiness-delay=1h",
	"flags --horizontal-pod-autoscaler-initial-readiness-delay=0s --feature-gates=HPAScaleToZero=true",
}

func init() {
	register(&Family{
		Name:  "hpa",
		Start: []string{"horizontal-pod-autoscaler-controller", "deployment-controller", "replicaset-controller"},
		Flags: []string{"--horizontal-pod-autoscaler-sync-period=300ms", "--horizontal-pod-autoscaler-cpu-initialization-period=0s",
			"--horizontal-pod-autoscaler-downscale-stabilization=0s"},
		Compared: []string{"horizontalpodautoscalers", "deployments", "pods"},
		Quiet:    900 * time.Millisecond,
		Begin: func(d *Draw, s *Script) {
			s.Head = append([]string{"apiserver " + serves, autoscalerFlags[s.Seed/5%len(autoscalerFlags)]}, s.Head...)
			s.Objects["class.yaml"] = Object{"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": Object{"name": "$NS-class"}, "handler": "h",
				"overhead": Object{"podFixed": Object{"cpu": "100m"}}}
			s.Steps = append(s.Steps, "apply class.yaml\nmetrics usage app=web cpu="+One(d, "100m", "100m", "10m", "300m"))
			s.Add("web.yaml", requesting(d))
			s.Add("hpa.yaml", autoscaler(d, "web"))
			s.Objects["second.yaml"] = autoscaler(d, "second")
		},
		Moves: slices.Concat([]Move{
			{6, Change("hpa.yaml", "horizontalpodautoscalers/web", "spec", "spec.scaleTargetRef")},
			{2, Change("hpa.yaml", "horizontalpodautoscalers/web", "spec.scaleTargetRef")},
			{4, rescaling},
			{8, Line("metrics usage app=web cpu=100m", "metrics usage app=web cpu=400m", "metrics usage app=web cpu=10m", "metrics usage app=web cpu=108m", "metrics usage app=web cpu=92m",
				"metrics usage app=web memory=100Mi", "metrics usage app=web memory=250Mi", "metrics usage app=web cpu=300m container=c", "metrics usage app=web cpu=5m container=d",
				"metrics usage tier=a cpu=900m", "metrics usage app=web cpu=0", "metrics usage app=web cpu=200m window=60s")},
			{5, Line("metrics pods app=web rps=5", "metrics pods app=web rps=30", "metrics object services/front hits=5", "metrics object services/front hits=60",
				"metrics external queue=5", "metrics external queue=45 q:x", "metrics external queue=90", "metrics external queue=0", "metrics external other=20", "metrics external other=20 q:y")},
			{2, Line("metrics off", "metrics on", "metrics on", "metrics forget", "metrics forget\nmetrics usage app=web cpu=100m container=-")},
			{2, atZero},
			{3, halfMeasured},
			{4, Line("scale deployments/web %d", "scale deployments/web 0", "scale deployments/web 5")},
			{2, Line("apply second.yaml", "delete horizontalpodautoscalers/second", "delete horizontalpodautoscalers/web", "apply hpa.yaml", "delete deployments/web", "apply web.yaml")},
			{1, Line(`status horizontalpodautoscalers/web {"conditions":[{"type":"ScaledToZero","status":"True","reason":"ScaledToZero"}]}`, `status horizontalpodautoscalers/web {"conditions":null}`,
				`status horizontalpodautoscalers/web {"desiredReplicas":9,"currentReplicas":9}`, `status horizontalpodautoscalers/web {"currentMetrics":null}`,
				`annotate horizontalpodautoscalers/web x.example/note=n`, `status horizontalpodautoscalers/web {"lastScaleTime":"2020-01-01T00:00:00Z"}`)},
			{2, Line("unready deployments/web#%d", "ready deployments/web#%d", "unready deployments/web", "fail deployments/web#0", "label-pod deployments/web#%d tier=a", "label-pod deployments/web#0 app=other")},
			{1, Line("kubelet slow-start", "kubelet slow-stop", "kubelet pending")},
			{2, Line("kubelet on")},
		}, Disturbances("deployments", "horizontalpodautoscalers")),
		Leave: func(_ *Script, before []string, step string) bool {
			return step == "apply second.yaml" && stopsSlowly(before)
		},
		Explains: takesOneOfEqualPods,
	})
}

var (
	lacksLabel  = regexp.MustCompile(`\A(  .*\n)*[-+]     tier: a\n(  .*\n?)*\z`)
	otherValues = regexp.MustCompile(`\A((  .*|[-+] +averageValue: \S+)\n?)*\z`)
)

// takesOneOfEqualPods finds that a pod with a label of its own, by which its usage is measured, was
// deleted on one side, and one of the same age on the other.
func takesOneOfEqualPods(s *Script, _ []harness.AuditEvent, finding *compare.Finding) string {
	labelled := func(step string) bool {
		return strings.HasPrefix(step, "label-pod ") && strings.HasSuffix(step, " tier=a")
	}
	if finding.Kind != compare.KindObject || !slices.ContainsFunc(s.Steps, labelled) {
		return ""
	}
	pod := strings.HasPrefix(finding.Subject, "Pod ") && lacksLabel.MatchString(finding.Detail)
	if pod || strings.HasPrefix(finding.Subject, "HorizontalPodAutoscaler ") && otherValues.MatchString(finding.Detail) {
		return "Which of several pods of one age is deleted is chance, and with it what is measured by the label of one."
	}
	return ""
}

// stopsSlowly reports whether the kubelet is slow to stop pods after these steps. Two
// autoscalers of a target may scale it to and fro until both know of each other; how
// often is chance, and pods that stay would show it.
func stopsSlowly(steps []string) bool {
	slow := false
	for _, step := range steps {
		slow = step == "kubelet slow-stop" || slow && step != "kubelet on"
	}
	return slow
}

// atZero lets the autoscaler scale to zero, and puts the target there or has it put there.
func atZero(d *Draw, _ *Script) []string {
	metric := Object{"type": "External", "external": Object{"metric": Object{"name": "queue"}, "target": Object{"type": "AverageValue", "averageValue": "10"}}}
	return []string{
		"patch horizontalpodautoscalers/web " + jsonOf(Object{"spec": Object{"minReplicas": 0, "metrics": []any{metric}}}),
		One(d, "metrics external queue=0", "scale deployments/web 0"), One(d, "metrics external queue=45", "metrics external queue=20"),
	}
}

// halfMeasured has one metric ask for less or more while another cannot be read.
func halfMeasured(d *Draw, _ *Script) []string {
	external := func(name string) Object {
		return Object{"type": "External", "external": Object{"metric": Object{"name": name}, "target": Object{"type": "AverageValue", "averageValue": "10"}}}
	}
	metrics := []any{external("queue"), external("missing")}
	if d.Chance(50) {
		slices.Reverse(metrics)
	}
	return []string{
		"patch horizontalpodautoscalers/web " + jsonOf(Object{"spec": Object{"minReplicas": 1, "maxReplicas": 6, "behavior": nil, "metrics": metrics}}),
		One(d, "metrics external queue=5", "metrics external queue=5", "metrics external queue=45"), "scale deployments/web " + One(d, "3", "4"),
	}
}

// rescaling changes a whole part of the autoscaler.
func rescaling(d *Draw, s *Script) []string {
	spec := One(d, Object{"metrics": someMetrics(d)}, Object{"behavior": scaledBy(d)}, Object{"minReplicas": d.Int(0, 3)}, Object{"maxReplicas": d.Int(1, 6)})
	if d.Chance(10) {
		spec["scaleTargetRef"] = scaleTarget(d)
	}
	return []string{"patch horizontalpodautoscalers/web " + jsonOf(Object{"spec": spec})}
}
