package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
)

func init() {
	register(&scenario{
		name: "statefulsets", order: 14, quick: 6 * time.Minute, full: 60 * time.Minute,
		about: "StatefulSets are created, get a new image all at once, and are scaled to zero. Every other one is parallel, and half of each kind has claims of a template.",
		sizes: []size{
			{"nodes", 100, 20, "nodes of statefulsets"},
			{"sets", 20, 4, "StatefulSets"},
			{"replicas", 50, 8, "pods of each StatefulSet"},
		},
		stages: stages,
		run:    runStatefulSets,
	})
}

//go:embed stages.yaml
var stages string

func runStatefulSets(ctx context.Context, w *world) error {
	if err := w.begin(ctx, w.sizes["nodes"]); err != nil {
		return err
	}
	replicas := w.sizes["replicas"]
	client := w.load().AppsV1().StatefulSets(namespace)
	patch := func(ctx context.Context, name, text string) error {
		_, err := client.Patch(ctx, name, types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{})
		return err
	}
	for _, step := range []struct {
		name string
		do   func(ctx context.Context, i int, name string) error
		want func(*appsv1.StatefulSet) bool
	}{
		{"create", func(ctx context.Context, i int, name string) error {
			_, err := client.Create(ctx, statefulSet(name, fmt.Sprintf("node-%d", i%w.sizes["nodes"]), replicas, i%2 == 1, i%4 > 1), metav1.CreateOptions{})
			return err
		}, func(s *appsv1.StatefulSet) bool { return setRolledOut(s, firstImage, replicas) }},
		{"update", func(ctx context.Context, _ int, name string) error {
			return patch(ctx, name, fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":%q}]}}}}`, secondImage))
		}, func(s *appsv1.StatefulSet) bool { return setRolledOut(s, secondImage, replicas) }},
		{"scale to 0", func(ctx context.Context, _ int, name string) error {
			return patch(ctx, name, `{"spec":{"replicas":0}}`)
		}, func(s *appsv1.StatefulSet) bool { return setRolledOut(s, secondImage, 0) }},
	} {
		if err := w.statefulSetStep(ctx, step.name, step.do, step.want); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) statefulSetStep(ctx context.Context, name string, do func(context.Context, int, string) error, want func(*appsv1.StatefulSet) bool) error {
	count := w.sizes["sets"]
	e, err := w.expect(ctx, "StatefulSets are as asked", count, w.watches.Apps().V1().StatefulSets().Informer(), func(object any) string {
		if s, ok := object.(*appsv1.StatefulSet); ok && s.Namespace == namespace && want(s) {
			return s.Name
		}
		return ""
	})
	if err != nil {
		return err
	}
	return w.step(ctx, report.Step{Name: name, Objects: count * w.sizes["replicas"], Unit: "pod"}, func(ctx context.Context) ([]report.Latency, error) {
		loaded := parallel(ctx, workers, count, func(i int) error {
			name := fmt.Sprintf("set-%d", i)
			e.ask(name)
			return do(ctx, i, name)
		})
		took, err := e.wait(ctx)
		return []report.Latency{report.Latencies("StatefulSet", took)}, errors.Join(loaded, err)
	})
}

func statefulSet(name, node string, replicas int, sideBySide, claims bool) *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: appsv1.StatefulSetSpec{
			Replicas:    new(int32(replicas)),
			ServiceName: name,
			Selector:    &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template:    template(name, firstImage),
		},
	}
	// Nobody binds claims, and a scheduler would wait for that. Nothing in simulated
	// pods needs time to end.
	set.Spec.Template.Spec.NodeName = node
	set.Spec.Template.Spec.TerminationGracePeriodSeconds = new(int64(0))
	if sideBySide {
		set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	}
	if claims {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}}
	}
	return set
}

// setRolledOut says whether the status reports what the spec asks for.
func setRolledOut(set *appsv1.StatefulSet, image string, replicas int) bool {
	s, n := set.Status, int32(replicas)
	return set.Spec.Template.Spec.Containers[0].Image == image && *set.Spec.Replicas == n &&
		s.ObservedGeneration >= set.Generation && s.Replicas == n && s.UpdatedReplicas == n && s.AvailableReplicas == n && s.CurrentRevision == s.UpdateRevision
}
