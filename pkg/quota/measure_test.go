package quota

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// list reads "cpu=1 memory=2Gi".
func list(text string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for _, field := range strings.Fields(text) {
		name, quantity, _ := strings.Cut(field, "=")
		l[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return l
}

func requirements(requests, limits string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: list(requests), Limits: list(limits)}
}

func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: requirements("cpu=1", "cpu=2")}}
	change(p)
	return p
}

func leaving(at time.Time, grace int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: at}, &grace
	}
}

const onePod = "count/pods=1 pods=1 cpu=1 requests.cpu=1 limits.cpu=2"

func TestPods(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	for name, tc := range map[string]struct {
		pod    *corev1.Pod
		ignore bool
		want   string
	}{
		"requests and limits": {pod(func(*corev1.Pod) {}), false, onePod},
		"every compute resource under all of its names": {pod(func(p *corev1.Pod) {
			all := "cpu=1 memory=2 ephemeral-storage=3 hugepages-2Mi=4 example.com/gpu=5 deviceclass.resource.kubernetes.io/fast=6 kubernetes.io/own=7"
			p.Spec.Containers[0].Resources = requirements(all, all)
		}), false, "count/pods=1 pods=1 cpu=1 requests.cpu=1 limits.cpu=1 memory=2 requests.memory=2 limits.memory=2 ephemeral-storage=3 " +
			"requests.ephemeral-storage=3 limits.ephemeral-storage=3 hugepages-2Mi=4 requests.hugepages-2Mi=4 requests.example.com/gpu=5 " +
			"requests.deviceclass.resource.kubernetes.io/fast=6"},
		"the larger of what starts and what runs, and overhead": {pod(func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{
				{Name: "beside", RestartPolicy: &always, Resources: requirements("cpu=1", "cpu=1")},
				{Name: "first", Resources: requirements("cpu=5", "cpu=6")},
			}
			p.Spec.Overhead = list("cpu=10m")
		}), false, "count/pods=1 pods=1 cpu=6010m requests.cpu=6010m limits.cpu=7010m"},
		"the pod as a whole": {pod(func(p *corev1.Pod) {
			r := requirements("cpu=7", "cpu=8")
			p.Spec.Resources = &r
		}), false, "count/pods=1 pods=1 cpu=7 requests.cpu=7 limits.cpu=8"},
		"the pod as a whole is left out without the gate": {pod(func(p *corev1.Pod) {
			r := requirements("cpu=7", "cpu=8")
			p.Spec.Resources = &r
		}), true, onePod},
		"a resize counts as long as more is given": {pod(func(p *corev1.Pod) {
			r := requirements("cpu=5", "cpu=7")
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Resources: &r, AllocatedResources: list("cpu=6")}}
		}), false, "count/pods=1 pods=1 cpu=6 requests.cpu=6 limits.cpu=7"},
		"what a resize of the whole pod has given does not count": {pod(func(p *corev1.Pod) {
			spec, given := requirements("cpu=1", "cpu=2"), requirements("cpu=3", "cpu=4")
			p.Spec.Resources, p.Status.Resources, p.Status.AllocatedResources = &spec, &given, list("cpu=3")
		}), false, onePod},
		"one that failed is only stored":    {pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), false, "count/pods=1"},
		"one that succeeded is only stored": {pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), false, "count/pods=1"},
		"one that is leaving counts":        {pod(leaving(noon, 30)), false, onePod},
		"also for a time that nobody says":  {pod(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon.Add(-time.Hour)} }), false, onePod},
		"and as long again":                 {pod(leaving(noon.Add(-30*time.Second), 30)), false, onePod},
		"then it is only stored":            {pod(leaving(noon.Add(-31*time.Second), 30)), false, "count/pods=1"},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.pod.DeepCopy()
			got := Rules{IgnorePodLevel: tc.ignore}.Measure(Pods, tc.pod, noon)
			if !Same(got.Used, list(tc.want)) {
				t.Error(cmp.Diff(list(tc.want), got.Used))
			}
			if diff := cmp.Diff(before, tc.pod); diff != "" {
				t.Errorf("the cached object was changed: %s", diff)
			}
		})
	}
}

