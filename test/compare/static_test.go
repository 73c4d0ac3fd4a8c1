package compare

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHelpGivesSectionTypeAndDefault(t *testing.T) {
	got := ParseHelp(`Usage:
  x [flags]

Generic flags:

      --kubeconfig string     Path to a file.
  -h, --help                  help for x
      --period duration       How long
                              to wait. (default 5s)
      --old string            Gone. (DEPRECATED: use --new) (default "a b")

Metrics flags:

      --disabled strings      Names.
`)
	want := map[string]string{
		"kubeconfig": `section "Generic", type "string"`,
		"help":       `section "Generic", type ""`,
		"period":     `section "Generic", type "duration", default 5s`,
		"old":        `section "Generic", type "string", default "a b", deprecated`,
		"disabled":   `section "Metrics", type "strings"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMetricsGiveTypeAndLabels(t *testing.T) {
	got := ParseMetrics(`# HELP a_total help
# TYPE a_total counter
a_total{code="200",path="a,b=\"c\""} 3
a_total{code="201",method="GET"} 3
# TYPE b_seconds histogram
b_seconds_bucket{name="x",le="0.1"} 1
b_seconds_sum{name="x"} 1
# TYPE c gauge
c 1
`)
	want := map[string]string{"a_total": "counter {code,method,path}", "b_seconds": "histogram {name}", "c": "gauge {}"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestConfigzAndHealthBecomeTables(t *testing.T) {
	leaves, err := ParseConfigz(`{"a":{"b":1,"c":["x"],"d":{}}}`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a.b": "1", "a.c": `["x"]`, "a.d": "{}"}, leaves); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"ping": "ok", "loop": "failed"}, ParseHealth("[+]ping ok\n[-]loop failed: reason withheld\nhealthz check failed\n")); diff != "" {
		t.Error(diff)
	}
}

func TestTablesAreCompared(t *testing.T) {
	var got []string
	for _, f := range CompareTables(KindFlag, map[string]string{"a": "1", "b": "2", "c": "3"}, map[string]string{"b": "2", "c": "4", "d": "5"}) {
		got = append(got, f.Subject+" "+f.Detail)
	}
	if diff := cmp.Diff([]string{"a only with the reference: 1", "c - 3\n+ 4", "d only with ours: 5"}, got); diff != "" {
		t.Error(diff)
	}
}
