package scenarios

import (
	"slices"
	"strings"
	"testing"
)

// A never line says nothing when the controller is dead or late. So each has a
// canary: something the controller does after the last command, which is waited
// for before the line. Where a line says "not yet", the same may come true after it.

// withoutCanary returns the never lines that have none.
func withoutCanary(steps []Step) []Step {
	var bare []Step
	for i, step := range steps {
		if step.Never > 0 && !seenAtWork(steps[:i]) && !comesTrue(step, steps[i+1:]) {
			bare = append(bare, step)
		}
	}
	return bare
}

// seenAtWork reports whether the last steps wait for what a controller did.
func seenAtWork(before []Step) bool {
	for _, step := range slices.Backward(before) {
		switch {
		case isCanary(step):
			return true
		case !step.waits():
			return false
		}
	}
	return false
}

// isCanary reports whether a step waits for what the controllers do, or ask for. What the
// pretend kubelet says, and that an object is there, may have no part of theirs.
func isCanary(step Step) bool {
	if step.Command == "proxy" && step.Rest == "used" {
		return true
	}
	if step.Never > 0 || !strings.HasPrefix(step.Command, "expect") {
		return false
	}
	c, err := parseCondition(step)
	if err != nil {
		return false
	}
	kubelet := strings.HasPrefix(c.target, "pods") && (c.path == ".status.phase" && c.value == "Running" || c.path == ".spec.nodeName")
	return !kubelet && c.path != ".metadata.resourceVersion" && (c.path != ".metadata.name" || c.op == "=~")
}

// comesTrue reports whether what is not to be yet is waited for next.
func comesTrue(never Step, after []Step) bool {
	for _, step := range after {
		switch {
		case !step.waits():
			return false
		case step.Never > 0 || !strings.HasPrefix(step.Command, "expect"):
		case step.Command == never.Command && step.Rest == never.Rest:
			return true
		case step.Command == "expect-gone" && strings.HasPrefix(never.Rest, step.Rest+" .metadata.deletionTimestamp"):
			return true
		}
	}
	return false
}

func TestEveryNeverHasACanary(t *testing.T) {
	for _, story := range load(t) {
		for _, step := range withoutCanary(story.Steps) {
			t.Errorf("%s:%d: nothing shows that the controller was at work: %s", story.Path, step.Line, step.Text)
		}
	}
}

func TestWhatCountsAsACanary(t *testing.T) {
	for name, tc := range map[string]struct {
		story string
		bare  int
	}{
		"an expectation since the last command":        {"delete cm/a\nexpect-gone cm/b\nnever 1s expect-gone cm/c", 0},
		"one before the last command":                  {"expect-gone cm/b\ndelete cm/a\nnever 1s expect-gone cm/c", 1},
		"only one that follows":                        {"delete cm/a\nnever 1s expect-gone cm/c\nexpect-gone cm/b", 1},
		"what is not yet, and then is":                 {"delete cm/a\nnever 1s expect-gone cm/c\nsettle\nwithin 90s expect-gone cm/c", 0},
		"what is deleted and then gone":                {"delete cm/a\nnever 1s cm/c .metadata.deletionTimestamp exists\nexpect-gone cm/c", 0},
		"what is only after another command":           {"delete cm/a\nnever 1s expect-gone cm/c\ndelete cm/b\nexpect-gone cm/c", 1},
		"quiet alone":                                  {"delete cm/a\nsettle\nnever 1s expect-gone cm/c", 1},
		"a line before it":                             {"delete cm/a\nexpect-gone cm/b\nnever 1s expect-gone cm/c\nsettle\nnever 1s expect-gone cm/d", 0},
		"two lines without any":                        {"delete cm/a\nnever 1s expect-gone cm/c\nnever 1s expect-gone cm/d", 2},
		"a refused attempt":                            {"delete cm/a\nexpect-request write cm 403\nnever 1s expect-gone cm/c", 0},
		"a pod that runs, which is the kubelet's work": {"apply f\nexpect pods/a .status.phase == Running\nnever 1s expect-gone pods/a\n-- f --", 1},
		"an object that is there":                      {"apply f\nexpect cm/a .metadata.name == a\nnever 1s expect-gone cm/a\n-- f --", 1},
	} {
		t.Run(name, func(t *testing.T) {
			story, err := Parse("s.txtar", []byte(tc.story))
			if err != nil {
				t.Fatal(err)
			}
			if bare := withoutCanary(story.Steps); len(bare) != tc.bare {
				t.Errorf("%d lines without a canary, want %d: %v", len(bare), tc.bare, bare)
			}
		})
	}
}
