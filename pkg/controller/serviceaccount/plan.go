package serviceaccount

import corev1 "k8s.io/api/core/v1"

// defaultName is the account that pods use which name none.
const defaultName = "default"

// plan says which service accounts a namespace lacks.
type plan struct {
	Create []string `json:"create,omitempty"`
	Why    string   `json:"why"`
}

// decide compares the accounts that must be there with those that are.
func decide(namespace *corev1.Namespace, exists func(name string) bool) plan {
	switch {
	case namespace == nil:
		return plan{Why: "the namespace is gone"}
	case namespace.Status.Phase != corev1.NamespaceActive:
		return plan{Why: "the namespace is not active"}
	case exists(defaultName):
		return plan{Why: "nothing is missing"}
	}
	return plan{Create: []string{defaultName}, Why: "the default service account is missing"}
}
