package breaks

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/openapi"
	"k8s.io/metrics/pkg/client/custom_metrics"
)

// events is a client under a name of its own.
type events func(ctx context.Context, name string) (watch.Interface, error)

// readings are clients behind an interface.
type readings interface {
	Custom(namespace string) custom_metrics.MetricsInterface
}

type asker struct {
	documents openapi.Client                                              // want a client
	custom    custom_metrics.MetricsInterface                             // want a client
	readings  readings                                                    // want a client
	events    events                                                      // want a client
	pod       func(ctx context.Context, name string) (*corev1.Pod, error) // want a client
	excused   func(context.Context, *corev1.Pod) error
	matches   func(*corev1.Pod) bool
	ready     func(context.Context) error
}

func (a *asker) ask(ctx context.Context) error {
	_, err := a.pod(ctx, "a") // want reaches for a client
	return err
}
