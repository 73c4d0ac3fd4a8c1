package csrcleaner

import (
	"context"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/labels"
	certificatesinformers "k8s.io/client-go/informers/certificates/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	// pass is the only key.
	pass = "pass"
	// What failed is tried again sooner than in the next pass.
	firstRetry, longestRetry = 5 * time.Second, 10 * time.Minute
)

// Controller deletes old requests.
type Controller = reconcile.Controller[string]

// New returns the controller, which is not running yet. It waits for no cache: what
// it deleted is an hour older when it looks again.
func New(requests certificatesinformers.CertificateSigningRequestInformer, hand reconcile.Hand) (*Controller, error) {
	lister := requests.Lister()
	c := reconcile.New(reconcile.Options[string]{
		Runner: runner.Options[string]{
			Name:        "certificatesigningrequest-cleaner-controller",
			Synced:      []toolscache.InformerSynced{requests.Informer().HasSynced},
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, longestRetry),
		},
		Hand: hand,
	}, func(context.Context, string) ([]*certificatesv1.CertificateSigningRequest, error) {
		return lister.List(labels.Everything())
	}, plan)
	c.Add(pass)
	return c, nil
}
