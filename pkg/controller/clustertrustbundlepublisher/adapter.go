package clustertrustbundlepublisher

import (
	"context"
	"time"

	certificatesv1alpha1 "k8s.io/api/certificates/v1alpha1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// Informers returns informers whose bundles are only those of the signer. The
// caller starts them; client must be one that may list and watch bundles.
func Informers(client kubernetes.Interface, resync time.Duration) informers.SharedInformerFactory {
	return cache.Filtered(client, resync, fields.OneTermEqualSelector("spec.signerName", SignerName).String())
}

// API is ClusterTrustBundles in the version that the API server serves. To the
// controller all of them are v1beta1.
type API struct {
	informer toolscache.SharedIndexInformer
	watch    func(*runner.Runner[string], func()) error
	convert  func(object any) *certificatesv1beta1.ClusterTrustBundle
	create   func(context.Context, *certificatesv1beta1.ClusterTrustBundle) (metav1.Object, error)
	update   func(context.Context, *certificatesv1beta1.ClusterTrustBundle) (metav1.Object, error)
	remove   func(context.Context, string, metav1.DeleteOptions) error
}

// Beta is the API in v1beta1; own is what Informers has made.
func Beta(own informers.SharedInformerFactory, client kubernetes.Interface) API {
	informer := own.Certificates().V1beta1().ClusterTrustBundles().Informer()
	bundles := client.CertificatesV1beta1().ClusterTrustBundles()
	return API{
		informer: informer,
		watch:    anyChange[certificatesv1beta1.ClusterTrustBundle](informer),
		convert: func(object any) *certificatesv1beta1.ClusterTrustBundle {
			bundle, _ := object.(*certificatesv1beta1.ClusterTrustBundle)
			return bundle
		},
		create: func(ctx context.Context, b *certificatesv1beta1.ClusterTrustBundle) (metav1.Object, error) {
			return bundles.Create(ctx, b, metav1.CreateOptions{})
		},
		update: func(ctx context.Context, b *certificatesv1beta1.ClusterTrustBundle) (metav1.Object, error) {
			return bundles.Update(ctx, b, metav1.UpdateOptions{})
		},
		remove: bundles.Delete,
	}
}

// Alpha is the API in v1alpha1; own is what Informers has made.
func Alpha(own informers.SharedInformerFactory, client kubernetes.Interface) API {
	informer := own.Certificates().V1alpha1().ClusterTrustBundles().Informer()
	bundles := client.CertificatesV1alpha1().ClusterTrustBundles()
	return API{
		informer: informer,
		watch:    anyChange[certificatesv1alpha1.ClusterTrustBundle](informer),
		convert: func(object any) *certificatesv1beta1.ClusterTrustBundle {
			bundle, ok := object.(*certificatesv1alpha1.ClusterTrustBundle)
			if !ok {
				return nil
			}
			return &certificatesv1beta1.ClusterTrustBundle{ObjectMeta: bundle.ObjectMeta, Spec: certificatesv1beta1.ClusterTrustBundleSpec(bundle.Spec)}
		},
		create: func(ctx context.Context, b *certificatesv1beta1.ClusterTrustBundle) (metav1.Object, error) {
			return bundles.Create(ctx, alpha(b), metav1.CreateOptions{})
		},
		update: func(ctx context.Context, b *certificatesv1beta1.ClusterTrustBundle) (metav1.Object, error) {
			return bundles.Update(ctx, alpha(b), metav1.UpdateOptions{})
		},
		remove: bundles.Delete,
	}
}

func alpha(b *certificatesv1beta1.ClusterTrustBundle) *certificatesv1alpha1.ClusterTrustBundle {
	return &certificatesv1alpha1.ClusterTrustBundle{ObjectMeta: b.ObjectMeta, Spec: certificatesv1alpha1.ClusterTrustBundleSpec(b.Spec)}
}

func anyChange[T any](informer toolscache.SharedIndexInformer) func(*runner.Runner[string], func()) error {
	return func(r *runner.Runner[string], wake func()) error {
		return runner.Watch(r, informer, func(runner.Change[T], runner.Wake[string]) { wake() })
	}
}
