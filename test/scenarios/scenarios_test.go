package scenarios

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

var (
	binaryFlag    = flag.String("binary", os.Getenv("KCM_BINARY"), "the controller manager to test; without it, one is built with the race detector")
	referenceFlag = flag.Bool("reference", false, "run the stories under the reference binary")
	lanesFlag     = flag.Int("lanes", 6, "how many control planes run stories side by side")
	reportFlag    = flag.String("report", "", "write a table of the stories to this file: name, result, seconds, writes of the controllers")
)

// TestScenarios runs every story of this directory as a subtest.
func TestScenarios(t *testing.T) {
	stories := load(t)
	tools, err := harness.FindTools()
	if err != nil {
		t.Fatal(err)
	}
	binary := *binaryFlag
	switch {
	case *referenceFlag:
		binary = tools.ReferenceManager
		stories = slices.DeleteFunc(stories, func(s *Story) bool { return s.Ours })
	case binary == "":
		binary = build(t)
	}
	r := &report{}
	work := make(chan []*Story)
	var lanes sync.WaitGroup
	for range *lanesFlag {
		lanes.Go(func() {
			// Starting a control plane is left to the first story, as the
			// command line may select none for this lane.
			l := lane{binary: binary}
			l.suite = sync.OnceValue(func() *suite { return l.start(t, nil) })
			for stories := range work {
				l.run(t, stories, r)
			}
		})
	}
	for _, stories := range Groups(stories) {
		work <- stories
	}
	close(work)
	lanes.Wait()
	t.Logf("story, result, seconds, writes\n%s", r.lines.String())
	if *reportFlag != "" {
		if err := os.WriteFile(*reportFlag, []byte(r.lines.String()), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// lane runs stories one after the other on a control plane of its own.
type lane struct {
	binary string
	suite  func() *suite
}

func (l lane) start(t testing.TB, apiServerFlags []string) *suite {
	return newSuite(t, l.binary, !*referenceFlag, apiServerFlags)
}

// run runs a group. One with an API server of its own has it while it runs.
func (l lane) run(t *testing.T, stories []*Story, r *report) {
	ready := l.suite
	if flags := stories[0].APIServer; len(flags) > 0 {
		scope := harness.NewScope(t)
		defer scope.End()
		ready = sync.OnceValue(func() *suite { return l.start(scope, flags) })
	}
	for _, story := range stories {
		t.Run(story.Name, func(t *testing.T) {
			s := ready()
			begin := time.Now()
			writes := s.play(t, story)
			r.add(story.Name, !t.Failed(), time.Since(begin), writes)
		})
	}
}

// report is the table of the stories.
type report struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (r *report) add(name string, ok bool, took time.Duration, writes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := map[bool]string{true: "ok", false: "failed"}[ok]
	fmt.Fprintf(&r.lines, "%s\t%s\t%.1f\t%d\n", name, result, took.Seconds(), writes)
}

// load parses all stories. One that cannot be read is a failed subtest.
func load(t *testing.T) []*Story {
	paths, err := filepath.Glob("*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var stories []*Story
	for _, path := range paths {
		story, err := ParseFile(path)
		if err != nil {
			t.Run(strings.TrimSuffix(path, ".txtar"), func(t *testing.T) { t.Error(err) })
			continue
		}
		stories = append(stories, story)
	}
	return stories
}

// build makes the binary with the race detector.
func build(t *testing.T) string {
	root, err := harness.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(root, "_output", "bin", "kube-controller-manager-race")
	command := exec.Command("go", "build", "-race", "-o", binary, "./cmd/kube-controller-manager")
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("build the controller manager: %v\n%s", err, out)
	}
	return binary
}
