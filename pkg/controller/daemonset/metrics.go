package daemonset

import (
	"sync"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/staleness"
)

var staleSyncSkips = staleness.Skips("daemonset_controller")

var registerMetrics = sync.OnceFunc(func() { legacyregistry.MustRegister(staleSyncSkips) })
