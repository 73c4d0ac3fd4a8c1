package integration

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// scrape reads /metrics as Prometheus does.
func scrape(m *harness.Manager) (map[string]*dto.MetricFamily, string, error) {
	code, text, err := m.Get("/metrics")
	if err != nil {
		return nil, "", err
	}
	if code != http.StatusOK {
		return nil, "", fmt.Errorf("/metrics says %d", code)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	return families, text, err
}

// inTrouble is a manager in a cluster where all that metrics are about has happened: a
// Deployment beyond its quota, and a kind that cannot be read, with a quota on it.
func inTrouble(t *testing.T, args ...string) (*harness.ControlPlane, *harness.Manager) {
	t.Helper()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client, custom := clientOf(t, cp), dynamic.NewForConfigOrDie(cp.Admin)
	manager := cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: args})
	kubelet := harness.StartKubelet(t, cp.Admin)
	if err := kubelet.NodeReady(t.Context(), "node", "zone"); err != nil {
		t.Fatal(err)
	}
	defineThings(t, custom)
	addQuota(t, client, "default", thingsCount)
	uses(t, client, "default", thingsCount, 1)
	convertThings(t, custom, map[string]any{
		"conversion": map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"service": map[string]any{"namespace": "default", "name": "nobody"}}}},
		"versions": []any{version("v1", false), version("v2", true)},
	})
	if err := manager.Restart(); err != nil { // what is cached goes on without the webhook
		t.Fatal(err)
	}
	acts(t, client, "shop", patient)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}}}
	if _, err := client.CoreV1().ResourceQuotas("shop").Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	uses(t, client, "shop", corev1.ResourcePods, 0)
	labels := map[string]string{"app": "web"}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](5), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: heldPod("").Spec},
	}}
	if _, err := client.AppsV1().Deployments("shop").Create(t.Context(), web, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return cp, manager
}

var documented = regexp.MustCompile("(?m)^\\| `(kcm_[a-z_]+)` \\| (counter|gauge) \\| ([^|]*)\\| ([^|]*) \\|")

// documentedMetrics are the rows of the page: the type and the sorted labels, by name, and
// those that are served at any time.
func documentedMetrics(t *testing.T) (rows map[string]string, always []string) {
	t.Helper()
	root, err := harness.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/operate/metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows = map[string]string{}
	for _, row := range documented.FindAllStringSubmatch(string(page), -1) {
		labels := strings.FieldsFunc(row[3], func(r rune) bool { return strings.ContainsRune(" `,", r) })
		slices.Sort(labels)
		rows[row[1]] = row[2] + " " + strings.Join(labels, ",")
		if row[4] == "always" {
			always = append(always, row[1])
		}
	}
	return rows, always
}

// shape is the type of a metric, and the labels that any of its series has.
func shape(family *dto.MetricFamily) string {
	labels := map[string]bool{}
	for _, metric := range family.GetMetric() {
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = true
		}
	}
	return strings.ToLower(family.GetType().String()) + " " + strings.Join(slices.Sorted(maps.Keys(labels)), ",")
}

// TestMetricsAreAsDocumented holds the page to what is served, in a cluster that gives
// occasion to all of it.
func TestMetricsAreAsDocumented(t *testing.T) {
	t.Parallel()
	_, manager := inTrouble(t)
	want, always := documentedMetrics(t)
	if len(always) < 10 {
		t.Fatal("the page has no table")
	}
	seen := map[string]string{}
	var served map[string]*dto.MetricFamily
	harness.Eventually(t, 2*patient, func(context.Context) error {
		var err error
		if served, _, err = scrape(manager); err != nil {
			return err
		}
		for name, family := range served {
			if strings.HasPrefix(name, "kcm_") {
				seen[name] = shape(family)
			}
		}
		for _, name := range always {
			if seen[name] == "" {
				return fmt.Errorf("%s is not served", name)
			}
		}
		return nil
	})
	for name, is := range seen {
		if want[name] != is {
			t.Errorf("%s is served as %q, and documented as %q", name, is, want[name])
		}
	}
	isWatched(t, manager)
	atMostTwelve(t, served)
}

// isWatched looks at what the Deployment beyond its quota leaves in the metrics.
func isWatched(t *testing.T, manager *harness.Manager) {
	t.Helper()
	harness.Eventually(t, patient, func(context.Context) error {
		_, text, err := scrape(manager)
		if err != nil {
			return err
		}
		for _, line := range []string{
			`(?m)^kcm_failing_keys\{controller="replicaset-controller"\} 1$`,
			`(?m)^kcm_oldest_failing_seconds\{controller="replicaset-controller"\} [0-9.]*[1-9]`,
			`(?m)^kcm_reconciles_total\{controller="replicaset-controller",result="error"\} [1-9]`,
			`(?m)^kcm_reconcile_seconds_total\{controller="replicaset-controller"\} [0-9.e-]*[1-9]`,
			`(?m)^kcm_writes_total\{controller="deployment-controller",verb="create"\} 1$`,
			`(?m)^kcm_controller_state\{controller="replicaset-controller",state="started"\} 1$`,
			`(?m)^kcm_controller_state\{controller="service-lb-controller",state="skipped"\} 1$`,
			`(?m)^kcm_leader 1$`,
			`(?m)^kcm_frozen_quotas\{group="quota.example.com",resource="things"\} 1$`,
			`(?m)^kcm_monitored_resource_unavailable\{group="quota.example.com",resource="things",version="v[12]"\} 1$`,
		} {
			if !regexp.MustCompile(line).MatchString(text) {
				return fmt.Errorf("no line is as %s", line)
			}
		}
		return nil
	})
}

// atMostTwelve counts the series of each controller.
func atMostTwelve(t *testing.T, served map[string]*dto.MetricFamily) {
	t.Helper()
	series := map[string]int{}
	for name, family := range served {
		if !strings.HasPrefix(name, "kcm_") {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "controller" {
					series[label.GetValue()]++
				}
			}
		}
	}
	if len(series) < 40 {
		t.Errorf("only %d controllers are shown", len(series))
	}
	for controller, n := range series {
		if n > 12 {
			t.Errorf("%s has %d series", controller, n)
		}
	}
}
