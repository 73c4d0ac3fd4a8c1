package replicas

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// ago is a moment before noon.
func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

// set is a ReplicaSet that wants n pods with the label app=web.
func set(n int) *Set {
	rs := replicaSet(n)
	return &Set{Object: rs, Replicas: n, Template: &rs.Spec.Template,
		Selector: labels.SelectorFromSet(rs.Spec.Selector.MatchLabels), Status: rs.Status}
}

func replicaSet(n int) *appsv1.ReplicaSet {
	web := map[string]string{"app": "web"}
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "set", Generation: 3},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: ptr.To(int32(n)),
			Selector: &metav1.LabelSelector{MatchLabels: web},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: web}},
		},
	}
}

type option func(*corev1.Pod)

// pod is a running pod on node n, ready for an hour.
func pod(name string, options ...option) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), CreationTimestamp: ago(time.Hour),
			Labels: map[string]string{"app": "web"}},
		Spec:   corev1.PodSpec{NodeName: "n"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	ready(ago(time.Hour))(p)
	for _, o := range options {
		o(p)
	}
	return p
}

func many(n int) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range n {
		all = append(all, pod(string(rune('a'+i/26/26%26))+string(rune('a'+i/26%26))+string(rune('a'+i%26))))
	}
	return all
}

func ready(since metav1.Time) option {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: since}}
	}
}

func unready(p *corev1.Pod) { p.Status.Conditions = nil }

func created(at metav1.Time) option {
	return func(p *corev1.Pod) { p.CreationTimestamp = at }
}

func on(node string) option { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func phase(phase corev1.PodPhase) option {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func cost(text string) option {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.PodDeletionCost: text} }
}

func restarted(times int32) option {
	return func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: times}} }
}

func sidecarRestarted(times int32) option {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = []corev1.Container{{Name: "s", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "s", RestartCount: times}}
	}
}

func labeled(key, value string) option {
	return func(p *corev1.Pod) { p.Labels[key] = value }
}

func names(all []*corev1.Pod) []string {
	var names []string
	for _, p := range all {
		names = append(names, p.Name)
	}
	return names
}
