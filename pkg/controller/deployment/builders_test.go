package deployment

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func check[T any](t *testing.T, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
}

type deploymentOption func(*appsv1.Deployment)

// deploy is a Deployment named web as the API server would default it.
func deploy(replicas int32, options ...deploymentOption) *appsv1.Deployment {
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns", UID: "d", Generation: 1, ResourceVersion: "1",
			Annotations: map[string]string{revisionAnnotation: "1"}},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: template("v1"),
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromString("25%")), MaxUnavailable: ptr.To(intstr.FromString("25%"))}},
			RevisionHistoryLimit: ptr.To[int32](10), ProgressDeadlineSeconds: ptr.To[int32](600),
		},
	}
	for _, option := range options {
		option(d)
	}
	return d
}

func template(image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
	}
}

func image(name string) deploymentOption {
	return func(d *appsv1.Deployment) { d.Spec.Template = template(name) }
}

// posts sets maxSurge and maxUnavailable, each a number or a percentage.
func posts(surge, unavailable string) deploymentOption {
	return func(d *appsv1.Deployment) {
		s, u := intstr.Parse(surge), intstr.Parse(unavailable)
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: &s, MaxUnavailable: &u}
	}
}

func recreateStrategy(d *appsv1.Deployment) {
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
}

func paused(d *appsv1.Deployment) { d.Spec.Paused = true }

func annotated(pairs ...string) deploymentOption {
	return func(d *appsv1.Deployment) {
		for i := 0; i < len(pairs); i += 2 {
			d.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

func withStatus(status appsv1.DeploymentStatus) deploymentOption {
	return func(d *appsv1.Deployment) { d.Status = status }
}

type setOption func(*appsv1.ReplicaSet)

// set is a ReplicaSet of web, sized for a Deployment of three; rank is its age,
// its revision and its UID.
func set(rank int, image string, replicas, available int32, options ...setOption) *appsv1.ReplicaSet {
	tmpl := template(image)
	name := fmt.Sprintf("web-%d", rank)
	tmpl.Labels = withHash(tmpl.Labels, fmt.Sprint(rank))
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name), Generation: 1, ResourceVersion: "1",
			CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(rank-1000) * time.Minute)),
			Labels:            maps.Clone(tmpl.Labels),
			OwnerReferences:   []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: "web", UID: "d"}, kind)},
			Annotations: map[string]string{revisionAnnotation: fmt.Sprint(rank),
				desiredAnnotation: "3", mostAnnotation: "4"}},
		Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Template: tmpl,
			Selector: &metav1.LabelSelector{MatchLabels: maps.Clone(tmpl.Labels)}},
		Status: appsv1.ReplicaSetStatus{Replicas: replicas, ReadyReplicas: available, AvailableReplicas: available,
			ObservedGeneration: 1, TerminatingReplicas: ptr.To[int32](0)},
	}
	for _, option := range options {
		option(rs)
	}
	return rs
}

// sizedFor sets the scale notes.
func sizedFor(desired, most string) setOption {
	return func(rs *appsv1.ReplicaSet) {
		rs.Annotations[desiredAnnotation], rs.Annotations[mostAnnotation] = desired, most
	}
}

func noted(pairs ...string) setOption {
	return func(rs *appsv1.ReplicaSet) {
		for i := 0; i < len(pairs); i += 2 {
			rs.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

func sets(list ...*appsv1.ReplicaSet) []*appsv1.ReplicaSet { return list }

// carryOut takes the steps of a plan, and of those that follow when all succeed, the
// status last. It returns the last plan and its status; do returns what a step leaves.
func carryOut(p act.Plan, do func(act.Step) client.Object) (act.Plan, act.Step) {
	var results act.Results
	for {
		for _, stage := range p.Stages {
			for _, step := range stage.Steps {
				results = append(results, act.Result{Step: step, Became: act.Done, Object: do(step)})
			}
		}
		if p.Then == nil {
			break
		}
		p = p.Then(results)
	}
	if p.Status == nil {
		return p, nil
	}
	return p, p.Status(results)
}

// reportedBy is the Deployment as a plan for it leaves its status.
func reportedBy(d *appsv1.Deployment, report act.Step) *appsv1.Deployment {
	after := d.DeepCopy()
	if report != nil {
		report.(act.Status).Set(after)
	}
	return after
}

// patched is the set as a patch of it leaves it.
func patched(set *appsv1.ReplicaSet, patch act.Patch) *appsv1.ReplicaSet {
	changed := set.DeepCopy()
	if err := json.Unmarshal(patch.Data, changed); err != nil {
		panic(err)
	}
	return changed
}

// editOf prints a patch of a ReplicaSet.
func editOf(patch act.Patch) string {
	before, after := patch.Of.(*appsv1.ReplicaSet), appsv1.ReplicaSet{}
	if err := json.Unmarshal(patch.Data, &after); err != nil {
		panic(err)
	}
	var parts []string
	if after.Spec.Replicas != nil {
		parts = append(parts, fmt.Sprintf("%d -> %d", size(before), size(&after)))
	}
	if len(after.Annotations) > 0 {
		parts = append(parts, "annotations")
	}
	if strings.Contains(string(patch.Data), "minReadySeconds") {
		parts = append(parts, "minReadySeconds")
	}
	return before.Name + " " + strings.Join(parts, ", ")
}

// sizes prints decisions for comparison.
func sizes(steps []resize) []string {
	var out []string
	for _, step := range steps {
		out = append(out, fmt.Sprintf("%s %d>%d", step.set.Name, size(step.set), step.to))
	}
	return out
}
