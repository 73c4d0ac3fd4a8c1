package validatingadmissionpolicystatus

import (
	"context"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	admissioninformers "k8s.io/client-go/informers/admissionregistration/v1"
	"k8s.io/client-go/kubernetes"
	admissionlisters "k8s.io/client-go/listers/admissionregistration/v1"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name  = "validatingadmissionpolicy-status-controller"
	queue = "validatingadmissionpolicy-status"
)

var policyResource = schema.GroupResource{Group: admissionv1.GroupName, Resource: "validatingadmissionpolicies"}

// Options are the settings of the controller.
type Options struct {
	// Workers is how many policies are checked at once; 1 by default.
	Workers int
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
	// Mapper knows which kinds are served.
	Mapper meta.RESTMapper
	// Discovery reads the OpenAPI documents.
	Discovery discovery.DiscoveryInterface
}

// Controller checks policies; its keys are their names.
type Controller struct {
	*runner.Runner[string]
	policies  admissionlisters.ValidatingAdmissionPolicyLister
	client    kubernetes.Interface
	mapper    meta.RESTMapper
	discovery discovery.DiscoveryInterface
	schemas   schemas
	writes    *consistency.Tracker[string]
	clock     clock.PassiveClock
}

// New returns the controller, which is not running yet.
func New(policies admissioninformers.ValidatingAdmissionPolicyInformer, client kubernetes.Interface, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{policies: policies.Lister(), client: client, mapper: o.Mapper, discovery: o.Discovery, clock: o.Clock}
	c.writes = consistency.NewTracker[string](map[schema.GroupResource]consistency.Store{
		policyResource: policies.Informer().GetStore(),
	})
	c.Runner = runner.New(runner.Options[string]{
		Name: name, Queue: queue, Workers: o.Workers, Clock: o.Clock, Writes: c.writes,
	}, c.sync)
	return c, runner.Watch(c.Runner, policies.Informer(), func(change runner.Change[admissionv1.ValidatingAdmissionPolicy], wake runner.Wake[string]) {
		if decide(change.New).Check || change.New == nil {
			wake.Add(change.Now().Name)
		}
	})
}

func (c *Controller) sync(ctx context.Context, policyName string) runner.Result {
	again := c.restSchemas()
	policy, err := c.policies.Get(policyName)
	if apierrors.IsNotFound(err) {
		policy, err = nil, nil
		c.writes.Forget(policyName)
	}
	if err != nil {
		return runner.Done(err)
	}
	do := decide(policy)
	if !do.Check {
		return runner.Done().LookAgain(again).Because(do)
	}
	warnings, left, err := c.check(policy)
	do.Warnings, do.Left = len(warnings), left
	if err == nil {
		err = c.apply(ctx, policy, warnings)
	}
	return runner.Done(err).LookAgain(keepSchemas).Because(do)
}

// restSchemas forgets schemas that nobody asked for in a while. The key that was
// checked last comes again for that.
func (c *Controller) restSchemas() time.Duration {
	if c.schemas.drop(c.clock.Now()) {
		return keepSchemas
	}
	return 0
}
