package podcertificaterequestcleaner

import (
	"context"
	"fmt"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	certificatesinformers "k8s.io/client-go/informers/certificates/v1beta1"
	"k8s.io/client-go/kubernetes"
	certificateslisters "k8s.io/client-go/listers/certificates/v1beta1"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const name = "podcertificaterequest-cleaner-controller"

// Resource is what the controller cleans.
var Resource = certificatesv1beta1.SchemeGroupVersion.WithResource("podcertificaterequests")

type key = types.NamespacedName

// Informers returns informers that keep the metadata of the requests only. The
// caller starts them.
func Informers(client kubernetes.Interface, resync time.Duration) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, resync, informers.WithTransform(func(object any) (any, error) {
		if request, ok := object.(*certificatesv1beta1.PodCertificateRequest); ok {
			request.Spec, request.Status = certificatesv1beta1.PodCertificateRequestSpec{}, certificatesv1beta1.PodCertificateRequestStatus{}
		}
		return cache.Trim(object)
	}))
}

// Options are the settings of the controller.
type Options struct {
	// Workers is how many requests are deleted at once; 1 by default.
	Workers int
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// Controller deletes old requests; its keys are their names.
type Controller struct {
	*runner.Runner[key]
	requests certificateslisters.PodCertificateRequestLister
	client   kubernetes.Interface
	writes   *consistency.Tracker[key]
	clock    clock.PassiveClock
}

// New returns the controller, which is not running yet.
func New(in certificatesinformers.PodCertificateRequestInformer, client kubernetes.Interface, o Options) (*Controller, error) {
	requests := in.Informer()
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{
		requests: in.Lister(), client: client, clock: o.Clock,
		writes: consistency.NewTracker[key](map[schema.GroupResource]consistency.Store{Resource.GroupResource(): requests.GetStore()}),
	}
	c.Runner = runner.New(runner.Options[key]{Name: name, Workers: o.Workers, Clock: o.Clock, Writes: c.writes}, c.sync)
	return c, runner.Watch(c.Runner, requests, func(change runner.Change[certificatesv1beta1.PodCertificateRequest], wake runner.Wake[key]) {
		// Nothing that changes makes a request older; one of the same name may be another.
		if change.New != nil && (change.Old == nil || change.Old.UID != change.New.UID) {
			wake.Add(key{Namespace: change.New.Namespace, Name: change.New.Name})
		}
	})
}

func (c *Controller) sync(ctx context.Context, k key) runner.Result {
	request, err := c.observe(k)
	if err != nil {
		return runner.Done(err)
	}
	if request == nil {
		c.writes.Forget(k)
	}
	do := decide(request, c.clock.Now())
	return runner.Done(c.apply(ctx, k, request, do)).LookAgain(do.again).Because(do)
}

func (c *Controller) observe(k key) (*certificatesv1beta1.PodCertificateRequest, error) {
	request, err := c.requests.PodCertificateRequests(k.Namespace).Get(k.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get pod certificate request %s: %w", k, err)
	}
	return request, nil
}

func (c *Controller) apply(ctx context.Context, k key, request *certificatesv1beta1.PodCertificateRequest, do plan) error {
	if !do.Delete {
		return nil
	}
	err := c.client.CertificatesV1beta1().PodCertificateRequests(k.Namespace).Delete(ctx, k.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &request.UID},
	})
	if _, err = c.writes.DeleteAnswered(ctx, k, Resource.GroupResource(), request, err); err != nil {
		return fmt.Errorf("delete pod certificate request %s: %w", k, err)
	}
	return nil
}
