package pods_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func readySince(at time.Time) *corev1.Pod {
	return &corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)},
	}}}
}

func phase(p corev1.PodPhase, deleted bool) *corev1.Pod {
	pod := &corev1.Pod{Status: corev1.PodStatus{Phase: p}}
	if deleted {
		pod.DeletionTimestamp = ptr.To(metav1.NewTime(noon))
	}
	return pod
}

func TestAvailability(t *testing.T) {
	for name, tc := range map[string]struct {
		pod       *corev1.Pod
		min       int32
		available bool
		wait      time.Duration
	}{
		"a pod without conditions is not available":                            {&corev1.Pod{}, 0, false, 0},
		"without a minimum, ready is available":                                {readySince(noon), 0, true, 0},
		"a pod ready for too short a time has the rest to wait":                {readySince(noon.Add(-4 * time.Second)), 10, false, 6 * time.Second},
		"a pod becomes available at the very second":                           {readySince(noon.Add(-10 * time.Second)), 10, true, 0},
		"a ready pod that does not say since when never becomes so":            {readySince(time.Time{}), 10, false, 0},
		"a ready pod that does not say since when is, without a minimum":       {readySince(time.Time{}), 0, true, 0},
		"a pod of a node whose clock is ahead waits for more than the minimum": {readySince(noon.Add(time.Second)), 10, false, 11 * time.Second},
		"a pod of a node whose clock is ahead is, without a minimum":           {readySince(noon.Add(time.Second)), 0, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pods.Available(tc.pod, tc.min, noon); got != tc.available {
				t.Errorf("available: got %v", got)
			}
			if got := pods.UntilAvailable(tc.pod, tc.min, noon); got != tc.wait {
				t.Errorf("wait: got %v, want %v", got, tc.wait)
			}
		})
	}
}

func TestTheNextAvailablePodIsWaitedFor(t *testing.T) {
	all := []*corev1.Pod{{}, readySince(noon.Add(-4 * time.Second)), readySince(noon.Add(-7 * time.Second)), readySince(noon.Add(-time.Minute))}
	if got := pods.NextAvailable(all, 10, noon); got != 3*time.Second {
		t.Errorf("waits %v, want 3s", got)
	}
	if got := pods.NextAvailable(all[:1], 10, noon); got != 0 {
		t.Errorf("waits %v although no pod is ready", got)
	}
}

func TestLife(t *testing.T) {
	type life struct{ Active, Terminating, Terminal bool }
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want life
	}{
		"a new pod is active":                            {phase("", false), life{Active: true}},
		"a running pod is active":                        {phase(corev1.PodRunning, false), life{Active: true}},
		"a failed pod has ended":                         {phase(corev1.PodFailed, false), life{Terminal: true}},
		"a succeeded pod has ended":                      {phase(corev1.PodSucceeded, false), life{Terminal: true}},
		"a deleted running pod is on its way out":        {phase(corev1.PodRunning, true), life{Terminating: true}},
		"a deleted pod that ended is not on its way out": {phase(corev1.PodFailed, true), life{Terminal: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := life{pods.Active(tc.pod), pods.Terminating(tc.pod), pods.Terminal(tc.pod)}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestWithCondition(t *testing.T) {
	at := func(minutes int) metav1.Time { return metav1.NewTime(noon.Add(time.Duration(minutes) * time.Minute)) }
	old := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at(0)}
	for name, tc := range map[string]struct {
		have    []corev1.PodCondition
		set     corev1.PodCondition
		want    []corev1.PodCondition
		changed bool
	}{
		"a new type is added": {nil, old, []corev1.PodCondition{old}, true},
		"the same again changes nothing": {[]corev1.PodCondition{old},
			corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: at(5)},
			[]corev1.PodCondition{old}, false},
		"another generation alone changes nothing": {[]corev1.PodCondition{old},
			corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, ObservedGeneration: 2, LastTransitionTime: at(5)},
			[]corev1.PodCondition{old}, false},
		"another reason keeps the transition time": {[]corev1.PodCondition{old},
			corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue, Reason: "R", LastTransitionTime: at(5)},
			[]corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, Reason: "R", LastTransitionTime: at(0)}}, true},
		"another status takes the new time": {[]corev1.PodCondition{old},
			corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: at(5)},
			[]corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: at(5)}}, true},
		"another status within the second is another": {[]corev1.PodCondition{old},
			corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: at(0)},
			[]corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: at(0)}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed := pods.WithCondition(tc.have, tc.set)
			if d := cmp.Diff(tc.want, got); d != "" || changed != tc.changed {
				t.Errorf("changed %v\n%s", changed, d)
			}
			if len(tc.have) > 0 && tc.have[0] != old {
				t.Error("the conditions that were given are changed")
			}
		})
	}
}

