package serviceaccount

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// defaultName is the account that pods use which name none.
const defaultName = "default"

// observed is a namespace, and whether it has the account.
type observed struct {
	namespace *corev1.Namespace
	has       bool
}

func plan(o observed, _ time.Time) act.Plan {
	switch {
	case o.namespace.Status.Phase != corev1.NamespaceActive:
		return act.Plan{Why: "the namespace is not active"}
	case o.has:
		return act.Plan{Why: "the default service account is there"}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: defaultName, Namespace: o.namespace.Name}}
	return act.Plan{
		Why:    "the default service account is missing",
		Stages: act.Stages(act.Create{Object: account, MayExist: true}),
	}
}
