package daemonset

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func check[T any](t *testing.T, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(sums{}, bounds{})); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
}

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

type setOption func(*appsv1.DaemonSet)

// daemon is a DaemonSet named web as the API server would default it.
func daemon(options ...setOption) *appsv1.DaemonSet {
	ds := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns", UID: "d", Generation: 1, ResourceVersion: "1",
			Annotations: map[string]string{appsv1.DeprecatedTemplateGeneration: "1"}},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "v1"}}},
			},
			RevisionHistoryLimit: ptr.To[int32](10),
		},
	}
	posts("0", "1")(ds)
	for _, option := range options {
		option(ds)
	}
	return ds
}

// posts sets maxSurge and maxUnavailable, each a number or a percentage.
func posts(surge, unavailable string) setOption {
	return func(ds *appsv1.DaemonSet) {
		s, u := intstr.Parse(surge), intstr.Parse(unavailable)
		ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxSurge: &s, MaxUnavailable: &u}}
	}
}

func image(name string) setOption {
	return func(ds *appsv1.DaemonSet) { ds.Spec.Template.Spec.Containers[0].Image = name }
}

func onDelete(ds *appsv1.DaemonSet) {
	ds.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
}

// minReady has pods count as available after so many seconds.
func minReady(seconds int32) setOption {
	return func(ds *appsv1.DaemonSet) { ds.Spec.MinReadySeconds = seconds }
}

type nodeOption func(*corev1.Node)

func node(name string, options ...nodeOption) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name), Labels: map[string]string{"disk": "fast"}}}
	for _, option := range options {
		option(n)
	}
	return n
}

func tainted(key string, effect corev1.TaintEffect) nodeOption {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect}) }
}

type podOption func(*corev1.Pod)

// pod is a pod of web on node a, of the present revision, ready for an hour.
func pod(name string, options ...podOption) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: "1", CreationTimestamp: ago(time.Hour),
			Labels:          map[string]string{"app": "web", hashLabel: "new"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: "web", UID: "d"}, kind)}},
		Spec:   corev1.PodSpec{NodeName: "a"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
	readyFor(time.Hour)(p)
	for _, option := range options {
		option(p)
	}
	return p
}

func readyFor(d time.Duration) podOption {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(d)}}
	}
}

func unready(p *corev1.Pod) { p.Status.Conditions = nil }
func leaving(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(ago(0)) }
func old(p *corev1.Pod)     { p.Labels[hashLabel] = "old" }
func stray(p *corev1.Pod)   { p.Labels["app"] = "other" }
func orphan(p *corev1.Pod)  { p.OwnerReferences = nil }

func phase(is corev1.PodPhase) podOption { return func(p *corev1.Pod) { p.Status.Phase = is } }
func aged(d time.Duration) podOption     { return func(p *corev1.Pod) { p.CreationTimestamp = ago(d) } }
func on(node string) podOption           { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

// madeFor leaves the pod without a node, but meant for one.
func madeFor(node string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.NodeName, p.Spec.Affinity = "", pinnedTo(nil, node)
		unready(p)
		p.Status.Phase = corev1.PodPending
	}
}
