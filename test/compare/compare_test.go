package compare

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
	"github.com/kube-kcm/kube-controller-manager/test/scenarios"
)

var (
	binaryFlag = flag.String("binary", os.Getenv("KCM_BINARY"), "our controller manager; without it, _output/bin/kube-controller-manager")
	storyFlag  = flag.String("story", "", "glob of the stories to compare; all without it")
	lanesFlag  = flag.Int("lanes", 2, "how many pairs of control planes play stories side by side")
	playsFlag  = flag.Int("plays", 3, "how often to play a story that differs; only what differs every time is a finding")
	outFlag    = flag.String("out", "", "directory of the report; without it, _output/compare")
)

// setting is what the tests of this package have in common.
type setting struct {
	root, ours, reference string
	accepted              Accepted
}

func prepare(t *testing.T) setting {
	t.Helper()
	tools, err := harness.FindTools()
	if err != nil {
		t.Fatal(err)
	}
	root, err := harness.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	s := setting{root: root, ours: *binaryFlag, reference: tools.ReferenceManager}
	if s.ours == "" {
		s.ours = filepath.Join(root, "_output", "bin", "kube-controller-manager")
	}
	content, err := os.ReadFile("accepted.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if s.accepted, err = ParseAccepted(content); err != nil {
		t.Fatal(err)
	}
	return s
}

// whole is the report of both tests.
var whole struct {
	sync.Mutex
	Report
}

// TestStories plays every story under both binaries.
func TestStories(t *testing.T) {
	s := prepare(t)
	stories, err := scenarios.Load(filepath.Join(s.root, "test", "scenarios"))
	if err != nil {
		t.Fatal(err)
	}
	var chosen []*scenarios.Story
	for _, story := range stories {
		if ok, err := filepath.Match(*storyFlag, story.Name); err != nil {
			t.Fatal(err)
		} else if ok || *storyFlag == "" {
			chosen = append(chosen, story)
		}
	}
	work := make(chan []*scenarios.Story)
	var lanes sync.WaitGroup
	for range *lanesFlag {
		pair := sync.OnceValue(func() *pair { return newPair(t, s) })
		lanes.Go(func() {
			for group := range work {
				for _, story := range group {
					t.Run(story.Name, func(t *testing.T) { pair().compare(t, s, story) })
				}
			}
		})
	}
	for _, group := range scenarios.Groups(chosen) {
		work <- group
	}
	close(work)
	lanes.Wait()
	if len(whole.Results) == len(stories) {
		whole.Totals = Totals(whole.Results)
		if n := s.accepted.Explain(whole.Totals); n > 0 {
			t.Errorf("%d unexplained differences in all stories together\n%s", n, unexplained(whole.Totals))
		}
		for _, a := range s.accepted.Stale() {
			if a.Story != staticStory {
				whole.Stale = append(whole.Stale, a)
			}
		}
	}
	whole.write(t, s)
}

// write puts the report where a reader finds it.
func (r *Report) write(t *testing.T, s setting) {
	directory := *outFlag
	if directory == "" {
		directory = filepath.Join(s.root, "_output", "compare")
	}
	encoded, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(directory, 0o750); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"report.json": encoded, "report.md": []byte(r.Markdown()), "summary.txt": []byte(r.Summary())} {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o600); err != nil {
			t.Error(err)
		}
	}
	fmt.Print(r.Summary())
}

// pair is a control plane for each binary.
type pair struct {
	stages [2]*scenarios.Stage
	plays  int
}

func newPair(t *testing.T, s setting) *pair {
	return &pair{stages: [2]*scenarios.Stage{scenarios.NewStage(t, s.reference), scenarios.NewStage(t, s.ours)}}
}

func (p *pair) compare(t *testing.T, s setting, story *scenarios.Story) {
	begin := time.Now()
	result := p.play(t, story)
	for range *playsFlag - 1 {
		if s.accepted.Explain(result.Findings) == 0 {
			break
		}
		again := p.play(t, story)
		confirmed, passing := Confirm(result.Findings, again.Findings)
		result.Findings, result.Passing = confirmed, append(result.Passing, passing...)
	}
	result.Seconds = time.Since(begin).Seconds()
	if n := s.accepted.Explain(result.Findings); n > 0 {
		t.Errorf("%d unexplained differences from the reference\n%s", n, unexplained(result.Findings))
	}
	t.Logf("%s: %s", result.Verdict(), result.writesLine())
	whole.Lock()
	defer whole.Unlock()
	whole.Results = append(whole.Results, result)
}