func TestAPodThatIsLeavingSaysUntilWhenItCounts(t *testing.T) {
	got := Rules{}.Measure(Pods, pod(leaving(noon, 30)), noon)
	if !got.Until.Equal(noon.Add(30*time.Second)) || !Same(got.Then, list("count/pods=1")) {
		t.Errorf("until %v, then %v", got.Until, got.Then)
	}
}

func TestServices(t *testing.T) {
	ports := []corev1.ServicePort{{Port: 1, NodePort: 30001}, {Port: 2}, {Port: 3}}
	for name, tc := range map[string]struct {
		spec corev1.ServiceSpec
		want string
	}{
		"plain":                             {corev1.ServiceSpec{Ports: ports, Type: corev1.ServiceTypeClusterIP}, "0 0"},
		"external":                          {corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName}, "0 0"},
		"node ports":                        {corev1.ServiceSpec{Ports: ports, Type: corev1.ServiceTypeNodePort}, "3 0"},
		"load balancer":                     {corev1.ServiceSpec{Ports: ports, Type: corev1.ServiceTypeLoadBalancer}, "3 1"},
		"load balancer with ports":          {corev1.ServiceSpec{Ports: ports, Type: corev1.ServiceTypeLoadBalancer, AllocateLoadBalancerNodePorts: ptr.To(true)}, "3 1"},
		"load balancer with its ports only": {corev1.ServiceSpec{Ports: ports, Type: corev1.ServiceTypeLoadBalancer, AllocateLoadBalancerNodePorts: ptr.To(false)}, "1 1"},
	} {
		t.Run(name, func(t *testing.T) {
			n, b, _ := strings.Cut(tc.want, " ")
			want := list("count/services=1 services=1 services.nodeports=" + n + " services.loadbalancers=" + b)
			if got := (Rules{}).Measure(Services, &corev1.Service{Spec: tc.spec}, noon); !Same(got.Used, want) {
				t.Error(cmp.Diff(want, got.Used))
			}
		})
	}
}

func TestClaims(t *testing.T) {
	claim := func(storage, allocated string, class *string, annotations map[string]string) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
		c.Spec.StorageClassName, c.Spec.Resources.Requests, c.Status.AllocatedResources = class, list(storage), list(allocated)
		return c
	}
	old := map[string]string{corev1.BetaStorageClassAnnotation: "old"}
	for name, tc := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  string
	}{
		"no class":                  {claim("storage=1Gi", "", nil, nil), "requests.storage=1Gi"},
		"an empty class is none":    {claim("storage=1Gi", "", ptr.To(""), nil), "requests.storage=1Gi"},
		"a class":                   {claim("storage=1Gi", "", ptr.To("gold"), nil), "requests.storage=1Gi gold.storageclass.storage.k8s.io/requests.storage=1Gi gold.storageclass.storage.k8s.io/persistentvolumeclaims=1"},
		"the annotation goes first": {claim("storage=1Gi", "", ptr.To("gold"), old), "requests.storage=1Gi old.storageclass.storage.k8s.io/requests.storage=1Gi old.storageclass.storage.k8s.io/persistentvolumeclaims=1"},
		"whole bytes":               {claim("storage=1500m", "", nil, nil), "requests.storage=2"},
		"more is allocated":         {claim("storage=1Gi", "storage=2Gi", nil, nil), "requests.storage=2Gi"},
		"less is allocated":         {claim("storage=2Gi", "storage=1Gi", nil, nil), "requests.storage=2Gi"},
		"nothing is asked for":      {claim("", "storage=1Gi", nil, nil), ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := list("count/persistentvolumeclaims=1 persistentvolumeclaims=1 " + tc.want)
			if got := (Rules{}).Measure(Claims, tc.claim, noon); !Same(got.Used, want) {
				t.Error(cmp.Diff(want, got.Used))
			}
		})
	}
}

func exactly(class string, n int64) resourceapi.DeviceRequest {
	return resourceapi.DeviceRequest{Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: n}}
}

