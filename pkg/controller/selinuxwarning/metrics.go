package selinuxwarning

import (
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

var conflictDesc = metrics.NewDesc("selinux_warning_controller_selinux_volume_conflict",
	"1 for each pod that conflicts with another one on a volume, for as long as it does: by the labels, or by the way in which the volume gets them.",
	[]string{"property", "pod1_namespace", "pod1_name", "pod1_value", "pod2_namespace", "pod2_name", "pod2_value"}, nil,
	metrics.ALPHA, "")

// collector shows the conflicts of the controller that was made last.
type collector struct {
	metrics.BaseStableCollector
	of atomic.Pointer[book]
}

var (
	shown        collector
	registerOnce sync.Once
)

func register(b *book) {
	shown.of.Store(b)
	registerOnce.Do(func() { legacyregistry.CustomMustRegister(&shown) })
}

// DescribeWithStability describes the metric.
func (c *collector) DescribeWithStability(ch chan<- *metrics.Desc) { ch <- conflictDesc }

// CollectWithStability collects a series for each conflict and direction.
func (c *collector) CollectWithStability(ch chan<- metrics.Metric) {
	told := map[[7]string]bool{}
	for p := range c.of.Load().conflicts() {
		labels := [7]string{p.property, p.pod.Namespace, p.pod.Name, valid(p.own), p.other.Namespace, p.other.Name, valid(p.others)}
		if !told[labels] {
			told[labels] = true
			ch <- metrics.NewLazyConstMetric(conflictDesc, metrics.GaugeValue, 1, labels[:]...)
		}
	}
}

// valid is a value that may be any bytes as a label: one that is no UTF-8 would end the process.
func valid(value string) string { return strings.ToValidUTF8(value, "\uFFFD") }
