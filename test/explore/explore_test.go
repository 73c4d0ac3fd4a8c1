package explore

import (
	"context"
	"flag"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

var (
	binaryFlag   = flag.String("binary", os.Getenv("KCM_BINARY"), "our controller manager; without it, _output/bin/kube-controller-manager")
	familiesFlag = flag.String("families", "", "families to explore, separated by commas; all without it")
	forFlag      = flag.Duration("for", 0, "explore for this long")
	seedsFlag    = flag.Int("seeds", 1, "without -for: how many seeds of each family")
	seedFlag     = flag.Int("seed", 1, "the first seed of each family")
	pickFlag     = flag.String("pick", "", "play these seeds alone, such as job-17,hpa-3")
	firstFlag    = flag.Bool("first", false, "end at the first difference")
	lanesFlag    = flag.Int("lanes", 2, "how many pairs of control planes play side by side")
	outFlag      = flag.String("out", "", "directory of the report and the stories; without it, _output/explore")
	storyFlag    = flag.String("story", "", "TestReplay: play this story")
	aloneFlag    = flag.Int("alone", alone, "how often a story that differs is played under the reference alone at most")
	shrinkFlag   = flag.Duration("shrink", shrinkFor, "how long a difference is shrunk at most")
)

func explorer(t *testing.T) *Explorer {
	t.Helper()
	rivals, err := harness.FindRivals(*binaryFlag)
	if err != nil {
		t.Fatal(err)
	}
	// What is meant in a story is meant here, and some more.
	accepted, err := compare.ReadAccepted("../compare/accepted.yaml", "accepted.yaml")
	if err != nil {
		t.Fatal(err)
	}
	e := &Explorer{Reference: rivals.Reference, Ours: rivals.Ours, Accepted: accepted, Out: *outFlag, First: *firstFlag, Alone: *aloneFlag, ShrinkFor: *shrinkFlag}
	if e.Out == "" {
		e.Out = filepath.Join(rivals.Root, "_output", "explore")
	}
	return e
}

func chosen(t *testing.T) []*Family {
	t.Helper()
	var names []string
	if *familiesFlag != "" {
		names = strings.Split(*familiesFlag, ",")
	}
	all, err := Families(names...)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// batch is how many seeds of a family a lane plays in a row: a change of the
// family starts another manager.
const batch = 5

// TestExplore plays seeds, and fails when ours differs from the reference.
func TestExplore(t *testing.T) {
	e := explorer(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if *forFlag > 0 {
		ctx, cancel = context.WithTimeout(ctx, *forFlag)
		defer cancel()
	}
	tasks := make(chan Task)
	all := rounds(t)
	if *pickFlag != "" {
		all = picked(t, *pickFlag)
	}
	go func() {
		defer close(tasks)
		for task := range all {
			select {
			case tasks <- task:
			case <-ctx.Done():
				return
			}
		}
	}()
	if err := e.Explore(ctx, t, *lanesFlag, tasks); err != nil {
		t.Fatal(err)
	}
	t.Log(e.report.Markdown())
	if n := len(e.report.Differences); n > 0 {
		t.Errorf("%d differences; their stories are in %s", n, e.Out)
	}
}

// rounds go over the chosen families again and again, with the next seeds each time.
func rounds(t *testing.T) iter.Seq[Task] {
	t.Helper()
	all := chosen(t)
	return func(yield func(Task) bool) {
		for from := 0; *forFlag > 0 || from < *seedsFlag; from += batch {
			for _, f := range all {
				task := Task{Family: f}
				for i := from; i < from+batch && (*forFlag > 0 || i < *seedsFlag); i++ {
					task.Seeds = append(task.Seeds, *seedFlag+i)
				}
				if !yield(task) {
					return
				}
			}
		}
	}
}

// picked are seeds that are named: family, dash and number, with commas between them.
func picked(t *testing.T, names string) iter.Seq[Task] {
	t.Helper()
	var all []Task
	for name := range strings.SplitSeq(names, ",") {
		family, number, _ := strings.Cut(name, "-")
		seed, err := strconv.Atoi(number)
		if err != nil || families[family] == nil {
			t.Fatalf("-pick: %q is not a family and a seed, such as job-17", name)
		}
		all = append(all, Task{Family: families[family], Seeds: []int{seed}})
	}
	return slices.Values(all)
}

// TestReplay plays one story, such as one that the explorer has written.
func TestReplay(t *testing.T) {
	if *storyFlag == "" {
		return
	}
	e := explorer(t)
	script, err := ReadScript(*storyFlag)
	if err != nil {
		t.Fatal(err)
	}
	f := families[strings.SplitN(script.Family, "-", 2)[0]]
	if f == nil {
		t.Fatalf("the story's name begins with no family: %s", *storyFlag)
	}
	pair := NewPair(t, e.Reference, e.Ours)
	begin := time.Now()
	outcome, err := e.play(t.Context(), t, pair, f, script)
	if err != nil {
		t.Fatal(err)
	}
	verdict, findings, err := e.Judge(t.Context(), t, pair, f, script, outcome)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s in %.0f s, after step %d of %d", verdict, time.Since(begin).Seconds(), outcome.At, len(script.Steps))
	for _, i := range outcome.Refused {
		t.Logf("step %d did nothing: %s", i, script.Steps[i])
	}
	for _, finding := range outcome.Findings {
		if finding.Reason != "" {
			t.Logf("accepted, and not gone on from: %s: %s", finding.Subject, finding.Reason)
		}
	}
	if len(outcome.Findings) > 0 {
		t.Log(outcome.Writes())
	}
	if verdict == Different {
		t.Errorf("%s", Long(findings))
	} else {
		t.Log(Long(findings))
	}
}
