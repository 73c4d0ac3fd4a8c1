package explore

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi3"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// TestTheAlphabetReaches holds that a family can come to what shows a fault that was
// known once: some draw of its moves gives such lines.
func TestTheAlphabetReaches(t *testing.T) {
	const draws = 3000
	for name, tc := range map[string]struct {
		family  string
		objects []string
		want    string
	}{
		"deletions that are refused for a while":    {"deployment", nil, `^webhook delete pods 409\nscale deployments/web 0\n(.*\n)*webhook off$`},
		"pods ready only just, when some must go":   {"statefulset", nil, `web-0 .*2020.*\n.* pods/web-1 .*2099.*\n(.*\n)*patch .*"minReadySeconds":600,"replicas":1`},
		"old pods that do not work under a surge":   {"daemonset", nil, `"maxSurge":1.*\nunready daemonsets/web\nnode \S+ taint a=1:NoSchedule\npatch daemonsets/web .*"image":"v\d"`},
		"a node that loses its label":               {"daemonset", nil, `nodeSelector.*\nlabel nodes/(\S+) disk=ssd\nlabel nodes/(\S+) disk-`},
		"a sidecar that ended later":                {"job", nil, `"containerStatuses":[^|]*2020[^|]*"initContainerStatuses":[^|]*2099`},
		"pods that stop slowly and are taken away":  {"job", nil, `apply indexed.yaml\n.*"suspend":false.*\nkubelet slow-stop\npatch jobs/indexed .*"suspend":true.*\nkubelet on$`},
		"a taint that goes before its time":         {"node", nil, `node \$NS-a taint a=x:NoExecute\npass 1s\nnode \$NS-a untaint a\npass 4s`},
		"two owners, one deleted in foreground":     {"collector", []string{"a", "b", "c", "d"}, `patch (\S+) .*"ownerReferences":\[\{.*"blockOwnerDeletion":true.*\},\{.*\}\].*\ndelete \S+ foreground$`},
		"endpoints in another order":                {"service", nil, `"ports":\[\{"name":"a","port":80\},\{"name":"b","port":81\}\][^|]*\npatch endpoints/web .*"ports":\[\{"name":"a".*\},\{"name":"b".*\}\].*\nannotate services/web`},
		"labels of a service":                       {"service", nil, `^label services/web team=x$`},
		"metrics of pods without a container":       {"hpa", nil, `metrics usage app=web cpu=100m container=-`},
		"a target that somebody has put at zero":    {"hpa", nil, `"minReplicas":0.*\nscale deployments/web 0\nmetrics external queue=(45|20)`},
		"a target that the autoscaler put at zero":  {"hpa", nil, `"minReplicas":0.*\nmetrics external queue=0\nmetrics external queue=(45|20)`},
		"an eviction after a slow status":           {"disruption", []string{"one"}, `^proxy delay 100ms update poddisruptionbudgets/status\nunready (\S+)\npass 600ms\nevict `},
		"unready pods while statuses are slow":      {"disruption", []string{"guarded"}, `^patch .*"minAvailable":2.*\nscale (\S+) 3\nproxy delay 100ms .*\nunready (\S+)#0\npass 400ms\nunready (\S+)#1\npass 400ms\nevict `},
		"a counted pod that fails and stays":        {"quota", nil, `^apply all.yaml\napply a.yaml\nfail a$`},
		"a device that is tainted while it is used": {"device", nil, `^patch resourceclaims/own-gpu-\* [^|]*"reservedFor":\[\{"resource":"pods","name":"own"`},
		"a node whose range is another's":           {"noderange", nil, `^patch nodes/\$NS-. .*"podCIDR":"10.244.5.0/24"`},
		"endpoints of both families of addresses":   {"mirror", nil, `^patch endpoints/web .*10\.9\..*fd00::9`},
		"a pod that moves while no manager runs":    {"volume", nil, `^stop\n(.*\n)*kill p now\napply q.yaml\n(.*\n)*start$`},
		"a volume that could not be emptied":        {"volume", nil, `^status pods/default/recycler-for-\$NS-v .*Failed`},
		"one of two metrics, which asks for less":   {"hpa", nil, `"metrics":\[.*"queue".*"missing".*\nmetrics external queue=5\nscale deployments/web 4$`},
	} {
		t.Run(name, func(t *testing.T) {
			f, want := families[tc.family], regexp.MustCompile(tc.want)
			s := &Script{Objects: map[string]Object{}}
			for _, file := range tc.objects {
				s.Objects[file+".yaml"] = Object{"apiVersion": "apps/v1", "kind": "Deployment"}
			}
			d := NewDraw(nil, 1)
			for range draws {
				if want.MatchString(strings.Join(f.move(d)(d, s), "\n")) {
					return
				}
			}
			t.Errorf("none of %d draws", draws)
		})
	}
}

