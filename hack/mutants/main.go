// Command mutants changes the code of packages and sees whether their tests notice. All
// changes of a package are built into one test binary, each behind a switch, and the
// binary runs once for each switch: a mutant costs no build. The arguments are packages;
// none stands for all of packages.txt. What was found is kept, a file for each package,
// and the table is of all that is kept. With -again only those that lived, or timed out,
// are tried again, for a package whose code is as it was. It exits 1 if too many live.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	kept      = "_output/mutate"
	packages  = "hack/mutate/packages.txt"
	survivors = "hack/mutate/survivors.tsv"
)

func main() {
	again := flag.Bool("again", false, "try only those that lived or timed out")
	flag.Parse()
	if err := run(flag.Args(), *again); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(chosen []string, again bool) error {
	if len(chosen) == 0 {
		var err error
		if chosen, err = listed(); err != nil {
			return err
		}
	}
	for _, pkg := range chosen {
		start := time.Now()
		if err := mutate(pkg, again); err != nil {
			return fmt.Errorf("%s: %w", pkg, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %v\n", pkg, time.Since(start).Round(time.Second))
	}
	table, err := os.Create(filepath.Join(kept, "table.md"))
	if err != nil {
		return err
	}
	defer table.Close()
	return report(io.MultiWriter(os.Stdout, table), os.Stderr)
}

// listed are the packages of packages.txt.
func listed() ([]string, error) {
	content, err := os.ReadFile(packages)
	if err != nil {
		return nil, err
	}
	var names []string
	for line := range strings.Lines(string(content)) {
		if name := strings.TrimSpace(line); name != "" && !strings.HasPrefix(name, "#") {
			names = append(names, name)
		}
	}
	return names, nil
}
