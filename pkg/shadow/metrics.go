package shadow

import (
	"errors"
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

var comparisons = metrics.NewCounterVec(&metrics.CounterOpts{
	Namespace:      "kcm",
	Subsystem:      "shadow",
	Name:           "comparisons_total",
	Help:           "What a shadow would have written or has seen written, by controller and result: agreed, overtaken, extra (the running manager did not), missed (we did not plan it).",
	StabilityLevel: metrics.ALPHA,
}, []string{"controller", "result"})

// registerMetrics is called by a shadow only: any other process does not show them.
var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(comparisons) })

func isShadowed(err error) bool { return errors.Is(err, act.ErrShadowed) }
