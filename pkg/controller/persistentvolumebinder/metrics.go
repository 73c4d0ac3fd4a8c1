package persistentvolumebinder

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// unknownPlugin is the label of a plugin that nobody knows; that of all CSI volumes, too,
// in the counts of volumes.
const unknownPlugin = "N/A"

var (
	operationSeconds = metrics.NewHistogramVec(&metrics.HistogramOpts{
		Name: "volume_operation_total_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time from the first attempt to provision a volume until its claim is bound, and from the first attempt to delete one until it is gone.",
		Buckets: []float64{.1, .25, .5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600},
	}, []string{"plugin_name", "operation_name"})
	operationErrors = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "volume_operation_errors_total", StabilityLevel: metrics.ALPHA,
		Help: "Failed attempts to provision, to bind or to delete a volume.",
	}, []string{"plugin_name", "operation_name"})
	operationErrorsOld = metrics.NewCounterVec(&metrics.CounterOpts{
		Name: "volume_operation_total_errors", StabilityLevel: metrics.ALPHA, DeprecatedVersion: "1.36.0",
		Help: "The same as volume_operation_errors_total, under its old name.",
	}, []string{"plugin_name", "operation_name"})
	assignments = metrics.NewCounter(&metrics.CounterOpts{
		Name: "retroactive_storageclass_total", StabilityLevel: metrics.ALPHA,
		Help: "Attempts to give the default class to a claim that has none.",
	})
	assignmentErrors = metrics.NewCounter(&metrics.CounterOpts{
		Name: "retroactive_storageclass_errors_total", StabilityLevel: metrics.ALPHA,
		Help: "Failed attempts to give the default class to a claim that has none.",
	})

	registerOnce sync.Once
	// current is the controller whose volumes and claims are counted.
	current atomic.Pointer[Controller]
)

func registerMetrics(c *Controller) {
	current.Store(c)
	registerOnce.Do(func() {
		legacyregistry.MustRegister(operationSeconds, operationErrors, operationErrorsOld, assignments, assignmentErrors)
		legacyregistry.CustomMustRegister(&collector{})
	})
}

// countAssigned counts an attempt to give a claim the default class.
func countAssigned(results act.Results) []act.Count {
	counts := []act.Count{{Adds: assignments, Value: 1}}
	if _, err := results.Failed(); err != nil {
		counts = append(counts, act.Count{Adds: assignmentErrors, Value: 1})
	}
	return counts
}

// countUnsaved counts that a claim could not be given the name of its provisioner.
func countUnsaved(plugin string, results act.Results) []act.Count {
	if _, err := results.Failed(); err == nil {
		return nil
	}
	return []act.Count{
		{Adds: operationErrors.WithLabelValues(plugin, string(provisions)), Value: 1},
		{Adds: operationErrorsOld.WithLabelValues(plugin, string(provisions)), Value: 1},
	}
}

func countError(plugin string, kind operationKind) {
	operationErrors.WithLabelValues(plugin, string(kind)).Inc()
	operationErrorsOld.WithLabelValues(plugin, string(kind)).Inc()
}

// timers measure how long it takes to provision and to delete volumes.
type timers struct {
	mu      sync.Mutex
	claims  map[types.NamespacedName]timer
	volumes map[string]timer
}

type timer struct {
	plugin string
	since  time.Time
}

func newTimers() *timers {
	return &timers{claims: map[types.NamespacedName]timer{}, volumes: map[string]timer{}}
}

// provisioning begins to measure, unless that has begun.
func (t *timers) provisioning(claim types.NamespacedName, plugin string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, begun := t.claims[claim]; !begun {
		t.claims[claim] = timer{plugin, now}
	}
}

// provisioned ends it: the claim is bound.
func (t *timers) provisioned(claim types.NamespacedName, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if begun, is := t.claims[claim]; is {
		operationSeconds.WithLabelValues(begun.plugin, string(provisions)).Observe(now.Sub(begun.since).Seconds())
		delete(t.claims, claim)
	}
}

