package compare

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
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
	storyFlag  = flag.String("story", "", "globs of the stories to compare, separated by commas; all without it")
	lanesFlag  = flag.Int("lanes", 2, "how many pairs of control planes play stories side by side")
	playsFlag  = flag.Int("plays", 3, "how often to play a story that differs or fails under the reference")
	aloneFlag  = flag.Int("alone", 6, "how often to play a story that still differs under the reference alone, to see what is chance")
	selfFlag   = flag.Bool("self", false, "play the reference against itself, each story -plays times: what differs is chance")
	onceFlag   = flag.Bool("once", true, "what differs in one play of several fails too; false: it is only in the report")
	outFlag    = flag.String("out", "", "directory of the report; without it, _output/compare")
)

// setting is what the tests of this package have in common.
type setting struct {
	root, ours, reference string
	accepted              Accepted
}

func prepare(t *testing.T) setting {
	t.Helper()
	rivals, err := harness.FindRivals(*binaryFlag)
	if err != nil {
		t.Fatal(err)
	}
	s := setting{root: rivals.Root, ours: rivals.Ours, reference: rivals.Reference}
	if *selfFlag {
		s.ours = s.reference
	}
	if s.accepted, err = ReadAccepted("accepted.yaml"); err != nil {
		t.Fatal(err)
	}
	return s
}

// whole is the report of both tests, and the roles that it needs.
var whole struct {
	sync.Mutex
	Report
	roles Roles
}

// TestStories plays every story under both binaries.
func TestStories(t *testing.T) {
	s := prepare(t)
	stories, err := scenarios.Load(filepath.Join(s.root, "test", "scenarios"))
	if err != nil {
		t.Fatal(err)
	}
	stories = slices.DeleteFunc(stories, func(s *scenarios.Story) bool { return s.Ours })
	chosen := choose(t, stories, *storyFlag)
	work := make(chan []*scenarios.Story)
	var lanes sync.WaitGroup
	for range *lanesFlag {
		shared := sync.OnceValue(func() *pair { return newPair(t, s, nil) })
		lanes.Go(func() {
			for group := range work {
				compareGroup(t, s, group, shared)
			}
		})
	}
	for _, group := range scenarios.Groups(chosen) {
		work <- group
	}
	close(work)
	lanes.Wait()
	whole.judgeAll(t, s, len(whole.Results) == len(stories))
	whole.write(t, s)
}

// compareGroup plays a group, with API servers of its own if it asks for that.
func compareGroup(t *testing.T, s setting, group []*scenarios.Story, ready func() *pair) {
	if flags := group[0].APIServer; len(flags) > 0 {
		scope := harness.NewScope(t)
		defer scope.End()
		ready = sync.OnceValue(func() *pair { return newPair(scope, s, flags) })
	}
	for _, story := range group {
		t.Run(story.Name, func(t *testing.T) { ready().compare(t, s, story) })
	}
}

// judgeAll looks at all stories together. What needs every story to be there is
// left out when only some were chosen.
func (r *Report) judgeAll(t *testing.T, s setting, complete bool) {
	r.Self = *selfFlag
	r.Uses, r.Others = whole.roles.Uses(r.Results)
	r.Totals = Exceeds(r.Uses)
	if complete {
		r.Totals = slices.Concat(r.Totals, Totals(r.Results), Reasons(r.Results), Conditions(r.Results))
	}
	if n := s.accepted.Explain(r.Totals); n > 0 && !r.Self {
		t.Errorf("%d unexplained differences in all stories together\n%s", n, unexplained(r.Totals))
	}
	if complete {
		r.judgeStale(t, s, func(a *Acceptance) bool { return a.Story != staticStory })
	}
}

// judgeStale wants a decision about the entries that explain nothing.
func (r *Report) judgeStale(t *testing.T, s setting, concerned func(*Acceptance) bool) {
	for _, a := range s.accepted.Stale() {
		if concerned(a) && !r.Self {
			r.Stale = append(r.Stale, a)
			t.Errorf("an accepted difference explains nothing: %s", a)
		}
	}
}