func TestDevices(t *testing.T) {
	some := resourceapi.DeviceAllocationModeExactCount
	requester := pod(func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = requirements("example.com/gpu=5 deviceclass.resource.kubernetes.io/gpu=3", "")
	})
	over := requester.DeepCopy()
	over.Status.Phase = corev1.PodSucceeded
	for name, tc := range map[string]struct {
		requests []resourceapi.DeviceRequest
		made     bool
		pod      *corev1.Pod
		want     string
	}{
		"nothing": {nil, false, nil, ""},
		"a class without an extended resource": {[]resourceapi.DeviceRequest{exactly("nic", 2)}, false, nil,
			"nic.deviceclass.resource.k8s.io/devices=2 requests.deviceclass.resource.kubernetes.io/nic=2"},
		"a class with one": {[]resourceapi.DeviceRequest{exactly("gpu", 2), exactly("gpu", 1)}, false, nil,
			"gpu.deviceclass.resource.k8s.io/devices=3 requests.deviceclass.resource.kubernetes.io/gpu=3 requests.example.com/gpu=3"},
		"counts whose sum is too large": {[]resourceapi.DeviceRequest{exactly("nic", math.MaxInt64), exactly("nic", math.MaxInt64)}, false, nil,
			"nic.deviceclass.resource.k8s.io/devices=9223372036854775807 requests.deviceclass.resource.kubernetes.io/nic=9223372036854775807"},
		"all devices are the most there can be": {[]resourceapi.DeviceRequest{{Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "nic", AllocationMode: resourceapi.DeviceAllocationModeAll}}}, false, nil,
			"nic.deviceclass.resource.k8s.io/devices=32 requests.deviceclass.resource.kubernetes.io/nic=32"},
		"a mode that is not known counts nothing": {[]resourceapi.DeviceRequest{{Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "nic", AllocationMode: "Any"}}}, false, nil,
			"nic.deviceclass.resource.k8s.io/devices=0 requests.deviceclass.resource.kubernetes.io/nic=0"},
		"of alternatives the largest of each class": {[]resourceapi.DeviceRequest{{FirstAvailable: []resourceapi.DeviceSubRequest{
			{DeviceClassName: "gpu", AllocationMode: some, Count: 4}, {DeviceClassName: "gpu", AllocationMode: some, Count: 2}, {DeviceClassName: "nic", AllocationMode: some, Count: 2}}}}, false, nil,
			"gpu.deviceclass.resource.k8s.io/devices=4 requests.deviceclass.resource.kubernetes.io/gpu=4 requests.example.com/gpu=4 " +
				"nic.deviceclass.resource.k8s.io/devices=2 requests.deviceclass.resource.kubernetes.io/nic=2"},
		"what the pod counts is not counted again": {[]resourceapi.DeviceRequest{exactly("gpu", 5)}, true, requester,
			"gpu.deviceclass.resource.k8s.io/devices=5 requests.deviceclass.resource.kubernetes.io/gpu=2 requests.example.com/gpu=0"},
		"nor less than nothing": {[]resourceapi.DeviceRequest{exactly("gpu", 1)}, true, requester,
			"gpu.deviceclass.resource.k8s.io/devices=1 requests.deviceclass.resource.kubernetes.io/gpu=0 requests.example.com/gpu=0"},
		"a pod that has ended counts nothing": {[]resourceapi.DeviceRequest{exactly("gpu", 5)}, true, over,
			"gpu.deviceclass.resource.k8s.io/devices=5 requests.deviceclass.resource.kubernetes.io/gpu=5 requests.example.com/gpu=5"},
		"nor does one that is gone": {[]resourceapi.DeviceRequest{exactly("gpu", 5)}, true, nil,
			"gpu.deviceclass.resource.k8s.io/devices=5 requests.deviceclass.resource.kubernetes.io/gpu=5 requests.example.com/gpu=5"},
		"nor another of its name": {[]resourceapi.DeviceRequest{exactly("gpu", 5)}, true, pod(func(p *corev1.Pod) { p.UID = "new" }),
			"gpu.deviceclass.resource.k8s.io/devices=5 requests.deviceclass.resource.kubernetes.io/gpu=5 requests.example.com/gpu=5"},
		"a claim of the user's own is counted beside the pod": {[]resourceapi.DeviceRequest{exactly("gpu", 5)}, false, requester,
			"gpu.deviceclass.resource.k8s.io/devices=5 requests.deviceclass.resource.kubernetes.io/gpu=5 requests.example.com/gpu=5"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c",
				OwnerReferences: []metav1.OwnerReference{{Kind: "Pod", Name: "p", UID: "u", Controller: ptr.To(true)}}}}
			c.Spec.Devices.Requests = tc.requests
			if tc.made {
				c.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}
			}
			rules := Rules{
				ExtendedResource: func(class string) string { return map[string]string{"gpu": "example.com/gpu"}[class] },
				Pod:              func(_, _ string) *corev1.Pod { return tc.pod },
				MadeFor:          func(*corev1.Pod) []*resourceapi.ResourceClaim { return []*resourceapi.ResourceClaim{c} },
			}
			want := list("count/resourceclaims.resource.k8s.io=1 " + tc.want)
			if got := rules.Measure(DeviceClaims, c, noon); !Same(got.Used, want) {
				t.Error(cmp.Diff(want, got.Used))
			}
		})
	}
}

