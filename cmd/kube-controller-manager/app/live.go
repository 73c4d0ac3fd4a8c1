package app

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// addLiveReads makes the reads past the caches by which a writer finds out what
// became of a deletion that was refused and of a write whose answer was lost. They
// are lists of metadata, with the credentials of the shared caches, which may list
// everything that controllers write.
func (cc *ControllerContext) addLiveReads() error {
	config, err := cc.RootClients.Config("live-reads")
	if err != nil {
		return fmt.Errorf("configure the client of live reads: %w", err)
	}
	client, err := metadata.NewForConfig(cc.process.rates.Limited(config, 1, 1))
	if err != nil {
		return fmt.Errorf("make the client of live reads: %w", err)
	}
	mapper := cc.RESTMapper
	cc.live = func(ctx context.Context, resource schema.GroupResource, namespace string, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		// Discovery takes no context and may hang.
		served, err := transport.Within(ctx, func() (schema.GroupVersionResource, error) { return mapper.ResourceFor(resource.WithVersion("")) })
		if err != nil {
			return nil, fmt.Errorf("find the served version of %s: %w", resource, err)
		}
		if served.GroupResource() != resource { // the mapper takes a similar group where there is none
			return nil, fmt.Errorf("find the served version of %s: discovery has %s only", resource, served.GroupResource())
		}
		return client.Resource(served).Namespace(namespace).List(ctx, o)
	}
	return nil
}

// looksLive is a loop whose writes are confirmed by live reads.
type looksLive interface{ LookLive(list consistency.List) }
