package integration

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/revisions"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// template is one with all that could be written in several ways.
func template(app string) corev1.PodTemplateSpec {
	grace, never := int64(1<<40), corev1.PreemptNever
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}, Annotations: map[string]string{"note": "<a> & \"b\" \u2028 ü"}},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace, PreemptionPolicy: &never, NodeSelector: map[string]string{"none": "such"},
			Containers: []corev1.Container{{Name: "c", Image: "example.com/web:1", Command: []string{"sh", "-c", "exit 0 > /dev/null"}}},
		},
	}
}

// only waits for the one revision of a label, and reads its data as it is stored.
func only(t *testing.T, client kubernetes.Interface, app string) *appsv1.ControllerRevision {
	t.Helper()
	var found *appsv1.ControllerRevision
	harness.Eventually(t, patient, func(ctx context.Context) error {
		list, err := client.AppsV1().ControllerRevisions("default").List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
		if err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("%d revisions", len(list.Items))
		}
		found = &list.Items[0]
		return nil
	})
	return found
}

// TestRevisionsAreThoseOfTheOriginal has the original make revisions, and wants
// the same bytes, hashes and names from ours: a change of binary must not roll
// anything out.
func TestRevisionsAreThoseOfTheOriginal(t *testing.T) {
	t.Parallel()
	tools, err := harness.FindTools()
	if err != nil {
		t.Fatal(err)
	}
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	config := rest.CopyConfig(cp.Admin)
	config.ContentType = runtime.ContentTypeProtobuf // JSON would be written anew on the way
	client := kubernetes.NewForConfigOrDie(config)
	cp.StartManager(t, harness.ManagerOptions{Binary: tools.ReferenceManager, Args: []string{"--controllers=daemonset-controller,statefulset-controller"}})

	ds, err := client.AppsV1().DaemonSets("default").Create(t.Context(), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "ds"},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "ds"}}, Template: template("ds")}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	zero := int32(0)
	set, err := client.AppsV1().StatefulSets("default").Create(t.Context(), &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "set"},
		Spec: appsv1.StatefulSetSpec{Replicas: &zero, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "set"}}, Template: template("set")}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	for _, tc := range []struct {
		app, label string
		template   *corev1.PodTemplateSpec
		hash       func(data []byte) string
	}{
		{"ds", appsv1.DefaultDaemonSetUniqueLabelKey, &ds.Spec.Template, func([]byte) string { return pods.TemplateHash(&ds.Spec.Template, nil) }},
		{"set", revisions.HashLabel, &set.Spec.Template, func(data []byte) string { return revisions.Hash(data, &zero) }},
	} {
		t.Run(tc.app, func(t *testing.T) {
			made := only(t, client, tc.app)
			data, err := revisions.DataOf(tc.template)
			if err != nil {
				t.Fatal(err)
			}
			if string(data) != string(made.Data.Raw) {
				t.Errorf("the data is\n%s\nthe original's\n%s", data, made.Data.Raw)
			}
			hash := tc.hash(data)
			if made.Labels[tc.label] != hash || made.Name != revisions.Name(tc.app, hash) {
				t.Errorf("the hash is %s; the original's revision is %s with the labels %v", hash, made.Name, made.Labels)
			}
		})
	}
}
