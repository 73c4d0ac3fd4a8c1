package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// rounds is how often a story has to tell the two binaries apart.
const rounds = 2

// alone is how often a replay plays a story under the reference alone. That the binary
// without the fault passes tells more of what is chance.
const alone = "1"

// slack is what the last seed may take longer than the time given.
const slack = 10 * time.Minute

// Report is what this command needs of report.json, which the explorer writes.
type Report struct {
	Seeds       int          `json:"seeds"`
	Differences []Difference `json:"differences"`
}

// Difference is one that is none of chance, and the story that shows it: a path
// below the directory of the report.
type Difference struct {
	Seed  int    `json:"seed"`
	Story string `json:"story"`
}

// explorer looks for differences, and plays the story of one again.
type explorer interface {
	explore(h hunt, out string) (Report, error)
	passes(binary, story string) (bool, error)
}

// hunt is what to look at, for what, from which seed on and for how long.
type hunt struct {
	faulty, good, family string
	out                  string
	seed                 int
	// limit is for all of it, shrink for making a difference small.
	limit, shrink time.Duration
}

// trial is what came of it.
type trial struct {
	// story shows the fault; empty if none does. seed led to it.
	story string
	seed  int
	seeds int
	took  time.Duration
}

// search explores until a difference is the fault's or the time is over. Those that
// show without the fault too are passed over.
func search(e explorer, h hunt, now func() time.Time) (trial, error) {
	began := now()
	var t trial
	for try := 1; ; try++ {
		t.took = now().Sub(began)
		if t.took >= h.limit {
			return t, nil
		}
		left := h
		left.limit = h.limit - t.took
		out := filepath.Join(h.out, fmt.Sprintf("try-%d", try))
		report, err := e.explore(left, out)
		if err != nil {
			return t, err
		}
		t.seeds += report.Seeds
		for _, d := range report.Differences {
			story := filepath.Join(out, d.Story)
			shows, err := proves(e, h, story)
			if err != nil {
				return t, err
			}
			if shows {
				t.story, t.seed, t.took = story, d.Seed, now().Sub(began)
				return t, nil
			}
			h.seed = max(h.seed, d.Seed+1)
		}
		if len(report.Differences) == 0 {
			t.took = now().Sub(began)
			return t, nil
		}
	}
}

// proves reports whether a story differs with the fault and passes without it, each
// time: what passes once may be chance.
func proves(e explorer, h hunt, story string) (bool, error) {
	for range rounds {
		if passes, err := e.passes(h.good, story); err != nil || !passes {
			return false, err
		}
		if passes, err := e.passes(h.faulty, story); err != nil || passes {
			return false, err
		}
	}
	return true, nil
}

// commands runs the explorer as a process.
type commands struct {
	// test is the test binary, dir the directory of its package.
	test, dir string
	lanes     int
	log       io.Writer
}

func (c commands) explore(h hunt, out string) (Report, error) {
	var r Report
	err := c.run("-test.v", "-test.run=^TestExplore$", "-test.timeout="+(h.limit+slack).String(), "-binary="+h.faulty, "-families="+h.family,
		"-for="+h.limit.String(), "-shrink="+h.shrink.String(), fmt.Sprintf("-seed=%d", h.seed), fmt.Sprintf("-lanes=%d", c.lanes), "-first", "-out="+out)
	// With a difference the test fails; what counts is the report.
	content, readErr := os.ReadFile(filepath.Join(out, "report.json"))
	if readErr != nil {
		return r, fmt.Errorf("explore: %w", errors.Join(err, readErr))
	}
	if err := json.Unmarshal(content, &r); err != nil {
		return r, fmt.Errorf("read the report: %w", err)
	}
	if err != nil && len(r.Differences) == 0 {
		return r, fmt.Errorf("explore: %w, and nothing differs", err)
	}
	return r, nil
}

func (c commands) passes(binary, story string) (bool, error) {
	if _, err := os.Stat(story); err != nil {
		return false, fmt.Errorf("find the story of a difference: %w", err)
	}
	err := c.run("-test.run=^TestReplay$", "-test.timeout="+slack.String(), "-binary="+binary, "-story="+story, "-alone="+alone)
	if _, failed := err.(*exec.ExitError); failed {
		return false, nil
	}
	return err == nil, err
}

func (c commands) run(args ...string) error {
	p := exec.Command(c.test, args...)
	p.Dir, p.Stdout, p.Stderr = c.dir, c.log, c.log
	return p.Run()
}
