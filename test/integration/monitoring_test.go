package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// inCluster is the label of the targets of a leader, outOfOffice that of a standby whose
// lease somebody else holds.
const inCluster, outOfOffice = "a", "b"

const splitLease = "kube-controller-manager-split"

// TestRulesAndDashboardFit has a real Prometheus look at real managers: it loads the rules,
// each metric and label that a rule or a panel names is served, and an alert fires.
func TestRulesAndDashboardFit(t *testing.T) {
	cp, leader := inTrouble(t, "--leader-elect=true", "--pause-configmap=kube-system/kcm-pause", "--max-deletes-per-minute=100000")
	client := clientOf(t, cp)
	pause := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kcm-pause"}, Data: map[string]string{"controllers": "ttl-controller"}}
	if _, err := client.CoreV1().ConfigMaps("kube-system").Create(t.Context(), pause, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The pods that a quota refuses are no difference, and a shadow counts them as one.
	shadow := startShadow(t, cp, client, "--shadow-window=5s")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: splitLease}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To("somebody"), LeaseDurationSeconds: ptr.To[int32](3600), RenewTime: ptr.To(metav1.NowMicro()), AcquireTime: ptr.To(metav1.NowMicro())}}
	if _, err := client.CoordinationV1().Leases("kube-system").Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	standby := cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t),
		Args: []string{"--leader-elect=true", "--leader-elect-resource-name=" + splitLease}})
	root, err := harness.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	w := watching{t, harness.StartPrometheus(t, []string{filepath.Join(root, "build/monitoring/rules.yaml")},
		harness.Target{Manager: leader, Cluster: inCluster}, harness.Target{Manager: shadow, Cluster: inCluster},
		harness.Target{Manager: standby, Cluster: outOfOffice})}
	rules := w.rules()
	for name, expression := range rules {
		w.isServed(name, expression)
	}
	for _, panel := range panelsOf(t, root) {
		for _, target := range panel.Targets {
			w.isShown(panel.Title, filled.Replace(target.Expr), target.LegendFormat)
		}
	}
	w.variablesAreServed(root)
	w.fires("KCMNoLeader", outOfOffice)
	t.Logf("KCMNoLeader fired after %s", time.Since(began).Round(time.Second))
	w.rests("KCMNoLeader", inCluster)
}

// filled is a dashboard on which everything is chosen.
var filled = strings.NewReplacer("$__rate_interval", "1m", "$cluster", inCluster, "$instance", ".*", "$controller", ".*")

type watching struct {
	t          *testing.T
	prometheus *harness.Prometheus
}

// rules are the expressions of the alerts, once Prometheus has evaluated all of them.
func (w watching) rules() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	harness.Eventually(w.t, patient, func(ctx context.Context) error {
		var data struct {
			Groups []struct {
				Rules []struct{ Name, Query, Health, LastError string }
			}
		}
		if err := w.prometheus.Ask(ctx, "rules", nil, &data); err != nil {
			return err
		}
		for _, group := range data.Groups {
			for _, rule := range group.Rules {
				if rule.Health != "ok" {
					return fmt.Errorf("%s is %s: %s", rule.Name, rule.Health, rule.LastError)
				}
				all[rule.Name] = rule.Query
			}
		}
		if len(all) == 0 {
			return fmt.Errorf("there are no rules")
		}
		return nil
	})
	return all
}

// node is a part of a parsed expression.
type node struct {
	Type     string
	Name     string
	Matchers []struct{ Name, Value, Type string }
	Grouping []string
	Matching *struct{ Labels, Include []string }
	Expr     *node
	LHS, RHS *node
	Args     []node
}

// walk looks at each selector of an expression and returns their metrics. The labels that
// something is grouped or joined by have to be on one of the selectors below that.
func (w watching) walk(n *node, where string) (metrics []string) {
	if n == nil {
		return nil
	}
	for _, below := range append([]*node{n.Expr, n.LHS, n.RHS}, pointers(n.Args)...) {
		metrics = append(metrics, w.walk(below, where)...)
	}
	if n.Type == "vectorSelector" || n.Type == "matrixSelector" {
		w.selects(n, where)
		return append(metrics, n.Name)
	}
	labels := n.Grouping
	if n.Matching != nil {
		labels = slices.Concat(labels, n.Matching.Labels, n.Matching.Include)
	}
	for _, label := range labels {
		if !slices.ContainsFunc(metrics, func(metric string) bool { return w.has(metric, label) }) {
			w.t.Errorf("%s: none of %v has the label %s", where, metrics, label)
		}
	}
	return metrics
}

func pointers(nodes []node) (all []*node) {
	for i := range nodes {
		all = append(all, &nodes[i])
	}
	return all
}

// ofTarget are the labels that Prometheus adds.
var ofTarget = []string{"cluster", "instance", "job"}

func (w watching) has(metric, label string) bool {
	if slices.Contains(ofTarget, label) {
		return true
	}
	found, err := w.prometheus.Query(w.t.Context(), fmt.Sprintf("count(last_over_time(%s{%s!=\"\"}[5m]))", metric, label))
	return err == nil && len(found) > 0
}

