package monitoring

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

const runbooks = "https://github.com/kube-kcm/kube-controller-manager/blob/main/docs/operate/alerts.md#"

// file returns the path of a file of the tree, and what it holds.
func file(t *testing.T, name string) (path string, content []byte) {
	t.Helper()
	root, err := harness.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(root, name)
	if content, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return path, content
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	tools, err := harness.FindTools()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(tools.Dir, "promtool")
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("%v (make tools-monitoring builds it)", err)
	}
	if out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func TestRules(t *testing.T) {
	rules, _ := file(t, "build/monitoring/rules.yaml")
	tests, _ := file(t, "build/monitoring/rules_test.yaml")
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", rules)
	promtool(t, "test", "rules", tests)
}

type rule struct {
	Alert               string
	Labels, Annotations map[string]string
}

type alertTest struct {
	Alertname string
	ExpAlerts []any `json:"exp_alerts"`
}

// TestEachAlertHasATestAndARunbook holds that each is tried as it fires and as it does not.
func TestEachAlertHasATestAndARunbook(t *testing.T) {
	var rules struct{ Groups []struct{ Rules []rule } }
	var tests struct {
		Tests []struct {
			AlertRuleTest []alertTest `json:"alert_rule_test"`
		}
	}
	_, content := file(t, "build/monitoring/rules.yaml")
	if err := yaml.Unmarshal(content, &rules); err != nil {
		t.Fatal(err)
	}
	_, content = file(t, "build/monitoring/rules_test.yaml")
	if err := yaml.Unmarshal(content, &tests); err != nil {
		t.Fatal(err)
	}
	_, page := file(t, "docs/operate/alerts.md")
	fires, rests := map[string]bool{}, map[string]bool{}
	for _, group := range tests.Tests {
		for _, test := range group.AlertRuleTest {
			if len(test.ExpAlerts) > 0 {
				fires[test.Alertname] = true
			} else {
				rests[test.Alertname] = true
			}
		}
	}
	var alerts []string
	for _, group := range rules.Groups {
		for _, r := range group.Rules {
			alerts = append(alerts, r.Alert)
			if !fires[r.Alert] || !rests[r.Alert] {
				t.Errorf("%s is not tried: it fires %v, it rests %v", r.Alert, fires[r.Alert], rests[r.Alert])
			}
			if !strings.Contains(string(page), "\n## "+r.Alert+"\n") || r.Annotations["runbook_url"] != runbooks+strings.ToLower(r.Alert) {
				t.Errorf("%s has no section in the page, or names another: %s", r.Alert, r.Annotations["runbook_url"])
			}
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
				t.Errorf("%s lacks a summary, a description or a severity: %v %v", r.Alert, r.Annotations, r.Labels)
			}
		}
	}
	if len(alerts) < 10 {
		t.Errorf("only %d alerts were found: %v", len(alerts), alerts)
	}
	for _, section := range regexp.MustCompile(`(?m)^## (KCM\w+)$`).FindAllStringSubmatch(string(page), -1) {
		if !slices.Contains(alerts, section[1]) {
			t.Errorf("there is no alert %s, which the page has", section[1])
		}
	}
}

type panel struct {
	ID         int
	Type       string
	Title      string
	Datasource struct{ Type, UID string }
	GridPos    struct{ X, Y, W, H int }
	Targets    []struct{ RefID, Expr string }
}

// TestTheDashboardIsWhole looks at what Grafana would stumble over: panels without a place,
// a name or a source, on top of each other, and variables that do not exist.
func TestTheDashboardIsWhole(t *testing.T) {
	_, content := file(t, "build/monitoring/dashboard.json")
	var dashboard struct {
		Title, UID    string
		SchemaVersion int
		Tags          []string
		Panels        []panel
		Templating    struct{ List []struct{ Name string } }
	}
	if err := json.Unmarshal(content, &dashboard); err != nil {
		t.Fatal(err)
	}
	if dashboard.Title == "" || dashboard.UID == "" || dashboard.SchemaVersion == 0 || !slices.Contains(dashboard.Tags, "kubernetes-mixin") {
		t.Errorf("the dashboard lacks a title, a uid, a version or the tag of the mixin: %q %q %d %v", dashboard.Title, dashboard.UID, dashboard.SchemaVersion, dashboard.Tags)
	}
	known := []string{"__rate_interval"}
	for _, variable := range dashboard.Templating.List {
		known = append(known, variable.Name)
	}
	for _, name := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(string(content), -1) {
		if !slices.Contains(known, name[1]) && name[1] != "__all" {
			t.Errorf("there is no variable %s", name[1])
		}
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range dashboard.Panels {
		if p.ID == 0 || ids[p.ID] || p.Title == "" || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("panel %d, %q: no or a second number, no title, or too wide", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%q lies on %q", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type != "row" && (len(p.Targets) == 0 || p.Datasource.UID != "${datasource}") {
			t.Errorf("%q has no query, or a source of its own", p.Title)
		}
	}
}
