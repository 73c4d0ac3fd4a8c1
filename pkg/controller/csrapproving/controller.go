package csrapproving

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	certificatesinformers "k8s.io/client-go/informers/certificates/v1"
	"k8s.io/client-go/kubernetes"
	certificateslisters "k8s.io/client-go/listers/certificates/v1"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/certificates"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const name = "certificatesigningrequest-approving-controller"

// Options are the settings of the controller.
type Options struct {
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// Controller approves requests; its keys are their names.
type Controller struct {
	*runner.Runner[string]
	requests certificateslisters.CertificateSigningRequestLister
	client   kubernetes.Interface
	writes   *consistency.Tracker[string]
}

// New returns the controller, which is not running yet.
func New(requests certificatesinformers.CertificateSigningRequestInformer, client kubernetes.Interface, o Options) (*Controller, error) {
	c := &Controller{requests: requests.Lister(), client: client}
	c.writes = consistency.NewTracker[string](map[schema.GroupResource]consistency.Store{
		certificates.Resource: requests.Informer().GetStore(),
	})
	c.Runner = runner.New(runner.Options[string]{
		Name: name, Queue: certificates.Queue, Workers: certificates.Workers, Clock: o.Clock,
		RateLimiter: certificates.Retries(), Writes: c.writes,
	}, c.sync)
	return c, runner.Watch(c.Runner, requests.Informer(),
		func(change runner.Change[certificatesv1.CertificateSigningRequest], wake runner.Wake[string]) {
			// One that waited is looked at once more when it no longer does, which ends its retries.
			if change.New != nil && waiting(change.New) || change.Old != nil && waiting(change.Old) {
				wake.Add(change.Now().Name)
			}
		})
}

func (c *Controller) sync(ctx context.Context, requestName string) runner.Result {
	csr, err := c.requests.Get(requestName)
	if apierrors.IsNotFound(err) {
		csr, err = nil, nil
		c.writes.Forget(requestName)
	}
	if err != nil {
		return runner.Done(err)
	}
	do := decide(csr)
	if do.broken != nil {
		return runner.GiveUp(do.broken).Because(do)
	}
	if len(do.Ask) == 0 {
		return runner.Done().Because(do)
	}
	allowed, err := c.review(ctx, csr, do.Ask)
	if err != nil {
		return runner.Done(err).Because(do)
	}
	if allowed == nil {
		return runner.Done(refused(csr, do.Ask)).Because(do)
	}
	do.Allowed = allowed.Permission
	return runner.Done(c.approve(ctx, csr, allowed)).Because(do)
}

// refused is an error so that the request is looked at again: roles change.
func refused(csr *certificatesv1.CertificateSigningRequest, asked []kind) error {
	permissions := make([]string, 0, len(asked))
	for _, k := range asked {
		permissions = append(permissions, k.Permission)
	}
	return fmt.Errorf("recognized csr %q as %v but subject access review was not approved", csr.Name, permissions)
}
