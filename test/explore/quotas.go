package explore

import "slices"

var quotaScopes = []string{"Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity", "VolumeAttributesClass"}

// limited are names that a quota may count, and what it may allow of them.
var limited = map[string][]string{
	"pods": {"0", "2", "10"}, "cpu": {"300m", "2", "10"}, "memory": {"100Mi", "1Gi", "10Gi"}, "requests.cpu": {"300m", "10"}, "requests.memory": {"1Gi"},
	"limits.cpu": {"500m", "10"}, "limits.memory": {"1Gi", "10Gi"}, "ephemeral-storage": {"1Gi"}, "requests.ephemeral-storage": {"1Gi"}, "limits.ephemeral-storage": {"1Gi"},
	"hugepages-2Mi": {"4Mi"}, "requests.hugepages-2Mi": {"4Mi"}, "requests.example.com/gpu": {"1", "4"}, "persistentvolumeclaims": {"1", "5"}, "requests.storage": {"5Gi"},
	"fast.storageclass.storage.k8s.io/requests.storage": {"3Gi"}, "fast.storageclass.storage.k8s.io/persistentvolumeclaims": {"1"},
	"services": {"1", "5"}, "services.nodeports": {"0", "3"}, "services.loadbalancers": {"0", "2"}, "configmaps": {"2", "10"}, "secrets": {"1", "10"}, "resourcequotas": {"3"},
	"replicationcontrollers": {"1"}, "count/pods": {"1", "10"}, "count/configmaps": {"10"}, "count/deployments.apps": {"1", "5"}, "count/services": {"2"},
	"count/serviceaccounts": {"2"}, "count/things.x.example": {"1"}, "count/leases.coordination.k8s.io": {"3"}, "count/resourceclaims.resource.k8s.io": {"1"},
	"count/persistentvolumeclaims": {"1", "3"}, "fast.deviceclass.resource.k8s.io/devices": {"2"},
}

var limitedNames = []string{"pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory", "ephemeral-storage", "requests.ephemeral-storage",
	"limits.ephemeral-storage", "hugepages-2Mi", "requests.hugepages-2Mi", "requests.example.com/gpu", "persistentvolumeclaims", "requests.storage",
	"fast.storageclass.storage.k8s.io/requests.storage", "fast.storageclass.storage.k8s.io/persistentvolumeclaims", "services", "services.nodeports", "services.loadbalancers",
	"configmaps", "secrets", "resourcequotas", "replicationcontrollers", "count/pods", "count/configmaps", "count/deployments.apps", "count/services", "count/serviceaccounts",
	"count/things.x.example", "count/leases.coordination.k8s.io", "count/resourceclaims.resource.k8s.io", "count/persistentvolumeclaims", "fast.deviceclass.resource.k8s.io/devices"}

// ofPods are those that a quota with scopes may count.
var ofPods = []string{"pods", "cpu", "memory", "requests.cpu", "limits.memory", "count/pods", "requests.memory", "limits.cpu"}

func hard(d *Draw, names []string) Object {
	o := Object{}
	for range d.Int(1, 6) {
		name := One(d, names...)
		o[name] = One(d, limited[name]...)
	}
	return o
}

