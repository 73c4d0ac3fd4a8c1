package app

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// What each controller does. A controller has at most twelve series, those of writes
// included, so a duration is a total and no histogram.
var (
	reconcilesDesc    = ofControllers("kcm_reconciles_total", "Reconciles, by result: success or error.", "result")
	busyDesc          = ofControllers("kcm_reconcile_seconds_total", "Time spent in reconciles, of all workers together.")
	failingDesc       = ofControllers("kcm_failing_keys", "Keys whose last reconcile failed and that are retried.")
	oldestFailingDesc = ofControllers("kcm_oldest_failing_seconds", "How long the key that fails for longest has done so; 0 when none fails.")
	oldestWaitingDesc = ofControllers("kcm_oldest_waiting_seconds", "How long the first key in the queue has waited for a worker; 0 when none waits.")
	panicsDesc        = ofControllers("kcm_panics_total", "Panics in reconciles and event handlers that were contained.")
	heldDesc          = ofControllers("kcm_held_keys", "Keys that wait until the caches show what was written for them.")
	oldestHeldDesc    = metrics.NewDesc("kcm_oldest_held_seconds", "How long the key that waits for the caches for longest has done so, of all controllers; 0 when none waits.", nil, nil, metrics.ALPHA, "")
	stateDesc         = ofControllers("kcm_controller_state", "Always 1, labeled by the state that the controller is in.", "state")
	leaderDesc        = metrics.NewDesc("kcm_leader", "1 while this process leads and runs the controllers, 0 while it waits, and in a shadow.", nil, nil, metrics.ALPHA, "")

	writes = metrics.NewCounterVec(&metrics.CounterOpts{
		Name:           "kcm_writes_total",
		Help:           "Write requests, by what they do: create, delete, or change (update, patch and apply, also of a status).",
		StabilityLevel: metrics.ALPHA,
	}, []string{"controller", "verb"})

	watched controllerMetrics
)

func ofControllers(name, help string, more ...string) *metrics.Desc {
	return metrics.NewDesc(name, help, append([]string{"controller"}, more...), nil, metrics.ALPHA, "")
}

func init() {
	legacyregistry.MustRegister(writes)
	legacyregistry.CustomMustRegister(&watched)
}

// countWrite counts a request, whatever its answer.
func countWrite(w act.Write) {
	verb := "change"
	switch w.Verb {
	case "create":
		verb = "create"
	case "delete", "deletecollection":
		verb = "delete"
	}
	writes.WithLabelValues(w.Controller, verb).Inc()
}

// controllerMetrics shows the numbers of the process that was started last; a program
// has one.
type controllerMetrics struct {
	metrics.BaseStableCollector
	of atomic.Pointer[process]
}

// counted is a loop that knows its numbers. The loops of a cloud provider do not.
type counted interface{ Stats() runner.Stats }

// DescribeWithStability describes the metrics.
func (m *controllerMetrics) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, d := range []*metrics.Desc{reconcilesDesc, busyDesc, failingDesc, oldestFailingDesc, oldestWaitingDesc, panicsDesc, heldDesc, oldestHeldDesc, stateDesc, leaderDesc} {
		ch <- d
	}
}

// CollectWithStability asks all loops for their numbers.
func (m *controllerMetrics) CollectWithStability(ch chan<- metrics.Metric) {
	p := m.of.Load()
	if p == nil {
		return
	}
	show := func(d *metrics.Desc, kind metrics.ValueType, value float64, labels ...string) {
		ch <- metrics.NewLazyConstMetric(d, kind, value, labels...)
	}
	for _, c := range p.debug.List() {
		state := string(c.State)
		if c.State == debug.Started && c.PausedBy != "" {
			state = "paused"
		}
		show(stateDesc, metrics.GaugeValue, 1, c.Name, state)
	}
	leads := 0.0
	if p.leads() {
		leads = 1
	}
	show(leaderDesc, metrics.GaugeValue, leads)
	var oldestHeld time.Duration
	for _, term := range p.terms.list() {
		for name, s := range term.stats() {
			show(reconcilesDesc, metrics.CounterValue, float64(s.Reconciles-s.Errors), name, "success")
			show(reconcilesDesc, metrics.CounterValue, float64(s.Errors), name, "error")
			show(busyDesc, metrics.CounterValue, s.Busy.Seconds(), name)
			show(failingDesc, metrics.GaugeValue, float64(s.Failing), name)
			show(oldestFailingDesc, metrics.GaugeValue, s.OldestFailing.Seconds(), name)
			show(oldestWaitingDesc, metrics.GaugeValue, s.OldestWaiting.Seconds(), name)
			show(panicsDesc, metrics.CounterValue, float64(s.Panics), name)
			show(heldDesc, metrics.GaugeValue, float64(s.Held), name)
			oldestHeld = max(oldestHeld, s.OldestHeld)
		}
	}
	show(oldestHeldDesc, metrics.GaugeValue, oldestHeld.Seconds())
}

// stats are the numbers of the controllers that have started, by name.
func (r *running) stats() map[string]runner.Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]runner.Stats{}
	for name, loops := range r.loops {
		for _, loop := range loops {
			if c, ok := loop.(counted); ok {
				all[name] = all[name].Plus(c.Stats())
			}
		}
	}
	return all
}

// terms are those that the process leads now.
type terms struct {
	mu  sync.Mutex
	now []*running
}

// add adds a term until it is closed.
func (t *terms) add(r *running) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now = append(t.now, r)
	r.onClose(func() { t.remove(r) })
}

func (t *terms) remove(r *running) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now = slices.DeleteFunc(t.now, func(other *running) bool { return other == r })
}

func (t *terms) list() []*running {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.now)
}
