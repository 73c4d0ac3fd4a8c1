package scenarios

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestConsecutiveNeverLinesAreWatchedTogether(t *testing.T) {
	for name, tc := range map[string]struct {
		story string
		want  [][]int
	}{
		"nothing but acts":            {"start a\nstop\nrestart", [][]int{{1}, {2}, {3}}},
		"one alone":                   {"start a\nnever 1s expect-gone pods/a\nstop", [][]int{{1}, {2}, {3}}},
		"three in a row":              {"start a\nnever 1s expect-gone pods/a\nnever 2s expect-gone pods/b\n# also\nnever 1s expect-gone pods/c", [][]int{{1}, {2, 3, 5}}},
		"an expectation in between":   {"start a\nnever 1s expect-gone pods/a\nexpect-gone pods/b\nnever 1s expect-gone pods/c", [][]int{{1}, {2}, {3}, {4}}},
		"at the beginning of a story": {"never 1s expect-gone pods/a\nnever 1s expect-gone pods/b\nstart a", [][]int{{1, 2}, {3}}},
	} {
		t.Run(name, func(t *testing.T) {
			story, err := Parse("s.txtar", []byte(tc.story))
			if err != nil {
				t.Fatal(err)
			}
			var got [][]int
			for _, group := range sideBySide(story.Steps) {
				var lines []int
				for _, step := range group {
					lines = append(lines, step.Line)
				}
				got = append(got, lines)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNeverLinesShareOneWait(t *testing.T) {
	type line struct {
		never time.Duration
		// trueAt is when the condition becomes true, failsAt when it cannot be read.
		trueAt, failsAt time.Duration
	}
	const no = time.Hour
	for name, tc := range map[string]struct {
		lines  []line
		diesAt time.Duration
		// failed is the line at fault, took how long it was watched at most.
		failed int
		says   string
		took   time.Duration
	}{
		"as long as the longest":              {[]line{{time.Second, no, no}, {3 * time.Second, no, no}, {2 * time.Second, no, no}}, no, 0, "", 3 * time.Second},
		"the second becomes true":             {[]line{{3 * time.Second, no, no}, {3 * time.Second, time.Second, no}}, no, 2, "became true", time.Second},
		"the first, after the second is over": {[]line{{3 * time.Second, 2 * time.Second, no}, {time.Second, no, no}}, no, 1, "became true", 2 * time.Second},
		"true when its own time is over":      {[]line{{time.Second, 2 * time.Second, no}, {3 * time.Second, no, no}}, no, 0, "", 3 * time.Second},
		"one that cannot be read":             {[]line{{time.Second, no, no}, {time.Second, no, 0}}, no, 2, "unreadable", 0},
		"a manager that ends":                 {[]line{{time.Second, no, no}, {2 * time.Second, no, no}}, 1500 * time.Millisecond, 2, "has ended by itself", 1500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				var vigils []vigil
				for i, l := range tc.lines {
					vigils = append(vigils, vigil{Step{Line: i + 1, Never: l.never}, func() (bool, string, error) {
						if time.Since(begin) >= l.failsAt {
							return false, "", errors.New("unreadable")
						}
						return time.Since(begin) >= l.trueAt, "seen", nil
					}})
				}
				step, err := keep(t.Context(), vigils, func() bool { return time.Since(begin) >= tc.diesAt })
				if took := time.Since(begin); step.Line != tc.failed || took < tc.took || took > tc.took+100*time.Millisecond {
					t.Errorf("line %d after %s, want line %d after %s", step.Line, took, tc.failed, tc.took)
				}
				if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
					t.Errorf("error %v, want %q", err, tc.says)
				}
			})
		})
	}
}