func quotaOf(d *Draw, name string) Object {
	spec := Object{"hard": hard(d, limitedNames)}
	switch d.Int(0, 5) {
	case 0, 1:
		spec["scopes"], spec["hard"] = []any{One(d, quotaScopes[:4]...)}, hard(d, One(d, ofPods, ofPods[:1]))
	case 2:
		spec["scopeSelector"], spec["hard"] = selectorOfScopes(d), hard(d, One(d, ofPods, ofPods[:1], []string{"persistentvolumeclaims", "requests.storage"}))
	}
	return Object{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": d.Metadata(name), "spec": spec}
}

func selectorOfScopes(d *Draw) Object {
	terms := []any{}
	for range d.Int(1, 2) {
		term := Object{"scopeName": One(d, quotaScopes...), "operator": "Exists"}
		if term["scopeName"] == "PriorityClass" || term["scopeName"] == "VolumeAttributesClass" {
			switch One(d, "In", "NotIn", "Exists", "DoesNotExist") {
			case "In":
				term["operator"], term["values"] = "In", []any{"system-node-critical", "gold"}
			case "NotIn":
				term["operator"], term["values"] = "NotIn", []any{"system-node-critical"}
			case "DoesNotExist":
				term["operator"] = "DoesNotExist"
			}
		}
		terms = append(terms, term)
	}
	return Object{"matchExpressions": terms}
}

// charged is a pod that asks for something.
func charged(d *Draw, name string) Object {
	resources := func(o Object, percent int) Object {
		r := Object{}
		if d.Chance(percent) {
			r["requests"] = One(d, Object{"cpu": "100m"}, Object{"cpu": "100m", "memory": "64Mi"}, Object{"memory": "64Mi", "ephemeral-storage": "1Mi"})
		}
		if d.Chance(percent) {
			r["limits"] = One(d, Object{"cpu": "500m"}, Object{"cpu": "500m", "memory": "128Mi"}, Object{"example.com/gpu": "1"}, Object{"hugepages-2Mi": "2Mi", "cpu": "500m"})
		}
		o["resources"] = r
		return o
	}
	spec := resources(Object{"containers": []any{resources(Object{"name": "c", "image": "one"}, 60), resources(Object{"name": "d", "image": "two"}, 30)}}, 10)
	if d.Chance(30) {
		spec["initContainers"] = []any{resources(Object{"name": "i", "image": "one", "restartPolicy": One(d, "Always", "Never")}, 60)}
	}
	if d.Chance(25) {
		spec["activeDeadlineSeconds"] = 3600
	}
	if d.Chance(20) {
		spec["priorityClassName"] = "system-node-critical"
	}
	if d.Chance(15) {
		spec["runtimeClassName"] = "$NS-class"
	}
	if d.Chance(15) {
		spec["affinity"] = Object{"podAffinity": Object{"preferredDuringSchedulingIgnoredDuringExecution": []any{Object{"weight": 1, "podAffinityTerm": Object{
			"topologyKey": "kubernetes.io/hostname", "namespaces": []any{"default"}, "labelSelector": Object{"matchLabels": Object{"app": "web"}}}}}}}
	}
	spec["restartPolicy"] = One(d, "Always", "Never")
	if d.Chance(25) {
		spec["terminationGracePeriodSeconds"] = One(d, 0, 1)
	}
	return Object{"apiVersion": "v1", "kind": "Pod", "metadata": d.Metadata(name), "spec": spec}
}

func claimed(d *Draw) Object {
	spec := Object{"accessModes": []any{"ReadWriteOnce"}, "resources": Object{"requests": Object{"storage": One(d, "1Gi", "4Gi")}}}
	if d.Chance(60) {
		spec["storageClassName"] = One(d, "fast", "slow", "")
	}
	if d.Chance(25) {
		spec["volumeAttributesClassName"] = "gold"
	}
	return Object{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": d.Metadata("claim"), "spec": spec}
}

func init() {
	pods := []string{"a", "b", "c"}
	register(&Family{
		Name:     "quota",
		Start:    []string{"resourcequota-controller"},
		Flags:    []string{"--resource-quota-sync-period=3s"},
		Compared: []string{"resourcequotas", "pods", "services", "persistentvolumeclaims"},
		Begin: func(d *Draw, s *Script) {
			s.Objects["class.yaml"] = Object{"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": Object{"name": "$NS-class"}, "handler": "h",
				"overhead": Object{"podFixed": Object{"cpu": "50m"}}}
			s.Objects["service.yaml"] = Object{"apiVersion": "v1", "kind": "Service", "metadata": d.Metadata("front"), "spec": Object{
				"type": One(d, "ClusterIP", "NodePort", "LoadBalancer"), "ports": servicePorts(d)}}
			s.Objects["claim.yaml"] = claimed(d)
			s.Objects["map.yaml"] = Object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": d.Metadata("map")}
			s.Objects["secret.yaml"] = Object{"apiVersion": "v1", "kind": "Secret", "metadata": d.Metadata("secret")}
			s.Objects["web.yaml"] = Object{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": d.Metadata("web"), "spec": Object{
				"replicas": 1, "selector": Object{"matchLabels": Object{"app": "web"}}, "template": PodTemplate(Object{"app": "web"})}}
			for _, pod := range pods {
				s.Objects[pod+".yaml"] = charged(d, pod)
			}
			s.Steps = append(s.Steps, "apply class.yaml")
			s.Add("q.yaml", quotaOf(d, "q"))
			s.Objects["r.yaml"] = quotaOf(d, "r")
			s.Objects["all.yaml"] = Object{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": Object{"name": "all"},
				"spec": Object{"hard": Object{"pods": "10", "count/pods": "20"}}}
			if d.Chance(40) {
				s.Steps = append(s.Steps, "apply r.yaml")
			}
			s.Steps = append(s.Steps, "apply a.yaml")
		},
		Moves: slices.Concat([]Move{
			{4, About([]string{"q", "r"}, "apply %s.yaml", "delete resourcequotas/%s\napply %s.yaml", "delete resourcequotas/%s")},
			{5, func(d *Draw, _ *Script) []string {
				return []string{"patch resourcequotas/" + One(d, "q", "q", "r") + " " + jsonOf(Object{"spec": Object{"hard": hard(d, One(d, limitedNames, ofPods))}})}
			}},
			{2, Change("q.yaml", "resourcequotas/q", "spec")},
			{3, Line(`status resourcequotas/q {"used":{"pods":"7","configmaps":"1"}}`, `status resourcequotas/q {"used":null}`, `status resourcequotas/q {"hard":null,"used":null}`,
				`status resourcequotas/q {"hard":{"pods":"9"},"used":{"pods":"0"}}`, `status resourcequotas/q {"used":{"requests.cpu":"3"}}`)},
			{8, About(pods, "apply %s.yaml")},
			{5, countedThenEnded},
			{6, About(pods, "fail %s", "succeed %s", "delete pods/%s", "delete pods/%s now", "unready %s")},
			{2, About(pods, `patch pods/%s {"spec":{"activeDeadlineSeconds":100}}`, `status pods/%s {"phase":"Failed"}`, `patch pods/%s {"metadata":{"finalizers":["x.example/hold"]}}`,
				`patch pods/%s {"metadata":{"finalizers":null}}`, `status pods/%s {"phase":"Unknown"}`)},
			{6, About([]string{"service", "claim", "map", "secret", "web"}, "apply %s.yaml")},
			{4, Line("delete services/front", "delete persistentvolumeclaims/claim", "delete configmaps/map", "delete secrets/secret", "delete deployments/web orphan",
				`patch services/front {"spec":{"type":"NodePort"}}`, `patch services/front {"spec":{"type":"ClusterIP"}}`, `patch services/front {"spec":{"type":"LoadBalancer"}}`,
				`patch services/front {"spec":{"allocateLoadBalancerNodePorts":false}}`, `patch persistentvolumeclaims/claim {"spec":{"volumeAttributesClassName":"silver"}}`,
				`status persistentvolumeclaims/claim {"phase":"Bound","capacity":{"storage":"8Gi"},"allocatedResources":{"storage":"9Gi"}}`)},
			{1, Line("kubelet off", "kubelet slow-start", "kubelet slow-stop", "kubelet pending")},
			{2, Line("kubelet on")},
			{1, Line("pass 4s")},
		}, Disturbances("resourcequotas")),
	})
}

// countedThenEnded ends a pod that a quota without scopes counts for certain.
func countedThenEnded(d *Draw, _ *Script) []string {
	pod := One(d, "a", "b", "c")
	return []string{"apply all.yaml", "apply " + pod + ".yaml", One(d, "fail ", "fail ", "fail ", "succeed ") + pod}
}