// play runs the story under both binaries at the same time, in namespaces of
// the same name, so that what is hashed is the same too.
func (p *pair) play(t *testing.T, story *scenarios.Story) Result {
	p.plays++
	namespace := fmt.Sprintf("%.32s-%04x", story.Name, p.plays)
	var records [2]*Record
	var sides sync.WaitGroup
	for i, stage := range p.stages {
		sides.Go(func() {
			l := &listener{TB: t}
			take := stage.Play(l, story, namespace)
			records[i] = NewRecord(namespace, plain(t, take.Objects), take.Requests, l.failures)
			records[i].Killed = slices.ContainsFunc(story.Steps, func(s scenarios.Step) bool { return s.Command == "restart" })
		})
	}
	sides.Wait()
	return Result{Story: story.Name, Reference: records[0], Ours: records[1], Findings: Compare(story.Name, records[0], records[1])}
}

// plain decodes objects anew, so that numbers are as in the audit log.
func plain(t *testing.T, objects []unstructured.Unstructured) []map[string]any {
	out := make([]map[string]any, 0, len(objects))
	for i := range objects {
		encoded, err := objects[i].MarshalJSON()
		if err != nil {
			t.Error(err)
		}
		out = append(out, decoded(encoded))
	}
	return out
}

// listener takes the failures of a story as findings.
type listener struct {
	testing.TB
	failures []string
}

func (l *listener) Errorf(format string, args ...any) {
	l.failures = append(l.failures, strings.TrimSpace(fmt.Sprintf(format, args...)))
}

func (l *listener) Error(args ...any) { l.Errorf("%s", fmt.Sprint(args...)) }

// TestStatic compares what needs no story, and the metrics of leaders that
// have played some.
func TestStatic(t *testing.T) {
	s := prepare(t)
	var findings []Finding
	table := func(kind string, theirs, ours map[string]string) {
		if len(theirs) == 0 {
			t.Errorf("%s: the reference shows nothing", kind)
		}
		findings = append(findings, CompareTables(kind, theirs, ours)...)
	}
	table(KindFlag, ParseHelp(run(t, s.reference, "--help")), ParseHelp(run(t, s.ours, "--help")))

	sides := newPair(t, s)
	stories, err := scenarios.Load(filepath.Join(s.root, "test", "scenarios"))
	if err != nil {
		t.Fatal(err)
	}
	for _, story := range stories {
		if slices.Contains(leaderStories, story.Name) {
			story.Setup = scenarios.Setup{Flags: []string{"--leader-elect=true"}}
			result := sides.play(t, story)
			for _, f := range result.Findings {
				if f.Kind == KindOutcome {
					t.Errorf("%s %s: %s", story.Name, f.Subject, f.Detail)
				}
			}
		}
	}
	var metrics, health, configz [2]map[string]string
	for i, stage := range sides.stages {
		if stage.Manager() == nil {
			t.Fatal("no story has started a manager")
		}
		metrics[i] = ParseMetrics(get(t, stage.Manager(), "/metrics"))
		health[i] = ParseHealth(get(t, stage.Manager(), "/healthz?verbose"))
		if configz[i], err = ParseConfigz(levelPaths.ReplaceAllString(get(t, stage.Manager(), "/configz"), "<path>")); err != nil {
			t.Error(err)
		}
	}
	table(KindMetric, metrics[0], metrics[1])
	table(KindHealth, health[0], health[1])
	table(KindConfigz, configz[0], configz[1])
	if n := s.accepted.Explain(findings); n > 0 {
		t.Errorf("%d unexplained differences from the reference\n%s", n, unexplained(findings))
	}
	whole.Static = findings
	for _, a := range s.accepted.Stale() {
		if a.Story == staticStory {
			whole.Stale = append(whole.Stale, a)
		}
	}
	whole.write(t, s)
}

// leaderStories bring the metrics of workloads, services and namespaces forth.
var leaderStories = []string{"deployment-rolling", "endpoints-follow-pods", "endpointslice-follow-pods", "namespace-emptied", "replicationcontroller-scale"}

// levelPaths finds what a control plane of a test has for itself.
var levelPaths = regexp.MustCompile(`/tmp/[^"]+|127\.0\.0\.1:\d+`)

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
