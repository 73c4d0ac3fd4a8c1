package monitor

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
)

const (
	// confirmers is how many resources that discovery lacks are asked for at once,
	// and confirmFor how long one may take to answer.
	confirmers = 5
	confirmFor = 10 * time.Second
)

var errUndiscovered = errors.New("it is not known yet which resources the API server serves")

// virtual are APIs whose objects are computed when they are asked for: nothing
// that has an owner is in them.
var virtual = map[string]bool{"metrics.k8s.io": true, "custom.metrics.k8s.io": true, "external.metrics.k8s.io": true}

// confirm keeps watched resources that discovery lacks, unless their list is not
// served either: one answer alone may be that of a server that has just begun.
func (s *Set) confirm(ctx context.Context, found catalog) catalog {
	var lacking []Resource
	for id, w := range s.all() {
		if _, served := found.resources[id]; !served {
			lacking = append(lacking, w.resource)
		}
	}
	gone := make([]bool, len(lacking))
	workqueue.ParallelizeUntil(ctx, confirmers, len(lacking), func(i int) {
		ctx, cancel := context.WithTimeout(ctx, confirmFor)
		defer cancel()
		_, err := s.o.Metadata.Resource(lacking[i].GroupVersionResource).List(ctx, metav1.ListOptions{Limit: 1})
		gone[i] = apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
	})
	for i, resource := range lacking {
		if !gone[i] {
			found.keep(resource)
		}
	}
	return found
}

// unknown names an API that could never be discovered and may hold objects.
func (s *Set) unknown() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for version, err := range s.catalog.failed {
		if !virtual[version.Group] && !s.catalog.knows(version) {
			return fmt.Errorf("%s cannot be discovered: %w", version, err)
		}
	}
	return nil
}
