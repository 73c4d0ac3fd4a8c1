package app

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/component-base/featuregate"
	kcmconfig "k8s.io/kube-controller-manager/config/v1alpha1"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// Controller is one row of the table of controllers: what it is called, what it
// needs in order to run, as whom it writes, and how it is made. What
// --controllers accepts for the name stands in package names.
type Controller struct {
	// Name is the canonical name.
	Name string
	// Cloud marks a controller that works on a cloud. Without a provider in this build, or in
	// the flags, it is known by name only: it belongs to a cloud controller manager.
	Cloud bool
	// Gates are the feature gates that must be on.
	Gates []featuregate.Feature
	// Needs are the resources that the API server must serve.
	Needs []schema.GroupVersionResource
	// Without returns why the flags leave the controller out; "" when they do not.
	Without func(*kcmconfig.KubeControllerManagerConfiguration) string
	// Account is the service account of the controller's requests.
	Account string
	// Root makes requests with the credentials of --kubeconfig, under the name of Account.
	Root bool
	// Events is the component that its events name as their source; "" for none.
	Events string
	// AnyKind is of one that writes objects of kinds that may be served later, or not be built in.
	AnyKind bool
	// QPS and Burst multiply the limits of --kube-api-qps and --kube-api-burst; 0 leaves them.
	QPS, Burst int
	// New makes the controller, which writes with hand; cc.row is its row. An error of skip leaves it
	// out, any other ends the process.
	New func(ctx context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error)
}

// Controllers returns the table of all controllers, by API group.
func Controllers() []Controller {
	return slices.Concat(
		admissionControllers(), appsControllers(), autoscalingControllers(), batchControllers(), certificatesControllers(),
		coreControllers(), discoveryControllers(), internalControllers(), networkingControllers(), nodeControllers(),
		policyControllers(), rbacControllers(), resourceControllers(), schedulingControllers(), serviceAccountControllers(),
		storageControllers(), storageMigrationControllers(),
	)
}

// row returns the row of a controller.
func row(name string) Controller {
	rows := Controllers()
	at := slices.IndexFunc(rows, func(c Controller) bool { return c.Name == name })
	if at < 0 {
		return Controller{Name: name}
	}
	return rows[at]
}

// NewControllerInitializers returns how each controller is started, by name. The
// service account token controller is not among them: it is started before all others.
func NewControllerInitializers() map[string]InitFunc {
	all := map[string]InitFunc{}
	for _, c := range Controllers() {
		if c.Name != names.ServiceAccountTokenController {
			all[c.Name] = c.start
		}
	}
	return all
}

// start starts the controller, unless something that it needs is missing.
func (c Controller) start(ctx context.Context, cc ControllerContext) (Loop, error) {
	if err := c.missing(cc); err != nil {
		return nil, err
	}
	hand, err := cc.handFor(ctx, c)
	if err != nil {
		return nil, err
	}
	cc.row = c
	loop, err := c.New(ctx, cc, hand)
	if err != nil {
		return nil, err
	}
	cc.Go(ctx, loop)
	return loop, nil
}

// missing skips the controller, with the reason, when something that it needs is missing.
func (c Controller) missing(cc ControllerContext) error {
	if c.Cloud && cc.process.cloud == nil {
		return skip("it belongs to a cloud controller manager")
	}
	if why := c.flagsLeaveOut(cc.Config); why != "" {
		return skip("%s", why)
	}
	for _, gate := range c.Gates {
		if !cc.Gates.Enabled(gate) {
			return skip("the feature gate %s is off", gate)
		}
	}
	return cc.require(c.Needs...)
}

// flagsLeaveOut returns why the flags leave the controller out; "" when they do not.
func (c Controller) flagsLeaveOut(config *kcmconfig.KubeControllerManagerConfiguration) string {
	if c.Without == nil {
		return ""
	}
	return c.Without(config)
}

// of returns resources of one group and version.
func of(version schema.GroupVersion, resources ...string) []schema.GroupVersionResource {
	var all []schema.GroupVersionResource
	for _, resource := range resources {
		all = append(all, version.WithResource(resource))
	}
	return all
}