// oneKind publishes the fields of one kind, which has all that moves go below.
type oneKind struct{ openapi3.Root }

func (oneKind) GVSpec(gv schema.GroupVersion) (*spec3.OpenAPI, error) {
	object := func(fields map[string]spec.Schema) spec.Schema {
		return spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}, Properties: fields}}
	}
	leaf := object(map[string]spec.Schema{"field": *spec.StringProperty()})
	kind := object(map[string]spec.Schema{"spec": object(map[string]spec.Schema{
		"template": leaf, "scaleTargetRef": leaf,
		"jobTemplate": object(map[string]spec.Schema{"spec": leaf, "metadata": leaf}),
	})})
	kind.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{"group": gv.Group, "version": gv.Version, "kind": "Any"}})
	return &spec3.OpenAPI{Components: &spec3.Components{Schemas: map[string]*spec.Schema{"io.Any": &kind}}}, nil
}

// TestEveryMoveIsALineOfAStory draws until rare moves have come too.
func TestEveryMoveIsALineOfAStory(t *testing.T) {
	file := regexp.MustCompile(`\b(?:apply|refused) (\S+\.yaml)`)
	anything := Object{"apiVersion": "v1", "kind": "Any", "metadata": Object{"name": "one"}}
	for name, f := range families {
		t.Run(name, func(t *testing.T) {
			d := NewDraw(&Schemas{root: oneKind{}, specs: map[schema.GroupVersion]*spec3.OpenAPI{}, paths: map[string][]Field{}}, 1)
			s := &Script{Family: name, Head: []string{viaProxy}, Objects: map[string]Object{"a.yaml": anything, "b.yaml": anything}}
			for range 2000 {
				if s.Steps = f.move(d)(d, s); len(s.Steps) == 0 {
					continue // a change of an object that is not there yet
				}
				for _, named := range file.FindAllStringSubmatch(strings.Join(s.Steps, "\n"), -1) {
					if s.Objects[named[1]] == nil {
						s.Objects[named[1]] = anything
					}
				}
				if _, err := s.Story(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestDrawnObjectsReach holds the same of the objects.
func TestDrawnObjectsReach(t *testing.T) {
	for name, tc := range map[string]struct {
		draw func(*Draw) any
		want string
	}{
		"a pod that leaves some seconds after a taint": {func(d *Draw) any { return patient(d, "p") },
			`"nodeName":"\$NS-a".*"tolerations":\[\{"effect":"NoExecute","key":"a","operator":"Exists","tolerationSeconds":[35]\}\]`},
		"requests of a whole pod with overhead": {func(d *Draw) any { return requesting(d) },
			`"requests":\{"cpu":"200m".*"resources":\{"requests":\{"cpu":"400m"\}\},"runtimeClassName":`},
		"indexes that may not fail once":  {func(d *Draw) any { return limitedJob(d) }, `^\{"backoffLimitPerIndex":0,"completionMode":"Indexed","completions":3,"parallelism":3,"template"`},
		"a FlexVolume":                    {func(d *Draw) any { return ownVolume(d, "v") }, `"flexVolume":\{"driver":"example.com/flex"\}`},
		"a host path that can be emptied": {func(d *Draw) any { return ownVolume(d, "v") }, `"hostPath":\{"path":"/tmp/\$NS-v"\}.*"persistentVolumeReclaimPolicy":"Recycle"`},
		"a sidecar":                       {initContainers, `"name":"i".*"restartPolicy":"Always"`},
	} {
		t.Run(name, func(t *testing.T) {
			d, want := NewDraw(nil, 1), regexp.MustCompile(tc.want)
			for range 1000 {
				if want.MatchString(jsonOf(tc.draw(d))) {
					return
				}
			}
			t.Error("no draw has it")
		})
	}
}

// TestANodeGoesUnlessASetSurges holds what is left out of scripts.
func TestANodeGoesUnlessASetSurges(t *testing.T) {
	with := func(rolling Object) Object {
		return Object{"spec": Object{"updateStrategy": Object{"rollingUpdate": rolling}}}
	}
	for name, tc := range map[string]struct {
		set   Object
		steps []string
		step  string
		leave bool
	}{
		"no surge":             {with(Object{"maxUnavailable": 1, "maxSurge": 0}), nil, "node b delete\npass 300ms", false},
		"a surge":              {with(Object{"maxSurge": 1}), nil, "node b delete\npass 300ms", true},
		"a share":              {with(Object{"maxSurge": "50%"}), nil, "node b delete", true},
		"a surge in some step": {with(nil), []string{`patch daemonsets/web {"maxSurge":1}`}, "node b delete", true},
		"another step":         {with(Object{"maxSurge": 1}), nil, "node b cordon", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Script{Objects: map[string]Object{"web.yaml": tc.set}, Steps: tc.steps}
			if got := families["daemonset"].Leave(s, nil, tc.step); got != tc.leave {
				t.Errorf("left out: %t, want %t", got, tc.leave)
			}
		})
	}
}

// TestASecondAutoscalerComesWhilePodsStopAtOnce holds what is left out of scripts.
func TestASecondAutoscalerComesWhilePodsStopAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		before []string
		step   string
		leave  bool
	}{
		"while pods stop slowly":   {[]string{"kubelet slow-stop", "pass 1s"}, "apply second.yaml", true},
		"any other step":           {[]string{"kubelet slow-stop"}, "apply hpa.yaml", false},
		"at once again":            {[]string{"kubelet slow-stop", "kubelet on"}, "apply second.yaml", false},
		"nothing said of the pods": {nil, "apply second.yaml", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := families["hpa"].Leave(nil, tc.before, tc.step); got != tc.leave {
				t.Errorf("left out: %t, want %t", got, tc.leave)
			}
		})
	}
}

func TestWhichOfEqualPodsIsDeletedDecidesWhatIsMeasured(t *testing.T) {
	label := Script{Steps: []string{"label-pod deployments/web#0 tier=a"}}
	const pod, average = "      app: web\n-     tier: a\n    name: web-*\n  ...\n", "        current:\n-         averageValue: 600m\n+         averageValue: 300m\n"
	for name, tc := range map[string]struct {
		script  Script
		finding *compare.Finding
		want    bool
	}{
		"the label is gone":   {label, objectFinding("Pod web-*", pod), true},
		"so is what it uses":  {label, objectFinding("HorizontalPodAutoscaler web", average), true},
		"no pod has a label":  {Script{Steps: []string{"label-pod deployments/web#0 app=other"}}, objectFinding("HorizontalPodAutoscaler web", average), false},
		"another size":        {label, objectFinding("HorizontalPodAutoscaler web", average+"-   desiredReplicas: 2\n+   desiredReplicas: 1\n"), false},
		"another label":       {label, objectFinding("Pod web-*", "-     app: web\n"), false},
		"another kind of pod": {label, objectFinding("Deployment web", pod), false},
	} {
		if got := families["hpa"].Explains(&tc.script, nil, tc.finding) != ""; got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestAPodMayWaitForItsNodeToBeHandedOver(t *testing.T) {
	const later, first = "kubelet volumes", "csi csi.example\nkubelet volumes\nnode $NS-a ready"
	const attached = "      systemUUID: \"\"\n+   volumesAttached:\n+   - devicePath: \"\"\n+     name: kubernetes.io/iscsi/x\n"
	for name, tc := range map[string]struct {
		step    string
		finding *compare.Finding
		want    bool
	}{
		"attached by ours alone":  {later, objectFinding("Node a", attached), true},
		"the node was there":      {first, objectFinding("Node a", attached), false},
		"attached by theirs":      {later, objectFinding("Node a", strings.ReplaceAll(attached, "+ ", "- ")), false},
		"an attachment of ours":   {later, objectFinding("VolumeAttachment csi-*", "only with ours:\n  x"), true},
		"an attachment of theirs": {later, objectFinding("VolumeAttachment csi-*", "only with the reference:\n  x"), false},
		"annotated":               {"annotate nodes/$NS-a volumes.kubernetes.io/controller-managed-attach-detach=true", objectFinding("Node a", attached), true},
	} {
		if got := families["volume"].Explains(&Script{Steps: []string{tc.step}}, nil, tc.finding) != ""; got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestASliceIsNotPartedFromItsController holds what is left out of scripts.
func TestASliceIsNotPartedFromItsController(t *testing.T) {
	for step, leave := range map[string]bool{
		"label endpointslices,kubernetes.io/service-name=web endpointslice.kubernetes.io/managed-by=x": true,
		"label endpointslices,kubernetes.io/service-name=web kubernetes.io/service-name=other":         true,
		"label endpointslices,kubernetes.io/service-name=web foreign=y":                                false,
		"label endpoints/web endpointslice.kubernetes.io/managed-by=x":                                 false,
	} {
		for _, family := range []string{"service", "mirror"} {
			if got := families[family].Leave(nil, nil, step); got != leave {
				t.Errorf("%s: %s: left out: %t, want %t", family, step, got, leave)
			}
		}
	}
}

// TestNothingComesWhileItsOwnerWaits holds what is left out of scripts.
func TestNothingComesWhileItsOwnerWaits(t *testing.T) {
	s := &Script{Objects: map[string]Object{
		"f.yaml": {"metadata": Object{"ownerReferences": []any{Object{"name": "a"}, Object{"name": "b"}}}},
		"g.yaml": {"metadata": Object{}},
	}}
	for name, tc := range map[string]struct {
		before []string
		step   string
		leave  bool
	}{
		"its owner waits":                    {[]string{"apply b.yaml", "patch x y\ndelete configmaps/b foreground"}, "delete serviceaccounts/f\napply f.yaml", true},
		"its owner goes at once":             {[]string{"delete configmaps/b background"}, "apply f.yaml", false},
		"another object waits":               {[]string{"delete configmaps/c foreground"}, "apply f.yaml", false},
		"it has no owner":                    {[]string{"delete configmaps/b foreground"}, "apply g.yaml", false},
		"it is there, and only changes":      {[]string{"delete configmaps/b foreground"}, "label serviceaccounts/f team=x", false},
		"this step deletes the owner itself": {nil, "delete configmaps/b foreground", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := families["collector"].Leave(s, tc.before, tc.step); got != tc.leave {
				t.Errorf("left out: %t, want %t", got, tc.leave)
			}
		})
	}
}

func TestTheReferenceStumblesOverItsOwnSlices(t *testing.T) {
	request := func(verb, resource string, code int) []harness.AuditEvent {
		return []harness.AuditEvent{{}, asked(t, verb, resource, "", code)}
	}
	for name, tc := range map[string]struct {
		requests []harness.AuditEvent
		want     bool
	}{
		"a name that is taken": {request("create", "endpointslices", 409), true},
		"a creation":           {request("create", "endpointslices", 201), false},
		"a conflict":           {request("update", "endpointslices", 409), false},
		"something else":       {request("create", "pods", 409), false},
	} {
		if got := families["mirror"].Explains(nil, tc.requests, nil) != ""; got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func objectFinding(subject, detail string) *compare.Finding {
	return &compare.Finding{Kind: compare.KindObject, Subject: subject, Detail: detail}
}

func asked(t *testing.T, verb, resource, name string, code int) harness.AuditEvent {
	t.Helper()
	var e harness.AuditEvent
	data := fmt.Sprintf(`{"verb":%q,"objectRef":{"resource":%q,"name":%q},"responseStatus":{"code":%d}}`, verb, resource, name, code)
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestANodeThatMovesToAnotherZoneCountsOnceMore(t *testing.T) {
	evictions := &compare.Finding{Kind: compare.KindMetric, Subject: "node_collector_evictions_total{zone=:\x00:north}"}
	for step, want := range map[string]bool{"label nodes/$NS-c topology.kubernetes.io/zone=north": true, "label nodes/$NS-c topology.kubernetes.io/zone-": false} {
		if got := families["node"].Explains(&Script{Steps: []string{step}}, nil, evictions) != ""; got != want {
			t.Errorf("%s: %t", step, got)
		}
	}
}

func TestAnOldReplicaSetThatIsScaledMayRenameTheNewOne(t *testing.T) {
	progressed := func(a, b string) *compare.Finding {
		return &compare.Finding{Kind: compare.KindObject, Subject: "Deployment web", Detail: "    - lastTransitionTime: <time>\n      lastUpdateTime: <time>\n" +
			"-     message: ReplicaSet \"web-1\" " + a + "\n+     message: ReplicaSet \"web-2\" " + b + "\n      reason: NewReplicaSetAvailable\n      status: \"True\"\n  ...\n"}
	}
	const done = "has successfully progressed."
	for name, tc := range map[string]struct {
		step    string
		finding *compare.Finding
		want    bool
	}{
		"scaled":               {"scale replicasets/bare 1", progressed(done, done), true},
		"nothing was scaled":   {"scale deployments/web 1", progressed(done, done), false},
		"one is not yet there": {"scale replicasets/bare 1", progressed(done, "is progressing."), false},
	} {
		if got := families["deployment"].Explains(&Script{Steps: []string{tc.step}}, nil, tc.finding) != ""; got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestABudgetWhoseStatusIsRefusedStaysBehind(t *testing.T) {
	behind := &compare.Finding{Kind: compare.KindObject, Subject: "PodDisruptionBudget web", Detail: "    expectedPods: 0\n-   observedGeneration: <behind>\n+   observedGeneration: <current>"}
	for step, want := range map[string]bool{"webhook update poddisruptionbudgets/status 500": true, "proxy refuse 409 write poddisruptionbudgets/status times=2": true, "webhook update pods 500": false} {
		if got := families["disruption"].Explains(&Script{Steps: []string{step}}, nil, behind) != ""; got != want {
			t.Errorf("%s: %t", step, got)
		}
	}
}

func TestABlockIsTakenBackAfterThreeRefusalsOfOneNode(t *testing.T) {
	patched := func(name string, code int) harness.AuditEvent { return asked(t, "patch", "nodes", name, code) }
	exhausted := &compare.Finding{Kind: compare.KindEvent, Subject: "Node a Normal CIDRNotAvailable"}
	for name, tc := range map[string]struct {
		requests []harness.AuditEvent
		want     bool
	}{
		"three refusals of one node": {[]harness.AuditEvent{patched("a", 500), patched("a", 403), patched("a", 422)}, true},
		"one each of three nodes":    {[]harness.AuditEvent{patched("a", 500), patched("b", 500), patched("c", 500)}, false},
		"two of one node":            {[]harness.AuditEvent{patched("a", 500), patched("a", 200), patched("a", 500)}, false},
	} {
		if got := families["noderange"].Explains(nil, tc.requests, exhausted) != ""; got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestPodsThatCannotBeTakenAreReady(t *testing.T) {
	ready := objectFinding("Job web", "    active: 2\n-   ready: 1\n+   ready: 2\n    startTime: <time>\n")
	fewer := objectFinding("Job web", "    active: 2\n-   ready: 2\n+   ready: 1\n")
	active := objectFinding("Job web", "-   active: 1\n+   active: 2\n    ready: 1\n")
	for name, tc := range map[string]struct {
		code    int
		finding *compare.Finding
		want    bool
	}{
		"refused":                {409, ready, true},
		"fewer":                  {409, fewer, false},
		"deleted":                {200, ready, false},
		"another number as well": {409, active, false},
	} {
		requests := []harness.AuditEvent{{}, asked(t, "delete", "pods", "", tc.code)}
		if got := families["job"].Explains(nil, requests, tc.finding) != ""; got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
