package validatingadmissionpolicystatus

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	admissioninformers "k8s.io/client-go/informers/admissionregistration/v1"
	"k8s.io/client-go/openapi"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name  = "validatingadmissionpolicy-status-controller"
	queue = "validatingadmissionpolicy-status"
)

// Options are the settings of the controller.
type Options struct {
	// Workers is how many policies are checked at once; 1 by default.
	Workers int
	// Mapper knows which kinds are served.
	Mapper meta.RESTMapper
	// Documents reads the OpenAPI documents.
	Documents openapi.Client
	// SchemasOf resolves schemas out of documents.
	SchemasOf func(openapi.Client) resolver.SchemaResolver
}

// Controller checks policies; its keys are their names.
type Controller struct {
	*reconcile.Controller[string]
	policies  consistency.Store
	mapper    meta.RESTMapper
	documents openapi.Client
	schemasOf func(openapi.Client) resolver.SchemaResolver
	schemas   schemas
}

// New returns the controller, which is not running yet.
func New(policies admissioninformers.ValidatingAdmissionPolicyInformer, hand reconcile.Hand, o Options) (*Controller, error) {
	c := &Controller{policies: policies.Informer().GetStore(), mapper: o.Mapper, documents: o.Documents, schemasOf: o.SchemasOf}
	c.Controller = reconcile.New(reconcile.Options[string]{
		Runner: runner.Options[string]{Name: name, Queue: queue, Workers: o.Workers},
		Hand:   hand, Caches: reconcile.Caches{admissionv1.Resource("validatingadmissionpolicies"): c.policies},
	}, c.observe, plan)
	return c, runner.Watch(c.Runner, policies.Informer(), func(change runner.Change[admissionv1.ValidatingAdmissionPolicy], wake runner.Wake[string]) {
		if change.New == nil || unchecked(change.New) {
			wake.Add(change.Now().Name)
		}
	})
}
