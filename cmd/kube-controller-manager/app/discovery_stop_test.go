package app

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// unanswering is an API server that does not answer for what it serves.
type unanswering struct {
	discovery.DiscoveryInterface
	asked   func()
	forever chan struct{}
}

func (s unanswering) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	s.asked()
	<-s.forever
	return nil, nil, nil
}

// TestAStartThatIsStoppedDoesNotWaitForDiscovery holds that a process can end while the API
// server does not answer: the library takes no context.
func TestAStartThatIsStoppedDoesNotWaitForDiscovery(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	forever := make(chan struct{})
	defer close(forever)
	if _, _, err := availableResources(ctx, unanswering{asked: cancel, forever: forever}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
