package app

import (
	"context"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/pkg/election"
	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
)

// waitForAPIServer returns when the API server says it is healthy, and names
// what it waits for while it does not. One that answers that it is not healthy
// now is given longer than one that cannot be reached.
func waitForAPIServer(ctx context.Context, client kubernetes.Interface, host string, unreachable, unhealthy time.Duration) error {
	var last error
	began := time.Now()
	err := wait.PollUntilContextTimeout(ctx, time.Second, max(unreachable, unhealthy), true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, unreachable)
		defer cancel()
		status := 0
		result := client.Discovery().RESTClient().Get().AbsPath("/healthz").Do(ctx).StatusCode(&status)
		failed := result.Error()
		if failed == nil && status != http.StatusOK {
			failed = fmt.Errorf("status %d", status)
		}
		if failed == nil {
			return true, nil
		}
		if last == nil || ctx.Err() == nil && failed.Error() != last.Error() {
			last = failed
			klog.FromContext(ctx).Info("Waiting until the API server is healthy", "server", host, "err", failed)
		}
		atMost := unreachable
		if transport.PassingCode(status) {
			atMost = unhealthy
		}
		if time.Since(began) >= atMost {
			return false, context.DeadlineExceeded
		}
		return false, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("%w: failed to get apiserver /healthz status: %w", err, last)
	}
	return err
}

// controllerClients gives every controller the identity of its own service
// account when the flag asks for it, and else that of --kubeconfig.
func controllerClients(ctx context.Context, p *process, root clientbuilder.ControllerClientBuilder, accounts typedcorev1.CoreV1Interface, fence *election.Fence) clientbuilder.ControllerClientBuilder {
	if !p.ComponentConfig.KubeCloudShared.UseServiceAccountCredentials || p.shadow != nil {
		return root // a shadow may ask for no tokens
	}
	if p.ComponentConfig.SAController.ServiceAccountKeyFile == "" {
		klog.FromContext(ctx).Info("--use-service-account-credentials is set without --service-account-private-key-file: token Secrets get no tokens; controllers get theirs from the API server")
	}
	tokens := newTokens(accounts)
	each := clientbuilder.NewDynamicClientBuilder(transport.Finishing(ctx, rest.AnonymousClientConfig(p.Kubeconfig), fence), tokens, metav1.NamespaceSystem)
	return &patientClients{each, tokens, ctx}
}

// patientClients makes clients of service accounts. To make one it asks the API server, and
// retries while that is overloaded or away.
type patientClients struct {
	clientbuilder.ControllerClientBuilder
	tokens *tokens
	// ctx ends the tries; the library's interface has no place for it.
	ctx context.Context
}

// Config returns the configuration of a client of the service account.
func (c *patientClients) Config(name string) (config *rest.Config, err error) {
	err = transport.Try(c.ctx, "service account of "+name, startPatience, func() error {
		config, err = transport.Within(c.ctx, func() (*rest.Config, error) { return c.ControllerClientBuilder.Config(name) })
		return err
	})
	if err == nil {
		config.Wrap(c.tokens.because(name))
	}
	return config, err
}

// Client returns a client of the service account.
func (c *patientClients) Client(name string) (client kubernetes.Interface, err error) {
	config, err := c.Config(name)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// DiscoveryClient returns a client of the service account for discovery.
func (c *patientClients) DiscoveryClient(name string) (client discovery.DiscoveryInterface, err error) {
	err = transport.Try(c.ctx, "service account of "+name, startPatience, func() error {
		client, err = transport.Within(c.ctx, func() (discovery.DiscoveryInterface, error) { return c.ControllerClientBuilder.DiscoveryClient(name) })
		return err
	})
	return client, err
}

// Recorder makes a recorder whose events are written with client and flushed
// when the term ends.
func (cc ControllerContext) Recorder(ctx context.Context, client kubernetes.Interface, source string) record.EventRecorder {
	events := newEvents(ctx, cc.process.sendsEvents(client.CoreV1()), source)
	cc.term.addEvents(events)
	return events.recorder
}

// require skips the controller, with the reason, when a resource it cannot do
// without is not served.
func (cc ControllerContext) require(resources ...schema.GroupVersionResource) error {
	for _, resource := range resources {
		if !cc.Available[resource] {
			return skip("the API server does not serve %s in %s", resource.Resource, resource.GroupVersion())
		}
	}
	return nil
}
