package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

const revisionAnnotation = "deployment.kubernetes.io/revision"

// kept are the annotations that a Deployment keeps when its template goes back.
var kept = sets.New("kubectl.kubernetes.io/last-applied-configuration", revisionAnnotation,
	"deployment.kubernetes.io/revision-history", "deployment.kubernetes.io/desired-replicas",
	"deployment.kubernetes.io/max-replicas", "deprecated.deployment.rollback.to")

func wantUndo(s Step) error {
	if name, found := strings.CutPrefix(s.Rest, "deployments/"); !found || name == "" || strings.ContainsAny(name, "* ") {
		return fmt.Errorf("undo takes deployments/NAME, not %q", s.Rest)
	}
	return nil
}

// undo puts the template back that the Deployment had before this one, as
// kubectl rollout undo does.
func (r *run) undo(ctx context.Context, step Step) error {
	name := strings.TrimPrefix(step.Rest, "deployments/")
	deployments := r.suite.typed.AppsV1().Deployments(r.namespace)
	var deployment *appsv1.Deployment
	var before *appsv1.ReplicaSet
	if err := r.until(ctx, step.Within, func() (bool, string, error) {
		var err error
		if deployment, err = deployments.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return false, "", err
		}
		all, err := r.suite.typed.AppsV1().ReplicaSets(r.namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, "", err
		}
		before = previous(deployment, all.Items)
		return before != nil, "no revision before the present one", nil
	}); err != nil {
		return err
	}
	if deployment.Spec.Paused {
		return errors.New("a Deployment that is paused cannot go back")
	}
	patch, err := json.Marshal(backTo(deployment, before))
	if err != nil {
		return fmt.Errorf("encode the rollback: %w", err)
	}
	if _, err := deployments.Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}); err != nil {
		return fmt.Errorf("roll back: %w", err)
	}
	return nil
}

// previous is the ReplicaSet with the second highest revision, or nil.
func previous(deployment *appsv1.Deployment, all []appsv1.ReplicaSet) *appsv1.ReplicaSet {
	var latest, before *appsv1.ReplicaSet
	for i := range all {
		set := &all[i]
		switch {
		case !metav1.IsControlledBy(set, deployment) || revision(set) == 0:
		case latest == nil || revision(set) > revision(latest):
			latest, before = set, latest
		case before == nil || revision(set) > revision(before):
			before = set
		}
	}
	return before
}

func revision(set *appsv1.ReplicaSet) int {
	n, err := strconv.Atoi(set.Annotations[revisionAnnotation])
	if err != nil {
		return 0
	}
	return n
}

func backTo(deployment *appsv1.Deployment, set *appsv1.ReplicaSet) []map[string]any {
	template := set.Spec.Template.DeepCopy()
	delete(template.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	annotations := map[string]string{}
	for key, value := range deployment.Annotations {
		if kept.Has(key) {
			annotations[key] = value
		}
	}
	for key, value := range set.Annotations {
		if !kept.Has(key) {
			annotations[key] = value
		}
	}
	return []map[string]any{
		{"op": "replace", "path": "/spec/template", "value": template},
		{"op": "replace", "path": "/metadata/annotations", "value": annotations},
	}
}
