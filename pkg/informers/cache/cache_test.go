package cache

import (
	"fmt"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	toolscache "k8s.io/client-go/tools/cache"
)

// usual is a pod as a Deployment of some years makes it.
func usual(name string) *corev1.Pod {
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"check"}}}}
	container := corev1.Container{
		Name: "web", Image: "web:1", Command: []string{"serve"}, Args: []string{"--fast"}, WorkingDir: "/",
		Env:           []corev1.EnvVar{{Name: "A", Value: "b"}},
		EnvFrom:       []corev1.EnvFromSource{{Prefix: "X"}},
		Ports:         []corev1.ContainerPort{{Name: "http", ContainerPort: 80}},
		VolumeMounts:  []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
		LivenessProbe: probe, ReadinessProbe: probe, StartupProbe: probe,
		Lifecycle: &corev1.Lifecycle{},
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Labels: map[string]string{"app": "web", "pod": name},
			Annotations:   map[string]string{corev1.LastAppliedConfigAnnotation: "{}", corev1.PodDeletionCost: "3"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}},
		Spec: corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{container}, InitContainers: []corev1.Container{container},
			Tolerations: []corev1.Toleration{{Key: "k"}}, Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
				{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
			}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1",
			ContainerStatuses: []corev1.ContainerStatus{{Name: "web", RestartCount: 2, ContainerID: "id", ImageID: "sha"}}},
	}
}

func TestTrimmedPodHoldsOnlyWhatControllersRead(t *testing.T) {
	trimmed, err := Trim(usual("a"))
	if err != nil {
		t.Fatal(err)
	}
	pod := trimmed.(*corev1.Pod)
	if pod.ManagedFields != nil || pod.Annotations[corev1.LastAppliedConfigAnnotation] != "" {
		t.Error("metadata is not trimmed")
	}
	kept := map[string]bool{"Name": true, "Ports": true}
	for _, c := range append(pod.Spec.Containers, pod.Spec.InitContainers...) {
		v := reflect.ValueOf(c)
		for i := range v.NumField() {
			if name := v.Type().Field(i).Name; v.Field(i).IsZero() == kept[name] {
				t.Errorf("container field %s: %v", name, v.Field(i))
			}
		}
	}
	if pod.Annotations[corev1.PodDeletionCost] != "3" || pod.Spec.NodeName != "node" || len(pod.Spec.Tolerations) != 1 ||
		len(pod.Spec.Volumes) != 1 || pod.Spec.Volumes[0].PersistentVolumeClaim == nil || pod.Status.PodIP == "" || pod.Status.ContainerStatuses[0].RestartCount != 2 {
		t.Error("something that controllers read is gone")
	}
}

func TestTrimKeepsOfAffinityWhatReachesIntoOtherNamespaces(t *testing.T) {
	anywhere := &metav1.LabelSelector{}
	near := corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: anywhere}
	far := corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: anywhere, NamespaceSelector: anywhere}
	named := corev1.PodAffinityTerm{TopologyKey: "zone", Namespaces: []string{"other"}}
	for name, tc := range map[string]struct{ in, want *corev1.Affinity }{
		"none":                     {nil, nil},
		"nodes only":               {&corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}, nil},
		"its namespace":            {&corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{near}}}, nil},
		"avoided in its namespace": {&corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{near}}}, nil},
		"required and preferred elsewhere": {
			&corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution:  []corev1.PodAffinityTerm{far},
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 3, PodAffinityTerm: named}}}},
			&corev1.Affinity{PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution:  []corev1.PodAffinityTerm{{NamespaceSelector: anywhere}},
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: corev1.PodAffinityTerm{Namespaces: []string{"other"}}}}}}},
		"required elsewhere": {
			&corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{near, far}}},
			&corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{NamespaceSelector: anywhere}}}}},
		"avoided elsewhere": {
			&corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 3, PodAffinityTerm: named}}}},
			&corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: corev1.PodAffinityTerm{Namespaces: []string{"other"}}}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := usual("a")
			pod.Spec.Affinity = tc.in
			trimmed, err := Trim(pod)
			if err != nil {
				t.Fatal(err)
			}
			if got := trimmed.(*corev1.Pod).Spec.Affinity; !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestTrimKeepsWhichNodeAPodIsMadeForUntilItHasOne(t *testing.T) {
	byName := []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node"}}}
	byLabel := []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpExists}}
	required := func(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
	}
	for name, tc := range map[string]struct {
		node     string
		in, want *corev1.Affinity
	}{
		"has none":           {"", required(corev1.NodeSelectorTerm{MatchFields: byName, MatchExpressions: byLabel}, corev1.NodeSelectorTerm{MatchExpressions: byLabel}), required(corev1.NodeSelectorTerm{MatchFields: byName})},
		"has one":            {"node", required(corev1.NodeSelectorTerm{MatchFields: byName}), nil},
		"is for any by name": {"", required(corev1.NodeSelectorTerm{MatchExpressions: byLabel}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			pod := usual("a")
			pod.Spec.NodeName, pod.Spec.Affinity = tc.node, tc.in
			trimmed, err := Trim(pod)
			if err != nil {
				t.Fatal(err)
			}
			if got := trimmed.(*corev1.Pod).Spec.Affinity; !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestTrimmedSliceKeepsWhatControllersRead(t *testing.T) {
	node, text := "node", "a100"
	spec := resourcev1.ResourceSliceSpec{Driver: "d", Pool: resourcev1.ResourcePool{Name: "p", Generation: 3, ResourceSliceCount: 2}, NodeName: &node,
		Devices: []resourcev1.Device{{Name: "x", Taints: []resourcev1.DeviceTaint{{Key: "k", Effect: resourcev1.DeviceTaintEffectNoExecute}}}, {Name: "y"}}}
	slice := &resourcev1.ResourceSlice{Spec: *spec.DeepCopy()}
	slice.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "c"}}
	slice.Spec.NodeSelector = &corev1.NodeSelector{}
	slice.Spec.Devices[0].Attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"model": {StringValue: &text}}
	slice.Spec.Devices[1].NodeName = &node
	trimmed, err := Trim(slice)
	if err != nil {
		t.Fatal(err)
	}
	if got := trimmed.(*resourcev1.ResourceSlice).Spec; !reflect.DeepEqual(got, spec) {
		t.Errorf("got %+v, want %+v", got, spec)
	}
}

