package statefulset

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func same[T any](t *testing.T, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
	}
}

type setOption func(*appsv1.StatefulSet)

// newSet is a StatefulSet named web as the API server would default it, at
// revision r1 and on its way to r2.
func newSet(replicas int32, options ...setOption) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "StatefulSet"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns", UID: "set", Generation: 1, ResourceVersion: "1", Annotations: map[string]string{}},
		Spec: appsv1.StatefulSetSpec{
			Replicas:            &replicas,
			ServiceName:         "svc",
			Selector:            &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template:            template("v2"),
			PodManagementPolicy: appsv1.OrderedReadyPodManagement,
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](0)}},
			RevisionHistoryLimit: ptr.To[int32](10),
		},
	}
	for _, option := range options {
		option(set)
	}
	return set
}

func parallel(set *appsv1.StatefulSet) {
	set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
}
func onDelete(set *appsv1.StatefulSet) {
	set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
}

// unbounded has a strategy that says nothing of a partition.
func unbounded(set *appsv1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate = nil }
func deleted(set *appsv1.StatefulSet)   { set.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }
func replacing(set *appsv1.StatefulSet) {
	set.Annotations[ReplaceNeverReady] = "true"
}
func withData(set *appsv1.StatefulSet) {
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
}

// withMore has the pods claim a second volume.
func withMore(set *appsv1.StatefulSet) {
	set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "more"}})
}

func partitioned(n int32) setOption {
	return func(set *appsv1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = &n }
}
func starting(n int32) setOption {
	return func(set *appsv1.StatefulSet) { set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: n} }
}
func minReady(n int32) setOption {
	return func(set *appsv1.StatefulSet) { set.Spec.MinReadySeconds = n }
}

const (
	del   = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	keeps = appsv1.RetainPersistentVolumeClaimRetentionPolicyType
)

func retaining(deleted, scaled appsv1.PersistentVolumeClaimRetentionPolicyType) setOption {
	return func(set *appsv1.StatefulSet) {
		set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: deleted, WhenScaled: scaled}
	}
}

type podOption func(*corev1.Pod)

// newTestPod is a pod of the set at revision r2 that has been ready for an hour.
func newTestPod(ordinal int, options ...podOption) *corev1.Pod {
	name := fmt.Sprintf("web-%d", ordinal)
	started := metav1.NewTime(noon.Add(-time.Hour))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID("u" + name), ResourceVersion: "1", CreationTimestamp: started,
			Labels: map[string]string{"app": "web", "controller-revision-hash": "r2",
				"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": fmt.Sprint(ordinal)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(newSet(1), kind)}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &started,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: started}}},
	}
	for _, option := range options {
		option(pod)
	}
	return pod
}

func at(revision string) podOption {
	return func(pod *corev1.Pod) { pod.Labels["controller-revision-hash"] = revision }
}
func phase(phase corev1.PodPhase) podOption {
	return func(pod *corev1.Pod) { pod.Status.Phase = phase }
}
func readySince(ago time.Duration) podOption {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(-ago))
	}
}

// lost is a pod that was ready and is not any more.
func lost(pod *corev1.Pod) {
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
	pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(noon.Add(-time.Minute))
}

// broken is a pod that has run from the start without being ready.
func broken(pod *corev1.Pod) { pod.Status.Conditions[0].Status = corev1.ConditionFalse }

func pending(pod *corev1.Pod) {
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
}

// restarted has the container of a pod run before, as after a reboot of its node.
func restarted(pod *corev1.Pod) {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", RestartCount: 1}}
}

func ending(pod *corev1.Pod) { pod.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }

func mounts(volume, claim string) podOption {
	return func(pod *corev1.Pod) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
	}
}

func newTestClaim(ordinal int, owners ...metav1.OwnerReference) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("data-web-%d", ordinal), Namespace: "ns",
		UID: types.UID(fmt.Sprintf("c%d", ordinal)), ResourceVersion: "1", OwnerReferences: owners}}
}

// moreClaim is the second claim of a pod of a set made withMore.
func moreClaim(ordinal int) *corev1.PersistentVolumeClaim {
	claim := newTestClaim(ordinal)
	claim.Name = fmt.Sprintf("more-web-%d", ordinal)
	return claim
}

// look is what is observed of the set with these pods and claims.
func look(set *appsv1.StatefulSet, pods []*corev1.Pod, claims ...*corev1.PersistentVolumeClaim) observed {
	old := template("v1")
	o := observed{set: set, pods: pods, claims: map[string]*corev1.PersistentVolumeClaim{},
		current: revision{"r1", &old}, update: revision{"r2", &set.Spec.Template}}
	for _, c := range claims {
		o.claims[c.Name] = c
	}
	return o
}

// told prints a plan: a stage a line, a step an item.
func told(p change) []string {
	var lines []string
	for _, stage := range p.stages {
		line := ""
		for _, s := range stage {
			line += s.print() + "; "
		}
		lines = append(lines, line[:len(line)-2])
	}
	return lines
}

func (s step) print() string {
	text := [...]string{"keep", "create", "delete", "repair"}[s.verb] + " " + s.pod.Name
	if s.verb == create {
		text += " at " + revisionOf(s.pod)
	}
	for _, c := range s.claims {
		text += " claim " + c.Name
	}
	for _, c := range s.blocked {
		text += " blocked by " + c.Name
	}
	if len(s.labels) > 0 {
		text += " labels"
	}
	for _, v := range s.volumes {
		text += " volume " + v.Name
	}
	for _, h := range s.owners {
		text += " owner of " + h.claim.Name
		for _, ref := range h.refs {
			text += " " + string(ref.UID)
		}
	}
	return text
}
