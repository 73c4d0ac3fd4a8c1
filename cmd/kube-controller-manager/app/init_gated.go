package app

import (
	"context"
	"fmt"
	"net/http"

	certificatesv1alpha1 "k8s.io/api/certificates/v1alpha1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/client-go/discovery"
	"k8s.io/component-base/featuregate"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/clustertrustbundlepublisher"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/storageversionmigrator"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
)

// gated skips the controller, with the reason, when one of its feature gates is off.
func (cc ControllerContext) gated(gates ...featuregate.Feature) error {
	for _, gate := range gates {
		if !cc.Gates.Enabled(gate) {
			return skip("the feature gate %s is off", gate)
		}
	}
	return nil
}

func startKubeAPIServerServingClusterTrustBundlePublisherController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	if err := cc.gated(features.ClusterTrustBundle); err != nil {
		return nil, false, err
	}
	of := clustertrustbundlepublisher.Beta
	if err := cc.require(certificatesv1beta1.SchemeGroupVersion.WithResource("clustertrustbundles")); err != nil {
		if cc.require(certificatesv1alpha1.SchemeGroupVersion.WithResource("clustertrustbundles")) != nil {
			return nil, false, err
		}
		of = clustertrustbundlepublisher.Alpha
	}
	rootCA, err := cc.rootCA()
	if err != nil {
		return nil, false, err
	}
	if len(rootCA) == 0 {
		return nil, false, skip("there is no root CA to publish")
	}
	hand, err := cc.hand(ctx, "kube-apiserver-serving-clustertrustbundle-publisher", "")
	if err != nil {
		return nil, false, err
	}
	c, err := clustertrustbundlepublisher.New(of(cc.narrowed(clustertrustbundlepublisher.Informers)), rootCA, hand)
	return cc.run(ctx, c, err)
}

func startStorageVersionMigratorController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	if err := cc.gated(features.StorageVersionMigrator); err != nil {
		return nil, false, err
	}
	if err := cc.require(storagemigrationv1beta1.SchemeGroupVersion.WithResource("storageversionmigrations")); err != nil {
		return nil, false, err
	}
	const account = "storage-version-migrator-controller"
	config, err := cc.Clients.Config(account)
	if err != nil {
		return nil, false, fmt.Errorf("configure the client of %s: %w", account, err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, false, fmt.Errorf("make the discovery client of %s: %w", account, err)
	}
	definitions, err := apiextensionsclient.NewForConfig(config)
	if err != nil {
		return nil, false, fmt.Errorf("make the client for definitions of %s: %w", account, err)
	}
	hand, err := cc.handOf(ctx, config, "")
	if err != nil {
		return nil, false, err
	}
	c, err := storageversionmigrator.New(cc.Informers.Storagemigration().V1beta1().StorageVersionMigrations(), hand, storageversionmigrator.Options{
		Discovery: kinds, Definitions: definitions.ApiextensionsV1().CustomResourceDefinitions(),
	})
	return cc.run(ctx, c, err)
}