// choose takes the stories that one of the globs finds.
func choose(t *testing.T, stories []*scenarios.Story, globs string) []*scenarios.Story {
	if globs == "" {
		return stories
	}
	var chosen []*scenarios.Story
	for glob := range strings.SplitSeq(globs, ",") {
		found := false
		for _, story := range stories {
			ok, err := filepath.Match(glob, story.Name)
			if err != nil {
				t.Fatal(err)
			}
			found = found || ok
			if ok && !slices.Contains(chosen, story) {
				chosen = append(chosen, story)
			}
		}
		if !found {
			t.Fatalf("-story: there is no story %q", glob)
		}
	}
	return chosen
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

func newPair(t testing.TB, s setting, apiServerFlags []string) *pair {
	p := &pair{stages: [2]*scenarios.Stage{
		scenarios.NewStage(t, s.reference, apiServerFlags), scenarios.NewStage(t, s.ours, apiServerFlags)}}
	roles, err := p.stages[0].Roles(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	whole.Lock()
	defer whole.Unlock()
	whole.roles = whole.roles.and(roles)
	return p
}

func (p *pair) compare(t *testing.T, s setting, story *scenarios.Story) {
	begin := time.Now()
	var result Result
	var plays []Play
	for range max(1, *playsFlag) {
		plays = append(plays, p.play(t, story))
		if result = Judge(story.Name, plays); *selfFlag {
			result.Findings, result.Passing, result.Chance = Judge(story.Name, everyPair(plays)).Findings, nil, nil
		}
		s.accepted.Explain(result.Findings)
		s.accepted.Explain(result.Passing)
		if result.open()+len(result.Chance)+result.ReferenceFailed == 0 && !*selfFlag {
			break
		}
	}
	if !*selfFlag {
		result = p.holdAgainstChance(t, s, story, plays, result)
	}
	result.Seconds = time.Since(begin).Seconds()
	failing := result.open() > 0
	if !*onceFlag {
		failing = len(result.Findings) > explained(result.Findings)
	}
	if failing && !*selfFlag {
		t.Errorf("%d unexplained differences from the reference\n%s", result.open(), unexplained(slices.Concat(result.Findings, result.Passing)))
	}
	t.Logf("%s: %s", result.Verdict(), result.writesLine())
	whole.Lock()
	defer whole.Unlock()
	whole.Results = append(whole.Results, result)
}

// holdAgainstChance plays a story that differs under the reference alone, until nothing
// is open or -alone plays have shown no more.
func (p *pair) holdAgainstChance(t *testing.T, s setting, story *scenarios.Story, plays []Play, result Result) Result {
	var alone []*Record
	for result.open() > 0 && result.ReferenceFailed == 0 && len(alone) < *aloneFlag {
		alone = append(alone, p.record(t, 0, story, p.namespace(story)))
		result = Judge(story.Name, plays, alone...)
		s.accepted.Explain(result.Findings)
		s.accepted.Explain(result.Passing)
	}
	return result
}

// play runs the story under both binaries at the same time, in namespaces of
// the same name, so that what is hashed is the same too.
func (p *pair) play(t *testing.T, story *scenarios.Story) Play {
	namespace := p.namespace(story)
	var records [2]*Record
	var sides sync.WaitGroup
	for i := range p.stages {
		sides.Go(func() { records[i] = p.record(t, i, story, namespace) })
	}
	sides.Wait()
	return Play{Reference: records[0], Ours: records[1]}
}

// namespace returns one that no play has had.
func (p *pair) namespace(story *scenarios.Story) string {
	p.plays++
	return fmt.Sprintf("%.32s-%04x", story.Name, p.plays)
}

// record runs the story under one binary.
func (p *pair) record(t *testing.T, side int, story *scenarios.Story, namespace string) *Record {
	l := &listener{TB: t}
	take := p.stages[side].Play(l, story, namespace)
	record := NewRecord(namespace, plain(t, take.Objects), take.Requests, l.failures)
	record.Waits = take.Waits
	record.Killed = slices.ContainsFunc(story.Steps, func(s scenarios.Step) bool { return s.Command == "restart" })
	return record
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
