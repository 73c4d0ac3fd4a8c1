package rootcapublisher

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// ConfigMapName is the name of the published config map.
	ConfigMapName = "kube-root-ca.crt"

	certificateKey        = "ca.crt"
	descriptionAnnotation = "kubernetes.io/description"
	description           = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)

// plan says what to write; at most one of Create and Update is set.
type plan struct {
	create, update *corev1.ConfigMap
	Why            string `json:"why"`
}

// decide compares the published config map, nil if there is none, with what it must be.
func decide(namespace *corev1.Namespace, published *corev1.ConfigMap, rootCA string) plan {
	want := map[string]string{certificateKey: rootCA}
	switch {
	case namespace == nil:
		return plan{Why: "the namespace is gone"}
	case namespace.Status.Phase != corev1.NamespaceActive:
		return plan{Why: "the namespace is not active"}
	case published == nil:
		return plan{Why: "the config map is missing", create: &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Name: ConfigMapName, Namespace: namespace.Name,
				Annotations: map[string]string{descriptionAnnotation: description},
			},
			Data: want,
		}}
	case maps.Equal(published.Data, want) && published.Annotations[descriptionAnnotation] != "":
		return plan{Why: "nothing differs"}
	}
	repaired := published.DeepCopy()
	repaired.Data = want
	metav1.SetMetaDataAnnotation(&repaired.ObjectMeta, descriptionAnnotation, description)
	return plan{Why: "the config map was changed", update: repaired}
}
