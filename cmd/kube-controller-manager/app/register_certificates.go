package app

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	"k8s.io/component-base/featuregate"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/csrapproving"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/csrcleaner"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/podcertificaterequestcleaner"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// certificateAccount is the service account of the controllers of certificate signing requests.
const certificateAccount = "certificate-controller"

func certificatesControllers() []Controller {
	v1, v1beta1 := certificatesv1.SchemeGroupVersion, certificatesv1beta1.SchemeGroupVersion
	return []Controller{
		{Name: names.CertificateSigningRequestApprovingController, Needs: of(v1, "certificatesigningrequests"),
			Account: certificateAccount, New: newCSRApproving},
		{Name: names.CertificateSigningRequestCleanerController, Needs: of(v1, "certificatesigningrequests"),
			Account: certificateAccount, New: newCSRCleaner},
		{Name: names.CertificateSigningRequestSigningController, Start: startCertificateSigningRequestSigningController},
		{Name: names.KubeAPIServerServingClusterTrustBundlePublisherController,
			Start: startKubeAPIServerServingClusterTrustBundlePublisherController},
		{Name: names.PodCertificateRequestCleanerController, Gates: []featuregate.Feature{features.PodCertificateRequest},
			Needs: of(v1beta1, "podcertificaterequests"), Account: "podcertificaterequestcleaner", New: newPodCertificateRequestCleaner},
	}
}

func newCSRApproving(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	return csrapproving.New(cc.Informers.Certificates().V1().CertificateSigningRequests(), hand)
}

func newCSRCleaner(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	return csrcleaner.New(cc.Informers.Certificates().V1().CertificateSigningRequests(), hand)
}

func newPodCertificateRequestCleaner(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	requests := cc.narrowed(podcertificaterequestcleaner.Informers).Certificates().V1beta1().PodCertificateRequests()
	return podcertificaterequestcleaner.New(requests, hand)
}
