package nodeipam

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
)

// lines are the metrics that there are of a cluster CIDR.
func lines(t *testing.T, cidr string) []string {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, family := range families {
		for _, m := range family.Metric {
			if name, ours := strings.CutPrefix(family.GetName(), subsystem+"_"); ours && m.Label[0].GetValue() == cidr {
				found = append(found, name)
			}
		}
	}
	return found
}

// unsaid has the metrics of the process say nothing: an earlier run of the test filled them.
func unsaid() {
	register()
	for _, vec := range []interface{ Reset() }{most, allocations, releases, usage, tries} {
		vec.Reset()
	}
}

func TestAMetricIsThereWhenItHasSomethingToSay(t *testing.T) {
	unsaid()
	const cidr = "10.99.0.0/22"
	b := newBlocks(rangeOf(cidr, 24))
	sees := func(when string, want ...string) {
		t.Helper()
		if got := lines(t, cidr); !slices.Equal(got, want) {
			t.Errorf("%s there are %v, want %v", when, got, want)
		}
	}
	sees("at the start", "cirdset_max_cidrs")
	b.withhold(netip.MustParsePrefix("192.168.0.0/24"))
	sees("with Services elsewhere", "cirdset_max_cidrs")
	b.withhold(netip.MustParsePrefix("10.99.0.0/24"))
	sees("with Services inside", "cidrset_cidrs_allocations_total", "cidrset_usage_cidrs", "cirdset_max_cidrs")
	i := b.free()
	b.take(span{i, i})
	sees("with a node", "cidrset_allocation_tries_per_request", "cidrset_cidrs_allocations_total", "cidrset_usage_cidrs", "cirdset_max_cidrs")
	b.take(span{i, i})
	b.release(span{i, i})
	sees("with a node too few on a block of two", "cidrset_allocation_tries_per_request", "cidrset_cidrs_allocations_total", "cidrset_usage_cidrs", "cirdset_max_cidrs")
	b.release(span{i, i})
	sees("without its nodes", "cidrset_allocation_tries_per_request", "cidrset_cidrs_allocations_total", "cidrset_cidrs_releases_total", "cidrset_usage_cidrs", "cirdset_max_cidrs")
}

func TestWhatTheMetricsSay(t *testing.T) {
	unsaid()
	const cidr = "10.98.0.0/21"
	b := newBlocks(rangeOf(cidr, 24))
	says := func(when string, share, taken, freed, passed float64) {
		t.Helper()
		for name, metric := range map[string]struct {
			of   func() (float64, error)
			want float64
		}{
			"share":  {func() (float64, error) { return testutil.GetGaugeMetricValue(usage.WithLabelValues(cidr)) }, share},
			"taken":  {func() (float64, error) { return testutil.GetCounterMetricValue(allocations.WithLabelValues(cidr)) }, taken},
			"freed":  {func() (float64, error) { return testutil.GetCounterMetricValue(releases.WithLabelValues(cidr)) }, freed},
			"passed": {func() (float64, error) { return testutil.GetHistogramMetricValue(tries.WithLabelValues(cidr)) }, passed},
		} {
			if got, err := metric.of(); got != metric.want || err != nil {
				t.Errorf("%s: %s %v, want %v, %v", when, name, got, metric.want, err)
			}
		}
	}
	b.withhold(netip.MustParsePrefix("10.98.1.0/24"))
	b.withhold(netip.MustParsePrefix("10.98.0.0/23")) // around the other
	says("with Services", 0.25, 2, 0, 0)
	first := b.free()
	b.take(span{first, first})
	says("with a node", 0.375, 3, 0, 2)
	b.next = 1
	second := b.free()
	b.take(span{second, second})
	says("with another one", 0.5, 4, 0, 4)
	b.release(span{first, first})
	says("without the first", 0.375, 4, 1, 4)
}
