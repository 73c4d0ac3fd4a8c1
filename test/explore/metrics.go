package explore

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
)

// KindMetric is a finding about a metric that counts what was done.
const KindMetric = "metric"

// counted are the metrics that count what a user sees happen, or that there is. Those that count
// how often a controller looked are left out: that is ours to choose.
var counted = []string{
	"attach_detach_controller_attachdetach_controller_forced_detaches",
	"cronjob_controller_job_creation_skew_duration_seconds",
	"endpoint_slice_mirroring_controller_changes",
	"ephemeral_volume_controller_create_total",
	"job_controller_job_finished_indexes_total",
	"job_controller_job_pods_creation_total",
	"job_controller_job_pods_finished_total",
	"job_controller_jobs_finished_total",
	"job_controller_pod_failures_handled_by_failure_policy_total",
	"job_controller_terminated_pods_tracking_finalizer_total",
	"node_collector_evictions_total",
	"pod_gc_collector_force_delete_pods_total",
	"selinux_warning_controller_selinux_volume_conflict",
	"taint_eviction_controller_pod_deletions_total",
	"ttl_after_finished_controller_job_deletion_duration_seconds",
}

// counts reads how much was counted, by metric and labels.
func counts(text string) (map[string]float64, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("read the metrics: %w", err)
	}
	found := map[string]float64{}
	for _, name := range counted {
		for _, m := range families[name].GetMetric() {
			labels := make([]string, 0, len(m.GetLabel()))
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			slices.Sort(labels)
			found[name+"{"+strings.Join(labels, ",")+"}"] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return found, nil
}

// grown are the counts that went up, and by how much.
func grown(before, after map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for name, n := range after {
		if more := n - before[name]; more != 0 {
			out[name] = more
		}
	}
	return out
}

// metricFindings are the counts that did not go up alike.
func metricFindings(story string, reference, ours map[string]float64) []compare.Finding {
	all := maps.Clone(reference)
	maps.Copy(all, ours)
	var findings []compare.Finding
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if r, o := reference[name], ours[name]; r != o {
			findings = append(findings, compare.Finding{Story: story, Controller: "metrics", Kind: KindMetric, Subject: name, More: o > r,
				Detail: fmt.Sprintf("%v more with the reference, %v with ours", r, o)})
		}
	}
	return findings
}

// count reads what both managers have counted.
func (g *game) count(into *[2]map[string]float64) error {
	return g.both(func(i int) error {
		text, err := g.sides[i].Metrics()
		if err == nil {
			into[i], err = counts(text)
		}
		return err
	})
}
