package deployment

import (
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

// newSetFor returns the ReplicaSet of the Deployment's present template, with
// the size that it may begin with beside the old ones.
func newSetFor(d *appsv1.Deployment, old []*appsv1.ReplicaSet) *appsv1.ReplicaSet {
	hash := pods.TemplateHash(&d.Spec.Template, d.Status.CollisionCount)
	template := *d.Spec.Template.DeepCopy()
	template.Labels = withHash(template.Labels, hash)
	selector := d.Spec.Selector.DeepCopy()
	selector.MatchLabels = withHash(selector.MatchLabels, hash)
	zero := int32(0)
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name:            setName(d.Name, hash),
			Namespace:       d.Namespace,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, kind)},
			Labels:          template.Labels,
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas:        &zero,
			MinReadySeconds: d.Spec.MinReadySeconds,
			Selector:        selector,
			Template:        template,
		},
	}
	first := newSize(d, set, old)
	set.Spec.Replicas = &first
	set.Annotations = copied(d, set)
	maps.Copy(set.Annotations, scaleNotes(d))
	set.Annotations[revisionAnnotation] = strconv.FormatInt(highestRevision(old)+1, 10)
	return set
}
