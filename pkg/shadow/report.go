package shadow

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
)

// What a comparison may come to.
const (
	agreed    = "agreed"
	overtaken = "overtaken"
	extra     = "extra"
	missed    = "missed"
)

// Report is what was compared so far. It has names of objects and nothing of what is in them.
type Report struct {
	// Version is that of the shape of the report.
	Version int       `json:"version"`
	Since   time.Time `json:"since"`
	Window  string    `json:"window"`
	// Agreement is the share of agreed ones among those that are agreed, extra or missed.
	// It is not there while there are none.
	Agreement *float64 `json:"agreement,omitempty"`
	// RefusedRequests is how many requests the transport had to refuse: 0, or something
	// tried to write past the actor.
	RefusedRequests int64 `json:"refusedRequests"`
	Totals
	Controllers []Controller `json:"controllers"`
	Differences []Difference `json:"differences"`
}

// Controller is the part of a report that is about one controller.
type Controller struct {
	Name      string   `json:"name"`
	Agreement *float64 `json:"agreement,omitempty"`
	Totals
}

// Totals count what was compared.
type Totals struct {
	// Agreed, Overtaken and Extra count what we would have written, Missed what the
	// running manager has written.
	Agreed    int `json:"agreed"`
	Overtaken int `json:"overtaken"`
	Extra     int `json:"extra"`
	Missed    int `json:"missed"`
	// Open is what we would write now, and whose window is not over.
	Open int `json:"open"`
	// Foreseen and Late count the writes of the running manager that could be seen to be of
	// a controller, by whether we had planned such a one before we saw it.
	Foreseen int `json:"foreseen"`
	Late     int `json:"late"`
	// Aside is what was kept back and not compared.
	Aside int `json:"aside"`
}

func (t Totals) agreement() *float64 {
	all := t.Agreed + t.Extra + t.Missed
	if all == 0 {
		return nil
	}
	share := float64(t.Agreed) / float64(all)
	return &share
}

func (t *Totals) add(more Totals) {
	t.Agreed += more.Agreed
	t.Overtaken += more.Overtaken
	t.Extra += more.Extra
	t.Missed += more.Missed
	t.Open += more.Open
	t.Foreseen += more.Foreseen
	t.Late += more.Late
	t.Aside += more.Aside
}

// Difference is one sort of differences, with the last one.
type Difference struct {
	Controller string `json:"controller"`
	// Result is extra or missed.
	Result string `json:"result"`
	// What is the verb and the kind.
	What  string    `json:"what"`
	Count int       `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Open is how many of them we would write still.
	Open   int    `json:"open"`
	Object string `json:"object"`
	// Key is the one to ask for at /debug/controllers.
	Key string `json:"key,omitempty"`
}

// total returns the counts of a controller, under the lock.
func (l *Ledger) total(controller string) *Totals {
	if l.totals[controller] == nil {
		l.totals[controller] = &Totals{}
	}
	return l.totals[controller]
}

// count counts a comparison, under the lock.
func (l *Ledger) count(controller, result string) {
	t := l.total(controller)
	switch result {
	case agreed:
		t.Agreed++
	case overtaken:
		t.Overtaken++
	case extra:
		t.Extra++
	case missed:
		t.Missed++
	}
	comparisons.WithLabelValues(controller, result).Inc()
}

// Report returns what was compared so far, controllers by name.
func (l *Ledger) Report() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(l.o.Clock.Now())
	open := map[string]int{}
	for _, of := range l.keys {
		for _, o := range of {
			if l.total(o.controller); !o.extra {
				open[o.controller]++
			}
		}
	}
	r := Report{Version: 1, Since: l.since.UTC(), Window: l.o.Window.String(), RefusedRequests: l.o.Refused(), Controllers: []Controller{}, Differences: []Difference{}}
	for name, totals := range l.totals {
		of := *totals
		of.Open = open[name]
		r.add(of)
		r.Controllers = append(r.Controllers, Controller{name, of.agreement(), of})
	}
	r.Agreement = r.Totals.agreement()
	slices.SortFunc(r.Controllers, func(a, b Controller) int { return cmp.Compare(a.Name, b.Name) })
	for _, d := range l.differences {
		r.Differences = append(r.Differences, *d)
	}
	slices.SortFunc(r.Differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Controller, b.Controller), cmp.Compare(a.Result, b.Result), cmp.Compare(a.What, b.What))
	})
	return r
}

// ServeHTTP serves the report.
func (l *Ledger) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	debug.WriteJSON(w, http.StatusOK, l.Report())
}