// TestOneClaimOfAPodIsNotCountedAgain is about who may write: anybody annotates
// claims, and only the scheduler writes the status of a pod.
func TestOneClaimOfAPodIsNotCountedAgain(t *testing.T) {
	requester := func(status string) *corev1.Pod {
		return pod(func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources = requirements("example.com/gpu=100", "")
			if status != "" {
				p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: status}
			}
		})
	}
	claim := func(name string, after time.Duration, devices int64) *resourceapi.ResourceClaim {
		c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: metav1.NewTime(noon.Add(after)),
			Annotations:     map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Pod", Name: "p", UID: "u", Controller: ptr.To(true)}}}}
		c.Spec.Devices.Requests = []resourceapi.DeviceRequest{exactly("gpu", devices)}
		return c
	}
	for name, tc := range map[string]struct {
		pod    *corev1.Pod
		a, b   time.Duration // when they were made
		ignore bool
		want   string
	}{
		"the one that the status names":              {requester("a"), time.Second, 0, false, "a=0 b=7"},
		"whichever was first":                        {requester("b"), 0, time.Second, false, "a=20 b=0"},
		"none when the status names another":         {requester("c"), 0, 0, false, "a=20 b=7"},
		"the first as long as the status names none": {requester(""), time.Second, 0, false, "a=20 b=0"},
		"the first by name in the same second":       {requester(""), 0, 0, false, "a=0 b=7"},
		"none where they do not count at all":        {requester("a"), 0, 0, true, "a=0 b=0"},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := claim("a", tc.a, 20), claim("b", tc.b, 7)
			rules := Rules{
				IgnoreExtended:   tc.ignore,
				ExtendedResource: func(string) string { return "example.com/gpu" },
				Pod:              func(_, _ string) *corev1.Pod { return tc.pod },
				// Those that are known of may be of another version.
				MadeFor: func(*corev1.Pod) []*resourceapi.ResourceClaim {
					return []*resourceapi.ResourceClaim{b.DeepCopy(), a.DeepCopy()}
				},
			}
			var got []string
			for _, c := range []*resourceapi.ResourceClaim{a, b} {
				used := rules.Measure(DeviceClaims, c, noon).Used
				got = append(got, fmt.Sprintf("%s=%d", c.Name, used.Name("requests.example.com/gpu", "").Value()))
				if _, counted := used["requests.deviceclass.resource.kubernetes.io/gpu"]; counted == tc.ignore {
					t.Errorf("%s uses %v", c.Name, used)
				}
				if n := used.Name("gpu.deviceclass.resource.k8s.io/devices", ""); n.IsZero() {
					t.Errorf("%s is not counted by its class: %v", c.Name, used)
				}
			}
			if text := strings.Join(got, " "); text != tc.want {
				t.Errorf("got %s, want %s", text, tc.want)
			}
		})
	}
}

