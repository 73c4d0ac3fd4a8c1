package compare

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
	"github.com/kube-kcm/kube-controller-manager/test/scenarios"
)

var (
	// leading makes a manager show what a leader shows.
	leading = []string{"--leader-elect=true"}
	// hasty lets autoscalers act within seconds.
	hasty = []string{"--horizontal-pod-autoscaler-sync-period=1s", "--horizontal-pod-autoscaler-cpu-initialization-period=0s",
		"--horizontal-pod-autoscaler-initial-readiness-delay=0s", "--horizontal-pod-autoscaler-downscale-stabilization=0s"}
)

// leaderStories bring forth the metrics of workloads, services, namespaces, nodes and autoscalers.
var leaderStories = []string{"deployment-rolling", "endpoints-follow-pods", "endpointslice-follow-pods", "namespace-emptied", "replicationcontroller-scale", "nodelifecycle-silent",
	"hpa-cpu", "statefulset-rolling", "daemonset-rolling", "job-failure-policy", "job-max-failed-indexes"}

// gatedStories bring forth controllers that are off by default.
var gatedStories = []string{"storageversionmigrator-configmaps", "resourcepool-answered"}

// queueNames is the label with the names of all queues.
const queueNames = "workqueue_depth{name}"

// levelPaths finds what a control plane of a test has for itself.
var levelPaths = regexp.MustCompile(`/tmp/[^"]+|127\.0\.0\.1:\d+`)

// TestStatic compares what needs no story. Both binaries run as shipped.
func TestStatic(t *testing.T) {
	s := prepare(t)
	c := &static{T: t, sides: newPair(t, s, nil)}
	c.table(KindFlag, ParseHelp(run(t, s.reference, "--help")), ParseHelp(run(t, s.ours, "--help")))

	c.play(t, s, "serviceaccount-new-namespace", scenarios.Setup{Flags: leading})
	var configz [2]map[string]string
	for i, manager := range c.both {
		var err error
		if configz[i], err = ParseConfigz(levelPaths.ReplaceAllString(get(t, manager, "/configz"), "<path>")); err != nil {
			t.Error(err)
		}
	}
	c.table(KindConfigz, configz[0], configz[1])

	for _, name := range leaderStories {
		c.play(t, s, name, scenarios.Setup{Flags: slices.Concat(leading, hasty)})
	}
	theirs, ours := get(t, c.both[0], "/metrics"), get(t, c.both[1], "/metrics")
	c.table(KindMetric, ParseMetrics(theirs), ParseMetrics(ours))
	c.findings = append(c.findings, CompareLabels(ParseLabels(theirs), ParseLabels(ours))...)
	c.table(KindHealth, ParseHealth(get(t, c.both[0], "/healthz?verbose")), ParseHealth(get(t, c.both[1], "/healthz?verbose")))

	for _, name := range gatedStories {
		t.Run(name, func(t *testing.T) { c.queues(t, s, name) })
	}

	if n := s.accepted.Explain(c.findings); n > 0 && !*selfFlag {
		t.Errorf("%d unexplained differences from the reference\n%s", n, unexplained(c.findings))
	}
	whole.Static = c.findings
	whole.judgeStale(t, s, func(a *Acceptance) bool { return a.Story == staticStory })
	whole.write(t, s)
}

// static is one static comparison.
type static struct {
	*testing.T
	sides *pair
	// both are the managers of the last story.
	both     [2]*harness.Manager
	findings []Finding
}

func (c *static) table(kind string, theirs, ours map[string]string) {
	if len(theirs) == 0 {
		c.Errorf("%s: the reference shows nothing", kind)
	}
	c.findings = append(c.findings, CompareTables(kind, theirs, ours)...)
}

// play puts a story under both binaries, which run as the setup says.
func (c *static) play(t *testing.T, s setting, name string, setup scenarios.Setup) {
	t.Helper()
	story := parsed(t, s, name)
	story.Setup = setup
	played := c.sides.play(t, story)
	for _, f := range Compare(name, played.Reference, played.Ours) {
		if f.Kind == KindOutcome {
			t.Errorf("%s %s: %s", name, f.Subject, f.Detail)
		}
	}
	for i, stage := range c.sides.stages {
		if c.both[i] = stage.Manager(); c.both[i] == nil {
			t.Fatal("no manager has started")
		}
	}
}

// queues compares the queues that there are with the gates of a story.
func (c *static) queues(t *testing.T, s setting, name string) {
	story := parsed(t, s, name)
	c.sides = newPair(t, s, story.APIServer)
	c.play(t, s, name, scenarios.Setup{Flags: slices.Concat(leading, story.Setup.Flags)})
	var names [2]map[string]string
	for i, manager := range c.both {
		names[i] = map[string]string{queueNames: ParseLabels(get(t, manager, "/metrics"))[queueNames]}
	}
	for _, f := range CompareLabels(names[0], names[1]) {
		if !slices.ContainsFunc(c.findings, func(seen Finding) bool { return seen.key() == f.key() }) {
			c.findings = append(c.findings, f)
		}
	}
}

func parsed(t *testing.T, s setting, name string) *scenarios.Story {
	t.Helper()
	story, err := scenarios.ParseFile(filepath.Join(s.root, "test", "scenarios", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	return story
}

func run(t *testing.T, binary string, args ...string) string {
	t.Helper()
	out, err := exec.Command(binary, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("run %s: %v\n%s", filepath.Base(binary), err, out)
	}
	return string(out)
}

func get(t *testing.T, manager *harness.Manager, path string) string {
	t.Helper()
	code, body, err := manager.GetAsAdmin(path)
	if err != nil || code != http.StatusOK {
		t.Fatalf("get %s: %d %v", path, code, err)
	}
	return body
}
