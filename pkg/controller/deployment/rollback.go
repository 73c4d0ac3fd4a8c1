package deployment

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	eventRolledBack        = "DeploymentRollback"
	eventRevisionNotFound  = "DeploymentRollbackRevisionNotFound"
	eventTemplateUnchanged = "DeploymentRollbackTemplateUnchanged"
)

// rollbackWanted reads the annotation that asks for a former revision, 0 for the
// last one. A value that is not a number asks for nothing.
func rollbackWanted(d *appsv1.Deployment) (int64, bool) {
	revision, err := strconv.ParseInt(d.Annotations[appsv1.DeprecatedRollbackTo], 10, 64)
	return revision, err == nil
}

// rolledBack returns the Deployment with the template and annotations of the
// wanted revision and without the wish, and the event about it. When there
// is nothing to go back to, only the wish is gone.
func rolledBack(d *appsv1.Deployment, sets []*appsv1.ReplicaSet, revision int64) (*appsv1.Deployment, act.Event) {
	after := d.DeepCopy()
	event := func(kind, reason, message string) act.Event {
		return act.Event{On: d, Type: kind, Reason: reason, Message: message}
	}
	delete(after.Annotations, appsv1.DeprecatedRollbackTo)
	if revision == 0 {
		if _, revision = topRevisions(sets); revision == 0 {
			return after, event(corev1.EventTypeWarning, eventRevisionNotFound, "Unable to find last revision.")
		}
	}
	i := slices.IndexFunc(sets, func(set *appsv1.ReplicaSet) bool {
		n, err := revisionOf(set)
		return err == nil && n == revision
	})
	if i < 0 {
		return after, event(corev1.EventTypeWarning, eventRevisionNotFound, "Unable to find the revision to rollback to.")
	}
	set := sets[i]
	if sameTemplate(&d.Spec.Template, &set.Spec.Template) {
		return after, event(corev1.EventTypeWarning, eventTemplateUnchanged,
			fmt.Sprintf("The rollback revision contains the same template as current deployment %q", d.Name))
	}
	after.Spec.Template = *set.Spec.Template.DeepCopy()
	after.Spec.Template.Labels = withoutHash(after.Spec.Template.Labels)
	after.Annotations = map[string]string{}
	for key, value := range d.Annotations {
		if slices.Contains(own, key) && key != appsv1.DeprecatedRollbackTo {
			after.Annotations[key] = value
		}
	}
	maps.Copy(after.Annotations, foreign(set.Annotations))
	return after, event(corev1.EventTypeNormal, eventRolledBack,
		fmt.Sprintf("Rolled back deployment %q to revision %d", d.Name, revision))
}

// foreign are the annotations that a Deployment and its ReplicaSets share.
func foreign(annotations map[string]string) map[string]string {
	shared := maps.Clone(annotations)
	maps.DeleteFunc(shared, func(key, _ string) bool { return slices.Contains(own, key) })
	return shared
}
