package clustertrustbundlepublisher

import (
	certificatesv1alpha1 "k8s.io/api/certificates/v1alpha1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	"k8s.io/client-go/informers"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// API is ClusterTrustBundles in the version that the API server serves. To the
// controller all of them are v1beta1.
type API struct {
	informer toolscache.SharedIndexInformer
	watch    func(*runner.Runner[string], func()) error
	read     func(object any) *certificatesv1beta1.ClusterTrustBundle
	written  func(*certificatesv1beta1.ClusterTrustBundle) client.Object
}

// Beta is the API in v1beta1; own is what Informers has made.
func Beta(own informers.SharedInformerFactory) API {
	informer := own.Certificates().V1beta1().ClusterTrustBundles().Informer()
	return API{
		informer: informer,
		watch:    anyChange[certificatesv1beta1.ClusterTrustBundle](informer),
		read: func(object any) *certificatesv1beta1.ClusterTrustBundle {
			bundle, _ := object.(*certificatesv1beta1.ClusterTrustBundle)
			return bundle
		},
		written: asBeta,
	}
}

// Alpha is the API in v1alpha1; own is what Informers has made.
func Alpha(own informers.SharedInformerFactory) API {
	informer := own.Certificates().V1alpha1().ClusterTrustBundles().Informer()
	return API{
		informer: informer,
		watch:    anyChange[certificatesv1alpha1.ClusterTrustBundle](informer),
		read: func(object any) *certificatesv1beta1.ClusterTrustBundle {
			bundle, ok := object.(*certificatesv1alpha1.ClusterTrustBundle)
			if !ok {
				return nil
			}
			return &certificatesv1beta1.ClusterTrustBundle{ObjectMeta: bundle.ObjectMeta, Spec: certificatesv1beta1.ClusterTrustBundleSpec(bundle.Spec)}
		},
		written: func(b *certificatesv1beta1.ClusterTrustBundle) client.Object { return alpha(b) },
	}
}

func asBeta(b *certificatesv1beta1.ClusterTrustBundle) client.Object { return b }

func alpha(b *certificatesv1beta1.ClusterTrustBundle) *certificatesv1alpha1.ClusterTrustBundle {
	return &certificatesv1alpha1.ClusterTrustBundle{ObjectMeta: b.ObjectMeta, Spec: certificatesv1alpha1.ClusterTrustBundleSpec(b.Spec)}
}

func anyChange[T any](informer toolscache.SharedIndexInformer) func(*runner.Runner[string], func()) error {
	return func(r *runner.Runner[string], wake func()) error {
		return runner.Watch(r, informer, func(runner.Change[T], runner.Wake[string]) { wake() })
	}
}
