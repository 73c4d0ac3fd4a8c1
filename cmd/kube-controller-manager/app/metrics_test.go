package app

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// countedLoop has prepared numbers.
type countedLoop struct {
	pretendLoop
	stats runner.Stats
}

func (l *countedLoop) Stats() runner.Stats { return l.stats }

// seriesOf returns what is shown of a controller, or of the process for "".
func seriesOf(t *testing.T, controller string) map[string]float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			of, labels := "", []string{family.GetName()}
			for _, label := range metric.GetLabel() {
				if label.GetName() == "controller" {
					of = label.GetValue()
				} else {
					labels = append(labels, label.GetValue())
				}
			}
			if of == controller && strings.HasPrefix(family.GetName(), "kcm_") {
				found[strings.Join(labels, " ")] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	return found
}

func TestAControllerHasAtMostTwelveSeries(t *testing.T) {
	name := "twelve-" + rand.Text() // what counts writes is the process's, and outlives a run of the test
	cc := testContext(t, "*")
	watched.of.Store(cc.process)
	defer watched.of.Store(nil)
	cc.name = name
	for n := range 2 { // the numbers of its loops are one
		cc.term.loops[name] = append(cc.term.loops[name], &countedLoop{stats: runner.Stats{
			Reconciles: 10, Errors: 3, Panics: 1, Busy: 1500 * time.Millisecond, Failing: 2, Held: 4, OldestFailing: time.Minute, OldestWaiting: 2 * time.Second, OldestHeld: time.Duration(n+1) * time.Hour,
		}})
	}
	cc.process.terms.add(cc.term)
	cc.process.debug.Set(name, debug.Started, "")
	for _, step := range []act.Step{act.Create{}, act.Update{}, act.Patch{}, act.Apply{}, act.Delete{}, act.DeleteAll{}, act.Adopt{}, act.Release{}, act.Status{}, act.Scale{}} {
		countWrite(act.Write{Controller: name, Verb: step.Verb()})
	}
	got := seriesOf(t, name)
	want := map[string]float64{
		"kcm_reconciles_total success": 14, "kcm_reconciles_total error": 6, "kcm_reconcile_seconds_total": 3,
		"kcm_failing_keys": 4, "kcm_held_keys": 8, "kcm_panics_total": 2,
		"kcm_oldest_failing_seconds": 60, "kcm_oldest_waiting_seconds": 2, "kcm_controller_state started": 1,
		"kcm_writes_total create": 1, "kcm_writes_total change": 7, "kcm_writes_total delete": 2,
	}
	for series, value := range want {
		if got[series] != value {
			t.Errorf("%s is %v, want %v", series, got[series], value)
		}
	}
	if len(got) > 12 || len(got) != len(want) {
		t.Errorf("%d series: %v", len(got), got)
	}
	if held := seriesOf(t, "")["kcm_oldest_held_seconds"]; held != 2*60*60 {
		t.Errorf("the oldest held key of all controllers: %v", held)
	}
	cc.process.debug.PausedBy(func(string) string { return "maintenance" })
	if got := seriesOf(t, name); got["kcm_controller_state paused"] != 1 || len(got) != len(want) {
		t.Errorf("while it is paused: %v", got)
	}
	cc.close()
	if got := seriesOf(t, name); slices.ContainsFunc([]string{"kcm_failing_keys", "kcm_held_keys"}, func(s string) bool { _, there := got[s]; return there }) {
		t.Errorf("after the end of the term: %v", got)
	}
}

// TestWhoLeadsIsShown has a process that leads and waits for an API server.
func TestWhoLeadsIsShown(t *testing.T) {
	p := testProcess(t, testConfig(t))
	watched.of.Store(p)
	defer watched.of.Store(nil)
	if leads, there := seriesOf(t, "")["kcm_leader"]; !there || leads != 0 {
		t.Errorf("before it leads: %v, %v", leads, there)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan error)
	go func() { done <- p.lead(ctx, term{name: "leads"}, nil) }()
	eventually(t, "it leads", func() bool { return seriesOf(t, "")["kcm_leader"] == 1 })
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if leads := seriesOf(t, "")["kcm_leader"]; leads != 0 {
		t.Errorf("after it led: %v", leads)
	}
}