// bindFailed counts a failure, if a volume is being provisioned for the claim.
func (t *timers) bindFailed(claim types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if begun, is := t.claims[claim]; is {
		countError(begun.plugin, provisions)
	}
}

func (t *timers) claimGone(claim types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.claims, claim)
}

// deleting begins to measure, unless that has begun.
func (t *timers) deleting(volume, plugin string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, begun := t.volumes[volume]; !begun {
		t.volumes[volume] = timer{plugin, now}
	}
}

// volumeGone ends it.
func (t *timers) volumeGone(volume string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if begun, is := t.volumes[volume]; is {
		operationSeconds.WithLabelValues(begun.plugin, string(deletes)).Observe(now.Sub(begun.since).Seconds())
		delete(t.volumes, volume)
	}
}

// collector counts volumes and claims when it is asked.
type collector struct{ metrics.BaseStableCollector }

var (
	_            metrics.StableCollector = &collector{}
	totalVolumes                         = gauge("total_pv_count", "Volumes.", "plugin_name", "volume_mode")
	boundVolumes                         = gauge("bound_pv_count", "Volumes that are bound.", "storage_class")
	freeVolumes                          = gauge("unbound_pv_count", "Volumes that are not bound.", "storage_class")
	boundClaims                          = gauge("bound_pvc_count", "Claims that are bound.", "namespace", "storage_class", "volume_attributes_class")
	freeClaims                           = gauge("unbound_pvc_count", "Claims that are not bound.", "namespace", "storage_class", "volume_attributes_class")
)

func gauge(name, help string, labels ...string) *metrics.Desc {
	return metrics.NewDesc(metrics.BuildFQName("", "pv_collector", name), help, labels, nil, metrics.ALPHA, "")
}

// DescribeWithStability describes the counts.
func (*collector) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, d := range []*metrics.Desc{totalVolumes, boundVolumes, freeVolumes, boundClaims, freeClaims} {
		ch <- d
	}
}

// CollectWithStability counts.
func (*collector) CollectWithStability(ch chan<- metrics.Metric) {
	c := current.Load()
	if c == nil {
		return
	}
	counts := map[*metrics.Desc]map[[3]string]float64{totalVolumes: {}, boundVolumes: {}, freeVolumes: {}, boundClaims: {}, freeClaims: {}}
	for _, pv := range c.pool.all() {
		counts[totalVolumes][[3]string{sourceOf(pv), string(modeOf(pv.Spec.VolumeMode))}]++
		counts[either(pv.Status.Phase == corev1.VolumeBound, boundVolumes, freeVolumes)][[3]string{pv.Spec.StorageClassName}]++
	}
	for _, item := range c.claimStore.List() {
		if claim, is := item.(*corev1.PersistentVolumeClaim); is {
			// The old annotation may hold any bytes, and a label that is no UTF-8 would end the process.
			class := strings.ToValidUTF8(classOf(claim), "\uFFFD")
			labels := [3]string{claim.Namespace, class, attributesOf(claim.Spec.VolumeAttributesClassName)}
			counts[either(claim.Status.Phase == corev1.ClaimBound, boundClaims, freeClaims)][labels]++
		}
	}
	labels := map[*metrics.Desc]int{totalVolumes: 2, boundVolumes: 1, freeVolumes: 1, boundClaims: 3, freeClaims: 3}
	for d, of := range counts {
		for values, n := range of {
			ch <- metrics.NewLazyConstMetric(d, metrics.GaugeValue, n, values[:labels[d]]...)
		}
	}
}

func either(is bool, yes, no *metrics.Desc) *metrics.Desc {
	if is {
		return yes
	}
	return no
}

// sourceOf names the plugin of a volume, of those that manage volumes here.
func sourceOf(pv *corev1.PersistentVolume) string {
	switch {
	case pv.Spec.HostPath != nil:
		return "kubernetes.io/host-path"
	case pv.Spec.NFS != nil:
		return "kubernetes.io/nfs"
	}
	return unknownPlugin
}
