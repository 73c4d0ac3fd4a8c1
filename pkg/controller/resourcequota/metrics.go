package resourcequota

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var (
	frozenGauge = metrics.NewGaugeVec(&metrics.GaugeOpts{
		Name: "kcm_frozen_quotas", StabilityLevel: metrics.ALPHA,
		Help: "Resource quotas whose usage of a resource is not updated, because the resource cannot be read.",
	}, []string{"group", "resource"})
	frozenQuotas = &frozenCount{by: map[schema.GroupResource]map[types.NamespacedName]bool{}}
)

var register = sync.OnceFunc(func() { legacyregistry.MustRegister(frozenGauge) })

// frozenCount counts quotas by what they cannot count.
type frozenCount struct {
	mu sync.Mutex
	by map[schema.GroupResource]map[types.NamespacedName]bool
}

// set notes what a quota cannot count.
func (f *frozenCount) set(key types.NamespacedName, broken map[schema.GroupResource]bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for of := range broken {
		if f.by[of] == nil {
			f.by[of] = map[types.NamespacedName]bool{}
		}
		f.by[of][key] = true
		frozenGauge.WithLabelValues(of.Group, of.Resource).Set(float64(len(f.by[of])))
	}
	for of, keys := range f.by {
		if broken[of] || !keys[key] {
			continue
		}
		delete(keys, key)
		frozenGauge.WithLabelValues(of.Group, of.Resource).Set(float64(len(keys)))
		if len(keys) == 0 {
			delete(f.by, of)
			frozenGauge.DeleteLabelValues(of.Group, of.Resource)
		}
	}
}