func TestTrimmedNodeKeepsWhatControllersRead(t *testing.T) {
	kept := corev1.NodeStatus{
		Allocatable:     corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
		Phase:           corev1.NodeRunning,
		Conditions:      []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}},
		VolumesInUse:    []corev1.UniqueVolumeName{"v"},
		VolumesAttached: []corev1.AttachedVolume{{Name: "v"}},
	}
	node := &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true}, Status: kept}
	node.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}
	node.Status.Images = []corev1.ContainerImage{{Names: []string{"web:1"}}}
	node.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: "v1.36.0"}
	trimmed, err := Trim(node)
	if err != nil {
		t.Fatal(err)
	}
	if want := (&corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true}, Status: kept}); !reflect.DeepEqual(trimmed, want) {
		t.Errorf("got %+v", trimmed)
	}
}

func TestTrimReachesIntoTombstones(t *testing.T) {
	trimmed, err := Trim(toolscache.DeletedFinalStateUnknown{Key: "ns/a", Obj: usual("a")})
	if err != nil {
		t.Fatal(err)
	}
	if pod := trimmed.(toolscache.DeletedFinalStateUnknown).Obj.(*corev1.Pod); pod.Spec.Containers[0].Env != nil {
		t.Error("the pod in the tombstone is whole")
	}
}

func indexed(t testing.TB, pods ...*corev1.Pod) toolscache.Indexer {
	t.Helper()
	informer := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Core().V1().Pods().Informer()
	for range 2 { // the second asks for what is there
		if err := Ensure(informer, ByController, Orphans, PodsByNode, ByLabel); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range pods {
		if err := informer.GetIndexer().Add(p); err != nil {
			t.Fatal(err)
		}
	}
	return informer.GetIndexer()
}

func names(pods []*corev1.Pod) map[string]bool {
	set := map[string]bool{}
	for _, p := range pods {
		set[p.Name] = true
	}
	return set
}

func TestOwnedFindsChildrenAndOrphans(t *testing.T) {
	child, orphan, others, elsewhere, stranger := usual("child"), usual("orphan"), usual("others"), usual("elsewhere"), usual("stranger")
	child.OwnerReferences = []metav1.OwnerReference{{UID: "me", Controller: new(true)}}
	others.OwnerReferences = []metav1.OwnerReference{{UID: "you", Controller: new(true)}}
	elsewhere.Namespace, stranger.Namespace = "other", "other"
	stranger.OwnerReferences = child.OwnerReferences // anybody may write this there
	got, err := Owned[corev1.Pod](indexed(t, child, orphan, others, elsewhere, stranger), "me", "ns")
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]bool{"child": true, "orphan": true}; !reflect.DeepEqual(names(got), want) {
		t.Errorf("got %v, want %v", names(got), want)
	}
}

func TestSelectedMatchesAllLabels(t *testing.T) {
	a, b, elsewhere := usual("a"), usual("b"), usual("c")
	elsewhere.Namespace = "other"
	store := indexed(t, a, b, elsewhere)
	for name, tc := range map[string]struct {
		selector map[string]string
		want     map[string]bool
	}{
		"one label":                        {map[string]string{"app": "web"}, map[string]bool{"a": true, "b": true}},
		"all labels must match":            {map[string]string{"app": "web", "pod": "b"}, map[string]bool{"b": true}},
		"one label that nobody carries":    {map[string]string{"app": "web", "pod": "z"}, map[string]bool{}},
		"an empty selector selects nobody": {nil, map[string]bool{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Selected[corev1.Pod](store, "ns", tc.selector)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(names(got), tc.want) {
				t.Errorf("got %v, want %v", names(got), tc.want)
			}
		})
	}
}

func BenchmarkSelectedByNamespaceSize(b *testing.B) {
	for _, size := range []int{1_000, 10_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			store := indexed(b)
			for i := range size {
				pod := usual(fmt.Sprint("pod-", i))
				pod.Labels = map[string]string{"app": fmt.Sprint("app-", i/10)}
				if err := store.Add(pod); err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			for b.Loop() {
				if got, err := Selected[corev1.Pod](store, "ns", map[string]string{"app": "app-7"}); err != nil || len(got) != 10 {
					b.Fatal(len(got), err)
				}
			}
		})
	}
}

func TestTrimmedPodKeepsWhetherDebugContainersRun(t *testing.T) {
	pod := usual("a")
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pod.Status.EphemeralContainerStatuses = []corev1.ContainerStatus{{Name: "debug", State: running, Image: "debug:1", ContainerID: "id"}}
	if _, err := Trim(pod); err != nil {
		t.Fatal(err)
	}
	want := []corev1.ContainerStatus{{Name: "debug", State: running}}
	if got := pod.Status.EphemeralContainerStatuses; !reflect.DeepEqual(got, want) {
		t.Errorf("kept %+v, want %+v", got, want)
	}
}

func TestPodsByClaim(t *testing.T) {
	pod := usual("a")
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}})
	got, err := PodsByClaim.of(pod)
	if want := []string{"ns/data", "ns/a-scratch"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("a pod is found by %q, %v, want %q", got, err, want)
	}
}
