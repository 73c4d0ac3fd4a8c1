package attachdetach

import (
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
	"github.com/kube-kcm/kube-controller-manager/pkg/volumes/operations"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

var (
	forcedDetaches = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: "attach_detach_controller", Name: "attachdetach_controller_forced_detaches", StabilityLevel: metrics.ALPHA,
		Help: "Detaches that did not wait for the node, by reason: timeout, or out-of-service.",
	}, []string{"reason"})
	totalVolumes = metrics.NewDesc("attachdetach_controller_total_volumes",
		"Volumes and nodes that are to be together (desired_state_of_world), or are or may be (actual_state_of_world), by plugin.",
		[]string{"plugin_name", "state"}, nil, metrics.ALPHA, "")
	inUseVolumes = metrics.NewDesc("storage_count_attachable_volumes_in_use",
		"Volumes of the pods of a node that can be attached, by plugin; one for each pod.",
		[]string{"node", "volume_plugin"}, nil, metrics.ALPHA, "")

	// leading is the controller whose volumes are counted.
	leading atomic.Pointer[Controller]
)

var register = sync.OnceFunc(func() {
	operations.Register()
	legacyregistry.MustRegister(forcedDetaches)
	legacyregistry.CustomMustRegister(&gauges{})
})

func forced(reason string) act.Count {
	return act.Count{Adds: forcedDetaches.WithLabelValues(reason), Value: 1}
}

// took is how long an operation took.
func took(v *volumeView, known bool, op operation, err error, now time.Time) act.Count {
	of := operations.Operation{Name: string(op.kind), Plugin: volumes.PluginOf(v.name)}
	if known && v.source != nil {
		of.Plugin, of.Migrated = v.source.Label(), v.source.Migrated
	}
	return of.Took(now.Sub(op.since), err)
}

// compared is that the attachments of a node were compared.
func compared() act.Count {
	return operations.Operation{Name: "verify_volumes_are_attached_per_node", Plugin: "<n/a>"}.Took(0, nil)
}

// gauges are computed when somebody asks.
type gauges struct{ metrics.BaseStableCollector }

func (*gauges) DescribeWithStability(ch chan<- *metrics.Desc) {
	ch <- totalVolumes
	ch <- inUseVolumes
}

func (*gauges) CollectWithStability(ch chan<- metrics.Metric) {
	c := leading.Load()
	if c == nil {
		return
	}
	for labels, n := range c.book.totals() {
		ch <- metrics.NewLazyConstMetric(totalVolumes, metrics.GaugeValue, float64(n), labels[0], labels[1])
	}
	for labels, n := range c.inUse() {
		ch <- metrics.NewLazyConstMetric(inUseVolumes, metrics.GaugeValue, float64(n), labels[0], labels[1])
	}
}

// totals counts volumes and nodes by plugin and state.
func (b *book) totals() map[[2]string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	total := map[[2]string]int{}
	for _, r := range b.volumes {
		if r.source == nil {
			continue
		}
		for _, p := range r.pairs {
			if p.wanted {
				total[[2]string{r.source.Label(), "desired_state_of_world"}]++
			}
			if p.known && p.state != absent {
				total[[2]string{r.source.Label(), "actual_state_of_world"}]++
			}
		}
	}
	return total
}

// inUse counts the volumes of all pods that have a node, by node and plugin.
func (c *Controller) inUse() map[[2]string]int {
	count := map[[2]string]int{}
	for _, item := range c.pods.List() {
		pod, is := item.(*corev1.Pod)
		if !is || pod.Spec.NodeName == "" {
			continue
		}
		for i := range pod.Spec.Volumes {
			if plugin := c.pluginOf(pod, &pod.Spec.Volumes[i]); plugin != "" {
				count[[2]string{pod.Spec.NodeName, plugin}]++
			}
		}
	}
	return count
}

// pluginOf is the plugin of a volume of a pod that can be attached; empty if it cannot.
func (c *Controller) pluginOf(pod *corev1.Pod, volume *corev1.Volume) string {
	if volume.CSI != nil {
		return volumes.CSI + ":" + volume.CSI.Driver
	}
	source, err := volumes.OfPodVolume(volume, pod.Namespace)
	if pv := c.pvOf(pod, volume); pv != nil {
		source, err = volumes.OfPV(pv)
	}
	if err != nil || source == nil || source.Flex != nil && !c.attachable(source) {
		return ""
	}
	return source.Label()
}

// pvOf is the PersistentVolume that a volume of a pod is bound to; nil if it is not.
func (c *Controller) pvOf(pod *corev1.Pod, volume *corev1.Volume) *corev1.PersistentVolume {
	name, _ := volumes.ClaimOf(pod, volume)
	if name == "" {
		return nil
	}
	claim, err := reconcile.Cached[corev1.PersistentVolumeClaim](c.claims, pod.Namespace+"/"+name)
	if err != nil || !volumes.Uses(pod, claim) {
		return nil
	}
	pv, err := reconcile.Cached[corev1.PersistentVolume](c.pvs, claim.Spec.VolumeName)
	if err != nil || !volumes.Bound(claim, pv) {
		return nil
	}
	return pv
}
