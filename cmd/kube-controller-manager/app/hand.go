package app

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// handFor makes what the controller of a row writes with, as its service account. Its
// requests and those of its events share one rate.
func (cc ControllerContext) handFor(ctx context.Context, c Controller) (reconcile.Hand, error) {
	config, err := cc.configOf(c)
	if err != nil {
		return reconcile.Hand{}, err
	}
	if config.ContentType == runtime.ContentTypeCBOR {
		config.ContentType = runtime.ContentTypeProtobuf // the writer encodes no CBOR; the caches read it
	}
	config.WarningHandlerWithContext = rest.NoWarnings{} // else the writer logs each one
	connections, err := rest.HTTPClientFor(config)
	if err != nil {
		return reconcile.Hand{}, fmt.Errorf("make the connections of %s: %w", c.Account, err)
	}
	kinds := cc.kinds
	if c.AnyKind {
		kinds = meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{cc.kinds, cc.RESTMapper}}
	}
	writer, err := client.New(config, client.Options{HTTPClient: connections, Scheme: scheme.Scheme, Mapper: act.Resources(kinds)})
	if err != nil {
		return reconcile.Hand{}, fmt.Errorf("make the client of %s: %w", c.Account, err)
	}
	if writer, err = transport.PodMetadata(writer, config, connections); err != nil {
		return reconcile.Hand{}, fmt.Errorf("make the client of %s: %w", c.Account, err)
	}
	hand := reconcile.Hand{Client: writer, OnWrite: countWrite, Clock: cc.Clock, Limits: cc.limits}
	if cc.process.shadow != nil {
		hand.Shadow = cc.process.shadow
	}
	if c.Events == "" {
		return hand, nil
	}
	events, err := kubernetes.NewForConfigAndClient(config, connections)
	if err != nil {
		return reconcile.Hand{}, fmt.Errorf("make the client of the events of %s: %w", c.Account, err)
	}
	hand.Events = cc.Recorder(ctx, events, c.Events)
	return hand, nil
}

// configOf is how a client of the controller of a row is made; with several, they share one rate.
func (cc ControllerContext) configOf(c Controller) (*rest.Config, error) {
	clients := cc.Clients
	if c.Root {
		clients = cc.RootClients
	}
	config, err := clients.Config(c.Account)
	if err != nil {
		return nil, fmt.Errorf("configure the client of %s: %w", c.Account, err)
	}
	config.QPS *= float32(max(c.QPS, 1))
	config.Burst *= max(c.Burst, 1)
	return cc.withholding(cc.process.rates.Limited(config, max(c.QPS, 1), max(c.Burst, 1)), cmp.Or(c.Name, cc.name)), nil
}

// another is the same configuration for one more client of the controller that is made
// now, with a rate of its own.
func (cc ControllerContext) another(config *rest.Config) *rest.Config {
	return cc.process.rates.Limited(config, max(cc.row.QPS, 1), max(cc.row.Burst, 1))
}

// discovery makes a client of the controller that is made now, for what is served.
func (cc ControllerContext) discovery() (discovery.DiscoveryInterface, error) {
	config, err := cc.configOf(cc.row)
	if err != nil {
		return nil, err
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make the discovery client of %s: %w", cc.row.Account, err)
	}
	return served, nil
}

// kindsOf maps the kinds that were served at the start of the term to their resources.
func kindsOf(lists []*metav1.APIResourceList) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // discovery names it when it is asked for what is available
		}
		for _, r := range list.APIResources {
			scope := meta.RESTScope(meta.RESTScopeRoot)
			if r.Namespaced {
				scope = meta.RESTScopeNamespace
			}
			if r.Kind != "" && len(r.Verbs) > 0 && !strings.Contains(r.Name, "/") {
				mapper.AddSpecific(version.WithKind(r.Kind), version.WithResource(r.Name), version.WithResource(r.SingularName), scope)
			}
		}
	}
	return mapper
}
