package podcertificaterequestcleaner

import (
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	certificatesinformers "k8s.io/client-go/informers/certificates/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// Resource is what the controller cleans.
var Resource = certificatesv1beta1.SchemeGroupVersion.WithResource("podcertificaterequests")

type key = types.NamespacedName

// Informers makes informers that keep the metadata of the requests only.
var Informers = cache.TrimmedBy(func(object any) (any, error) {
	if request, ok := object.(*certificatesv1beta1.PodCertificateRequest); ok {
		request.Spec, request.Status = certificatesv1beta1.PodCertificateRequestSpec{}, certificatesv1beta1.PodCertificateRequestStatus{}
	}
	return cache.Trim(object)
})

// Controller deletes old requests; its keys are their names.
type Controller = reconcile.Controller[key]

// New returns the controller, which is not running yet.
func New(requests certificatesinformers.PodCertificateRequestInformer, hand reconcile.Hand) (*Controller, error) {
	store := requests.Informer().GetStore()
	c := reconcile.New(reconcile.Options[key]{
		Runner: runner.Options[key]{Name: "podcertificaterequest-cleaner-controller"},
		Hand:   hand, Caches: reconcile.Caches{Resource.GroupResource(): store},
	}, reconcile.Observe[certificatesv1beta1.PodCertificateRequest, key](store), plan)
	return c, runner.Watch(c.Runner, requests.Informer(), func(change runner.Change[certificatesv1beta1.PodCertificateRequest], wake runner.Wake[key]) {
		// Nothing that changes makes a request older; one of the same name may be another.
		if change.New != nil && (change.Old == nil || change.Old.UID != change.New.UID) {
			wake.Add(client.ObjectKeyFromObject(change.New))
		}
	})
}
