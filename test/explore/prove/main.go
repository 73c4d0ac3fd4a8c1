// Command prove shows that the explorer finds faults. It builds the tree once as it
// is and once with each fault of test/explore/faults, has the explorer look at the
// faulty binary, and prints what it found and how long that took. It fails unless
// every fault is found in time. The tree itself is left alone: what is built is a
// copy of the commit that is checked out.
//
// A difference counts when its story, played again in turns, passes each time under
// the binary without the fault and differs each time with it. Any other is none of
// the fault's, and the explorer goes on after that seed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/explore/faults"
)

var (
	faultsFlag  = flag.String("faults", "", "numbers of the faults, separated by commas; all without it")
	forFlag     = flag.Duration("for", 20*time.Minute, "how long to look for each")
	shrinkFlag  = flag.Duration("shrink", 4*time.Minute, "how long to make the story of a difference smaller")
	lanesFlag   = flag.Int("lanes", 2, "how many pairs of control planes play side by side")
	seedFlag    = flag.Int("seed", 1, "the first seed")
	ldflagsFlag = flag.String("ldflags", "", "flags of the linker")
	outFlag     = flag.String("out", filepath.Join("_output", "explore-proof"), "where binaries, stories and the table go")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "prove:", err)
		os.Exit(1)
	}
}

func run() error {
	out, err := filepath.Abs(*outFlag)
	if err != nil {
		return err
	}
	chosen, err := choose(filepath.Join("test", "explore", "faults"), *faultsFlag)
	if err != nil {
		return err
	}
	w := workshop{out: out, ldflags: *ldflagsFlag, lanes: *lanesFlag, log: os.Stderr}
	if err := w.open(); err != nil {
		return err
	}
	defer w.close()
	rows := make([]row, 0, len(chosen))
	for _, f := range chosen {
		r := row{fault: f}
		r.trial, r.err = w.try(f, *seedFlag, *forFlag, *shrinkFlag)
		fmt.Fprintf(w.log, "%s: %s\n", f.Name, r.outcome())
		rows = append(rows, r)
		// After each one, as all of them take hours.
		if err := os.WriteFile(filepath.Join(out, "table.txt"), []byte(table(rows)), 0o600); err != nil {
			return fmt.Errorf("write the table: %w", err)
		}
	}
	fmt.Print(table(rows))
	return verdict(rows)
}

// choose returns the faults of these numbers, all if there are none.
func choose(dir, numbers string) ([]faults.Fault, error) {
	all, err := faults.List(dir)
	if err != nil || numbers == "" {
		return all, err
	}
	var chosen []faults.Fault
	for number := range strings.SplitSeq(numbers, ",") {
		i := slices.IndexFunc(all, func(f faults.Fault) bool { return f.Number() == number || f.Name == number })
		if i < 0 {
			return nil, fmt.Errorf("there is no fault %q in %s", number, dir)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// row is what came of a fault.
type row struct {
	fault faults.Fault
	trial trial
	err   error
}

func (r row) outcome() string {
	switch {
	case r.err != nil:
		return "error"
	case r.trial.story == "":
		return "no"
	}
	return "yes"
}

func table(rows []row) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "fault\titem\tfamily\tfound\tseed\tseeds\tminutes\tstory")
	for _, r := range rows {
		seed, story := "-", "-"
		if r.trial.story != "" {
			seed, story = fmt.Sprint(r.trial.seed), r.trial.story
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%.1f\t%s\n", r.fault.Name, r.fault.Item, r.fault.Family,
			r.outcome(), seed, r.trial.seeds, r.trial.took.Minutes(), story)
	}
	// The writer is a buffer, which takes everything.
	_ = w.Flush()
	return text.String()
}

// verdict is an error unless all faults were found.
func verdict(rows []row) error {
	var missed []error
	for _, r := range rows {
		switch r.outcome() {
		case "error":
			missed = append(missed, fmt.Errorf("%s: %w", r.fault.Name, r.err))
		case "no":
			missed = append(missed, fmt.Errorf("%s: not found in %d seeds: %s", r.fault.Name, r.trial.seeds, r.fault.What))
		}
	}
	return errors.Join(missed...)
}
