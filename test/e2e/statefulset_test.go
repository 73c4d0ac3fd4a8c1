package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// TestStatefulSet is the story of a team that runs a database: it comes up in
// order, is updated behind a partition, gets a template whose pods never become
// ready, and recovers with the good one, because the set asks for that. Then it
// is scaled away.
func TestStatefulSet(t *testing.T) {
	c := newCluster(t)
	c.manager(t, harness.BuiltBinary(t), "--leader-elect=false")
	c.nodes(t, 3)
	s := &story{cluster: c, t: t}
	s.create(database())
	s.settled(3, "db:1")
	if second, first := s.pod("db-1"), s.pod("db-0"); second.CreationTimestamp.Before(&first.CreationTimestamp) {
		t.Error("the second pod is older than the first")
	}

	s.patch(`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}},"template":{"spec":{"containers":[{"name":"db","image":"db:2"}]}}}}`)
	s.eventually(time.Minute, func(set *appsv1.StatefulSet) bool {
		return set.Status.UpdatedReplicas == 1 && set.Status.AvailableReplicas == 3
	})
	if got := s.pod("db-0").Spec.Containers[0].Image; got != "db:1" {
		t.Errorf("below the partition runs %s", got)
	}
	s.patch(`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":0}}}}`)
	s.settled(3, "db:2")

	kept := []types.UID{s.pod("db-0").UID, s.pod("db-1").UID}
	s.patch(`{"metadata":{"annotations":{"kube-kcm.github.io/replace-never-ready":"true"}},"spec":{"template":{"spec":{"nodeSelector":{"no":"where"}}}}}`)
	s.eventually(time.Minute, func(set *appsv1.StatefulSet) bool {
		return set.Status.UpdatedReplicas == 1 && set.Status.ReadyReplicas == 2
	})
	s.patch(`{"spec":{"template":{"spec":{"nodeSelector":null}}}}`)
	began := time.Now()
	s.settled(3, "db:2")
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the rollout recovered after %s", took)
	}
	if now := []types.UID{s.pod("db-0").UID, s.pod("db-1").UID}; now[0] != kept[0] || now[1] != kept[1] {
		t.Error("a pod that was well was deleted")
	}

	s.patch(`{"spec":{"replicas":0}}`)
	s.eventually(time.Minute, func(set *appsv1.StatefulSet) bool {
		return set.Status.ObservedGeneration == set.Generation && set.Status.Replicas == 0
	})
}

// story is one StatefulSet on a cluster.
type story struct {
	*cluster
	t *testing.T
}

// database is a StatefulSet of three pods.
func database() *appsv1.StatefulSet {
	labels := map[string]string{"app": "db"}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "db"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(3)), ServiceName: "db", Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(0)), Containers: []corev1.Container{{Name: "db", Image: "db:1"}}}},
		},
	}
}

// furnishSets makes a StatefulSet with claims that go with it, in the middle of an
// update behind a partition.
func (c *cluster) furnishSets(t *testing.T) {
	s := &story{cluster: c, t: t}
	db := database()
	db.Spec.Template.Spec.NodeName = "node-0" // nobody binds the claims, for which a scheduler would wait
	db.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}}
	db.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType, WhenScaled: appsv1.RetainPersistentVolumeClaimRetentionPolicyType}
	s.create(db)
	s.settled(3, "db:1")
	s.patch(`{"spec":{"updateStrategy":{"rollingUpdate":{"partition":2}},"template":{"spec":{"containers":[{"name":"db","image":"db:2"}]}}}}`)
	s.eventually(time.Minute, func(set *appsv1.StatefulSet) bool {
		return set.Status.UpdatedReplicas == 1 && set.Status.AvailableReplicas == 3
	})
}

func (s *story) create(set *appsv1.StatefulSet) {
	s.t.Helper()
	if _, err := s.client.AppsV1().StatefulSets("default").Create(s.t.Context(), set, metav1.CreateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) patch(text string) {
	s.t.Helper()
	if _, err := s.client.AppsV1().StatefulSets("default").Patch(s.t.Context(), "db", types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *story) pod(name string) *corev1.Pod {
	s.t.Helper()
	pod, err := s.client.CoreV1().Pods("default").Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return pod
}

func (s *story) eventually(within time.Duration, reached func(*appsv1.StatefulSet) bool) {
	s.t.Helper()
	harness.Eventually(s.t, within, func(ctx context.Context) error {
		set, err := s.client.AppsV1().StatefulSets("default").Get(ctx, "db", metav1.GetOptions{})
		if err == nil && !reached(set) {
			err = fmt.Errorf("the status is %+v", set.Status)
		}
		return err
	})
}

// settled waits until all pods are at the revision of this image and available.
func (s *story) settled(replicas int32, image string) {
	s.t.Helper()
	s.eventually(2*time.Minute, func(set *appsv1.StatefulSet) bool {
		st := set.Status
		return set.Spec.Template.Spec.Containers[0].Image == image && st.ObservedGeneration == set.Generation &&
			st.UpdatedReplicas == replicas && st.AvailableReplicas == replicas && st.CurrentRevision == st.UpdateRevision
	})
}