// A pod whose node is lost counts until its time to end has passed; its devices do not go with it.
func TestAClaimCountsWhenItsPodNoLongerDoes(t *testing.T) {
	requester := pod(func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources = requirements("example.com/gpu=2", "")
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(noon)), ptr.To[int64](30)
	})
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c",
		Annotations:     map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Pod", Name: "p", UID: "u", Controller: ptr.To(true)}}}}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{exactly("gpu", 2)}
	rules := Rules{
		ExtendedResource: func(string) string { return "example.com/gpu" },
		Pod:              func(_, _ string) *corev1.Pod { return requester },
		MadeFor:          func(*corev1.Pod) []*resourceapi.ResourceClaim { return []*resourceapi.ResourceClaim{claim} },
	}
	ofPods, ofClaims := NewBook(Pods, Growth{}), NewBook(DeviceClaims, Growth{})
	ofPods.Put("p", rules.Measure(Pods, requester, noon))
	ofClaims.Put("c", rules.Measure(DeviceClaims, claim, noon))
	for _, after := range []time.Duration{0, 30 * time.Second, 31 * time.Second, time.Hour} {
		var used int64
		for _, book := range []*Book{ofPods, ofClaims} {
			book.Expire(noon.Add(after))
			sum := book.Sum(Scope{})
			used += sum.Name("requests.example.com/gpu", "").Value()
		}
		if used != 2 {
			t.Errorf("%d devices are used after %s", used, after)
		}
	}
}

func TestAnythingElseCountsAsOne(t *testing.T) {
	for of, want := range map[schema.GroupResource]string{
		{Resource: "configmaps"}:                       "count/configmaps=1 configmaps=1",
		{Resource: "secrets"}:                          "count/secrets=1 secrets=1",
		{Resource: "resourcequotas"}:                   "count/resourcequotas=1 resourcequotas=1",
		{Resource: "replicationcontrollers"}:           "count/replicationcontrollers=1 replicationcontrollers=1",
		{Group: "apps", Resource: "deployments"}:       "count/deployments.apps=1",
		{Group: "example.com", Resource: "configmaps"}: "count/configmaps.example.com=1",
	} {
		if got := (Rules{}).Measure(of, &metav1.PartialObjectMetadata{}, noon); !Same(got.Used, list(want)) {
			t.Errorf("%s: %v", of, got.Used)
		}
	}
}

func TestCounted(t *testing.T) {
	offered := func(name string) bool {
		return name == "example.com/gpu" || name == "deviceclass.resource.kubernetes.io/a.b"
	}
	for name, want := range map[corev1.ResourceName]string{
		"pods": "pods", "cpu": "pods", "limits.memory": "pods", "hugepages-2Mi": "pods", "requests.hugepages-1Gi": "pods",
		"requests.storage": "persistentvolumeclaims", "gold.storageclass.storage.k8s.io/requests.storage": "persistentvolumeclaims",
		"gold.storageclass.storage.k8s.io/other": "", "services.nodeports": "services", "secrets": "secrets",
		"count/pods": "pods", "count/deployments.apps": "deployments.apps", "count/things.a.example.com": "things.a.example.com",
		"a.b.deviceclass.resource.k8s.io/devices":          "resourceclaims.resource.k8s.io",
		"requests.deviceclass.resource.kubernetes.io/a.b":  "pods resourceclaims.resource.k8s.io",
		"requests.deviceclass.resource.kubernetes.io/none": "pods",
		"requests.example.com/gpu":                         "pods resourceclaims.resource.k8s.io",
		"requests.example.com/other":                       "pods",
		"requests.kubernetes.io/x":                         "",
		"requests.plain":                                   "",
		"limits.example.com/gpu":                           "",
		"example.com/gpu":                                  "",
		"storage":                                          "",
	} {
		var got []string
		for _, of := range CountedFor(name, offered) {
			got = append(got, of.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", name, got, want)
		}
	}
	// A class that does not exist counts in a quota that counts claims anyway.
	const none = "requests.deviceclass.resource.kubernetes.io/none"
	for other, want := range map[corev1.ResourceName]int{"pods": 1, "count/resourceclaims.resource.k8s.io": 2} {
		if got := Counted(corev1.ResourceList{none: one(), other: one()}, offered)[none]; len(got) != want {
			t.Errorf("beside %s: got %v", other, got)
		}
	}
}

func TestMeasurable(t *testing.T) {
	slim := &metav1.PartialObjectMetadata{}
	for _, of := range []schema.GroupResource{Pods, Services, Claims, DeviceClaims} {
		if Measurable(of, slim) {
			t.Errorf("%s cannot be measured by their metadata", of)
		}
	}
	if !Measurable(Pods, &corev1.Pod{}) || !Measurable(schema.GroupResource{Resource: "secrets"}, slim) {
		t.Error("these can")
	}
}
