package app

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1alpha1 "k8s.io/api/certificates/v1alpha1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	kcmconfig "k8s.io/kube-controller-manager/config/v1alpha1"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/clustertrustbundlepublisher"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/csrapproving"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/csrcleaner"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/csrsigning"
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
		{Name: names.CertificateSigningRequestSigningController, Needs: of(v1, "certificatesigningrequests"),
			Without: func(c *kcmconfig.KubeControllerManagerConfiguration) string {
				if len(signersOf(c.CSRSigningController)) == 0 {
					return "no --cluster-signing-*-file flags are set"
				}
				return ""
			},
			Account: certificateAccount, New: newCSRSigning},
		{Name: names.KubeAPIServerServingClusterTrustBundlePublisherController, Gates: []featuregate.Feature{features.ClusterTrustBundle},
			Account: "kube-apiserver-serving-clustertrustbundle-publisher", New: newClusterTrustBundlePublisher},
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

func newCSRSigning(ctx context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	config := cc.Config.CSRSigningController
	signers := signersOf(config)
	for name := range ownFilesOf(config) {
		if _, runs := signers[name]; !runs {
			klog.FromContext(ctx).Info("Requests for this signer will not be signed: there are files for other signers, but none for it", "signer", name)
		}
	}
	return csrsigning.New(cc.Informers.Certificates().V1().CertificateSigningRequests(), hand, csrsigning.Options{
		Signers: signers, Duration: config.ClusterSigningDuration.Duration,
	})
}

// newClusterTrustBundlePublisher needs v1beta1, or else v1alpha1.
func newClusterTrustBundlePublisher(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	version := clustertrustbundlepublisher.Beta
	if err := cc.require(of(certificatesv1beta1.SchemeGroupVersion, "clustertrustbundles")...); err != nil {
		if cc.require(of(certificatesv1alpha1.SchemeGroupVersion, "clustertrustbundles")...) != nil {
			return nil, err
		}
		version = clustertrustbundlepublisher.Alpha
	}
	rootCA, err := cc.rootCA()
	if err != nil {
		return nil, err
	}
	if len(rootCA) == 0 {
		return nil, skip("there is no root CA to publish")
	}
	return clustertrustbundlepublisher.New(version(cc.narrowed(clustertrustbundlepublisher.Informers)), rootCA, hand)
}
