package csrcleaner

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	certificatesinformers "k8s.io/client-go/informers/certificates/v1"
	"k8s.io/client-go/kubernetes"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name = "certificatesigningrequest-cleaner-controller"
	// pass is the only key.
	pass = "pass"
	// period is the time between two looks at all requests.
	period = time.Hour
	// What failed is tried again sooner.
	firstRetry, longestRetry = 5 * time.Second, 10 * time.Minute
)

// Options are the settings of the controller.
type Options struct {
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// Controller deletes old requests.
type Controller struct {
	*runner.Runner[string]
	requests certificateslisters.CertificateSigningRequestLister
	client   kubernetes.Interface
	clock    clock.PassiveClock
}

// New returns the controller, which is not running yet.
func New(requests certificatesinformers.CertificateSigningRequestInformer, client kubernetes.Interface, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{requests: requests.Lister(), client: client, clock: o.Clock}
	c.Runner = runner.New(runner.Options[string]{
		Name: name, Clock: o.Clock, Synced: []toolscache.InformerSynced{requests.Informer().HasSynced},
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, longestRetry),
	}, c.sync)
	c.Add(pass)
	return c, nil
}

func (c *Controller) sync(ctx context.Context, _ string) runner.Result {
	all, err := c.requests.List(labels.Everything())
	if err != nil {
		return runner.Done(err)
	}
	do := decide(all, c.clock.Now())
	var errs []error
	for _, r := range do.removals {
		errs = append(errs, c.remove(ctx, r))
	}
	return runner.Done(errs...).LookAgain(period).Because(do)
}

// remove deletes the request as it was judged. A conflict may be the refusal of
// an admission webhook, or the request has changed: both are looked at again soon.
func (c *Controller) remove(ctx context.Context, r removal) error {
	klog.FromContext(ctx).Info("Deleting a certificate signing request", "csr", r.csr.Name, "why", r.why)
	err := c.client.CertificatesV1().CertificateSigningRequests().Delete(ctx, r.csr.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &r.csr.UID, ResourceVersion: &r.csr.ResourceVersion},
	})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("unable to delete CSR %q: %w", r.csr.Name, err)
}