func TestStatusPatchNamesOnlyWhatItChanges(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u1", ResourceVersion: "7"}}
	got := pods.StatusPatch{Phase: corev1.PodFailed, SameVersion: true}.Of(pod).Data
	if want := `{"metadata":{"uid":"u1","resourceVersion":"7"},"status":{"phase":"Failed"}}`; string(got) != want {
		t.Errorf("got %s", got)
	}
}

func TestAStatusPatchTakesOffWhatTheConditionNoLongerSays(t *testing.T) {
	type says = corev1.PodCondition
	for name, tc := range map[string]struct {
		before, now says
		want        string
	}{
		"nothing":                {says{}, says{}, ""},
		"a generation":           {says{}, says{ObservedGeneration: 4}, `,"observedGeneration":4`},
		"another generation":     {says{ObservedGeneration: 3}, says{ObservedGeneration: 4}, `,"observedGeneration":4`},
		"no generation any more": {says{ObservedGeneration: 3}, says{}, `,"observedGeneration":null`},
		"no words any more":      {says{Reason: "R", Message: "m"}, says{}, `,"reason":null,"message":null`},
		"other words":            {says{Reason: "R"}, says{Reason: "S", Message: "m"}, `,"reason":"S","message":"m"`},
	} {
		tc.before.Type, tc.now.Type, tc.now.Status = "A", "A", "True"
		pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{tc.before}}}
		got := pods.StatusPatch{Conditions: []corev1.PodCondition{tc.now}}.Of(pod).Data
		want := `{"metadata":{"uid":""},"status":{"$setElementOrder/conditions":[{"type":"A"}],"conditions":[{"type":"A","status":"True","lastProbeTime":null,"lastTransitionTime":null` + tc.want + `}]}}`
		if string(got) != want {
			t.Errorf("%s: got %s", name, got)
		}
	}
}

