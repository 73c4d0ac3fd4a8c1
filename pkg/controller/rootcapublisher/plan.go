package rootcapublisher

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	// ConfigMapName is the name of the published config map.
	ConfigMapName = "kube-root-ca.crt"

	certificateKey        = "ca.crt"
	descriptionAnnotation = "kubernetes.io/description"
	description           = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)

// untilCached is how long the cache has to show a config map that somebody else created.
const untilCached = time.Second

// observed is a namespace and its published config map, nil if there is none.
type observed struct {
	namespace *corev1.Namespace
	published *corev1.ConfigMap
	rootCA    string
}

// plan makes the published config map what it must be.
func plan(o observed, _ time.Time) act.Plan {
	want := map[string]string{certificateKey: o.rootCA}
	switch {
	case o.published == nil && o.namespace.Status.Phase != corev1.NamespaceActive:
		return act.Plan{Why: "the namespace is not active"}
	case o.published == nil:
		return creation(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Name: ConfigMapName, Namespace: o.namespace.Name,
				Annotations: map[string]string{descriptionAnnotation: description},
			},
			Data: want,
		})
	case maps.Equal(o.published.Data, want) && o.published.Annotations[descriptionAnnotation] != "":
		return act.Plan{Why: "the config map is as it should be"}
	}
	repaired := o.published.DeepCopy()
	repaired.Data = want
	metav1.SetMetaDataAnnotation(&repaired.ObjectMeta, descriptionAnnotation, description)
	return act.Plan{Why: "the config map was changed", Stages: act.Stages(act.Update{Object: repaired, Required: true})}
}

// creation makes the config map. One that is there already may be a wrong one.
func creation(missing *corev1.ConfigMap) act.Plan {
	return act.Plan{
		Why:    "the config map is missing",
		Stages: act.Stages(act.Create{Object: missing, MayExist: true}),
		Then: func(r act.Results) act.Plan {
			if r[0].Became == act.Existed {
				return act.Plan{Why: "somebody else created the config map", RequeueAfter: untilCached}
			}
			return act.Plan{Why: "the config map is published"}
		},
	}
}
