package resourceclaim

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	resourceapi "k8s.io/api/resource/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const subsystem = "resourceclaim_controller"

var (
	creates = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "creates_total", StabilityLevel: metrics.ALPHA,
		Help: "Requests to create a ResourceClaim from a template.",
	}, []string{"status", "admin_access"})

	claimsDesc = metrics.NewDesc(metrics.BuildFQName("", subsystem, "resource_claims"),
		"ResourceClaims, by whether they are allocated, have admin access, and what they were made from.",
		[]string{"allocated", "admin_access", "source"}, nil, metrics.ALPHA, "")

	registerOnce sync.Once
	// current is the cache whose claims are counted.
	current atomic.Pointer[toolscache.Indexer]
)

func register(claims toolscache.Indexer) {
	current.Store(&claims)
	registerOnce.Do(func() {
		legacyregistry.MustRegister(creates)
		legacyregistry.CustomMustRegister(&collector{})
	})
}

// counts counts the requests to create a claim.
func counts(results act.Results) []act.Count {
	var all []act.Count
	for _, r := range results {
		create, is := r.Step.(act.Create)
		claim, isClaim := create.Object.(*resourceapi.ResourceClaim)
		if !is || !isClaim || r.Became == act.NotBegun || r.Became == act.OnHold {
			continue
		}
		status := "success"
		if r.Became != act.Done {
			status = "failure"
		}
		all = append(all, act.Count{Adds: creates.WithLabelValues(status, strconv.FormatBool(adminAccess(claim))), Value: 1})
	}
	return all
}

// adminAccess reports whether a request of the claim asks for it.
func adminAccess(claim *resourceapi.ResourceClaim) bool {
	return slices.ContainsFunc(claim.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) bool {
		return r.Exactly != nil && ptr.Deref(r.Exactly.AdminAccess, false)
	})
}

// group is what claims are counted by.
type group struct {
	allocated, adminAccess bool
	source                 string
}

func groupOfClaim(claim *resourceapi.ResourceClaim) group {
	g := group{allocated: claim.Status.Allocation != nil, adminAccess: adminAccess(claim)}
	switch {
	case claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation] == "true":
		g.source = "extended_resource"
	case claim.Annotations[podClaimName] != "":
		g.source = "resource_claim_template"
	}
	return g
}

// collector counts claims when it is asked.
type collector struct{ metrics.BaseStableCollector }

func (*collector) DescribeWithStability(ch chan<- *metrics.Desc) { ch <- claimsDesc }

// CollectWithStability counts.
func (*collector) CollectWithStability(ch chan<- metrics.Metric) {
	claims := current.Load()
	if claims == nil {
		return
	}
	counted := map[group]int{}
	for _, object := range (*claims).List() {
		if claim, is := object.(*resourceapi.ResourceClaim); is {
			counted[groupOfClaim(claim)]++
		}
	}
	for g, n := range counted {
		ch <- metrics.NewLazyConstMetric(claimsDesc, metrics.GaugeValue, float64(n),
			strconv.FormatBool(g.allocated), strconv.FormatBool(g.adminAccess), g.source)
	}
}