// Without an order the API server would put a new condition first.
func TestANewConditionComesLast(t *testing.T) {
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}
	target := corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionFalse}
	for name, tc := range map[string]struct{ cached, live, want []corev1.PodCondition }{
		"it is new":            {[]corev1.PodCondition{scheduled, ready}, []corev1.PodCondition{scheduled, ready}, []corev1.PodCondition{scheduled, ready, target}},
		"it is there":          {[]corev1.PodCondition{scheduled, target, ready}, []corev1.PodCondition{scheduled, target, ready}, []corev1.PodCondition{scheduled, target, ready}},
		"there are none":       {nil, nil, []corev1.PodCondition{target}},
		"one came, unseen":     {[]corev1.PodCondition{scheduled}, []corev1.PodCondition{scheduled, ready}, []corev1.PodCondition{scheduled, target, ready}},
		"one has gone, unseen": {[]corev1.PodCondition{scheduled, ready}, []corev1.PodCondition{ready}, []corev1.PodCondition{ready, target}},
	} {
		t.Run(name, func(t *testing.T) {
			set := target
			set.Status = corev1.ConditionTrue
			patch := pods.StatusPatch{Conditions: []corev1.PodCondition{set}}.Of(&corev1.Pod{Status: corev1.PodStatus{Conditions: tc.cached}}).Data
			live, err := json.Marshal(&corev1.Pod{Status: corev1.PodStatus{Conditions: tc.live}})
			if err != nil {
				t.Fatal(err)
			}
			data, err := strategicpatch.StrategicMergePatch(live, patch, corev1.Pod{})
			if err != nil {
				t.Fatal(err)
			}
			var got corev1.Pod
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			types := func(all []corev1.PodCondition) (types []corev1.PodConditionType) {
				for _, c := range all {
					types = append(types, c.Type)
				}
				return types
			}
			if diff := cmp.Diff(types(tc.want), types(got.Status.Conditions)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFromTemplate(t *testing.T) {
	template := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Name: "ignored", Labels: map[string]string{"a": "b"}, Finalizers: []string{"x/y"}},
		Spec:       corev1.PodSpec{NodeName: "n"},
	}
	owner := &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns"}}
	pod := pods.FromTemplate(template, owner, &metav1.OwnerReference{Name: "web"})
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", GenerateName: "web-", Labels: map[string]string{"a": "b"},
			Annotations: map[string]string{}, Finalizers: []string{"x/y"}, OwnerReferences: []metav1.OwnerReference{{Name: "web"}}},
		Spec: corev1.PodSpec{NodeName: "n"},
	}
	if d := cmp.Diff(want, pod); d != "" {
		t.Error(d)
	}
	pod.Labels["a"] = "changed"
	if template.Labels["a"] != "b" {
		t.Error("the pod shares its labels with the template")
	}
}

func TestNamePrefixDropsTheDashOnlyWhereTheAPIWouldRefuseIt(t *testing.T) {
	longest := strings.Repeat("a", 253)
	if got := pods.NamePrefix(longest); got != longest+"-" {
		t.Errorf("got %q", got)
	}
	if got := pods.NamePrefix(longest + "a"); got != longest+"a" {
		t.Errorf("got %q", got)
	}
}

func TestMaxRestartsTellsSidecarsFromTheRest(t *testing.T) {
	pod := &corev1.Pod{
		Spec: corev1.PodSpec{InitContainers: []corev1.Container{
			{Name: "once"}, {Name: "along", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}},
		Status: corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "once", RestartCount: 9}, {Name: "along", RestartCount: 4}},
			ContainerStatuses:     []corev1.ContainerStatus{{RestartCount: 1}, {RestartCount: 3}},
		},
	}
	if containers, sidecars := pods.MaxRestarts(pod); containers != 3 || sidecars != 4 {
		t.Errorf("got %d and %d", containers, sidecars)
	}
}

func TestStopped(t *testing.T) {
	deleted := metav1.NewTime(time.Unix(1, 0))
	running := corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	ended := corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}
	waiting := corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}
	for name, c := range map[string]struct {
		deleted *metav1.Time
		status  corev1.PodStatus
		want    bool
	}{
		"runs":                        {nil, corev1.PodStatus{Phase: corev1.PodRunning}, false},
		"succeeded":                   {nil, corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{running}}, true},
		"failed":                      {nil, corev1.PodStatus{Phase: corev1.PodFailed}, true},
		"deleted, nothing known":      {&deleted, corev1.PodStatus{}, true},
		"deleted, one runs":           {&deleted, corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{ended, running}}, false},
		"deleted, ended and waiting":  {&deleted, corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{ended, waiting}}, true},
		"deleted, an init one runs":   {&deleted, corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{running}}, false},
		"deleted, a debug one runs":   {&deleted, corev1.PodStatus{EphemeralContainerStatuses: []corev1.ContainerStatus{running}}, false},
		"deleted, an empty state":     {&deleted, corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{}}}, false},
		"not deleted, all have ended": {nil, corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{ended}}, false},
	} {
		if got := pods.Stopped(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: c.deleted}, Status: c.status}); got != c.want {
			t.Errorf("%s: stopped is %v, want %v", name, got, c.want)
		}
	}
}
