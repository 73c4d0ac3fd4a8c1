package csrapproving

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesinformers "k8s.io/client-go/informers/certificates/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/certificates"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// Controller approves requests; its keys are their names.
type Controller = reconcile.Controller[string]

// New returns the controller, which is not running yet.
func New(requests certificatesinformers.CertificateSigningRequestInformer, hand reconcile.Hand) (*Controller, error) {
	cache := requests.Informer().GetStore()
	c := reconcile.New(reconcile.Options[string]{
		Runner: runner.Options[string]{
			Name: "certificatesigningrequest-approving-controller", Queue: certificates.Queue, Workers: certificates.Workers,
			RateLimiter: certificates.Retries(),
		},
		Hand: hand, Caches: reconcile.Caches{certificates.Resource: cache},
	}, reconcile.Observe[certificatesv1.CertificateSigningRequest, string](cache), plan)
	return c, runner.Watch(c.Runner, requests.Informer(),
		func(change runner.Change[certificatesv1.CertificateSigningRequest], wake runner.Wake[string]) {
			// One that waited is looked at once more when it no longer does, which ends its retries.
			if change.New != nil && waiting(change.New) || change.Old != nil && waiting(change.Old) {
				wake.Add(change.Now().Name)
			}
		})
}