// selects holds that a selector finds something, and that its labels are there.
func (w watching) selects(n *node, where string) {
	harness.Eventually(w.t, 2*patient, func(ctx context.Context) error {
		var matchers []string
		for _, m := range n.Matchers {
			if m.Name == "__name__" {
				continue
			}
			if !w.has(n.Name, m.Name) {
				return fmt.Errorf("%s: %s has no label %s", where, n.Name, m.Name)
			}
			matchers = append(matchers, fmt.Sprintf("%s%s%q", m.Name, m.Type, m.Value))
		}
		found, err := w.prometheus.Query(ctx, fmt.Sprintf("count(last_over_time(%s{%s}[5m]))", n.Name, strings.Join(matchers, ",")))
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("%s: nothing is %s{%s}", where, n.Name, strings.Join(matchers, ","))
		}
		return err
	})
}

// isServed holds that all that an expression names is served.
func (w watching) isServed(where, expression string) {
	w.t.Helper()
	var parsed node
	if err := w.prometheus.Ask(w.t.Context(), "parse_query", url.Values{"query": {expression}}, &parsed); err != nil {
		w.t.Fatal(err)
	}
	if metrics := w.walk(&parsed, where); len(metrics) == 0 {
		w.t.Errorf("%s: no metric was found in %s", where, expression)
	}
}

var inLegend = regexp.MustCompile(`\{\{(\w+)\}\}`)

// isShown holds that a panel has something to show, with the labels of its legend.
func (w watching) isShown(where, expression, legend string) {
	w.t.Helper()
	w.isServed(where, expression)
	harness.Eventually(w.t, patient, func(ctx context.Context) error {
		found, err := w.prometheus.Query(ctx, expression)
		if err != nil || len(found) == 0 {
			return fmt.Errorf("%s shows nothing: %s: %w", where, expression, err)
		}
		for _, label := range inLegend.FindAllStringSubmatch(legend, -1) {
			if !slices.ContainsFunc(found, func(s harness.Series) bool { return s[label[1]] != "" }) {
				return fmt.Errorf("%s: nothing has the label %s of its legend: %v", where, label[1], found)
			}
		}
		return nil
	})
}

// alerts are the clusters for which an alert is in a state.
func (w watching) alerts(ctx context.Context, name, state string) (clusters []string, err error) {
	found, err := w.prometheus.Query(ctx, fmt.Sprintf("ALERTS{alertname=%q, alertstate=%q}", name, state))
	for _, s := range found {
		clusters = append(clusters, s["cluster"])
	}
	return clusters, err
}

func (w watching) fires(name, cluster string) {
	w.t.Helper()
	harness.Eventually(w.t, 3*patient, func(ctx context.Context) error {
		clusters, err := w.alerts(ctx, name, "firing")
		if err == nil && !slices.Contains(clusters, cluster) {
			err = fmt.Errorf("%s fires for %v", name, clusters)
		}
		return err
	})
}

func (w watching) rests(name, cluster string) {
	w.t.Helper()
	for _, state := range []string{"pending", "firing"} {
		if clusters, err := w.alerts(w.t.Context(), name, state); err != nil || slices.Contains(clusters, cluster) {
			w.t.Errorf("%s is %s for %v, %v", name, state, clusters, err)
		}
	}
}

type panelOfDashboard struct {
	Title   string
	Targets []struct{ Expr, LegendFormat string }
}

func dashboard(t *testing.T, root string, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "build/monitoring/dashboard.json"))
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func panelsOf(t *testing.T, root string) []panelOfDashboard {
	t.Helper()
	var d struct{ Panels []panelOfDashboard }
	dashboard(t, root, &d)
	if len(d.Panels) < 10 {
		t.Fatalf("the dashboard has %d panels", len(d.Panels))
	}
	return d.Panels
}

var labelValues = regexp.MustCompile(`^label_values\((\w+)(\{.*\})?, (\w+)\)$`)

// variablesAreServed looks at the metrics and labels that the choices come from.
func (w watching) variablesAreServed(root string) {
	w.t.Helper()
	var d struct {
		Templating struct {
			List []struct{ Name, Type, Definition string }
		}
	}
	dashboard(w.t, root, &d)
	for _, variable := range d.Templating.List {
		if variable.Type != "query" {
			continue
		}
		parts := labelValues.FindStringSubmatch(filled.Replace(variable.Definition))
		if parts == nil {
			w.t.Errorf("%s is made of %s", variable.Name, variable.Definition)
			continue
		}
		found, err := w.prometheus.Query(w.t.Context(), fmt.Sprintf("count by (%s) (%s%s)", parts[3], parts[1], parts[2]))
		if err != nil || len(found) == 0 || found[0][parts[3]] == "" {
			w.t.Errorf("there is no choice of %s: %v, %v", variable.Name, found, err)
		}
	}
}
