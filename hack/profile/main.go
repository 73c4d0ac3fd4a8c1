// Command profile makes the profile that the compiler optimises the product with, out of CPU
// profiles that bench took of it: see "make profile".
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/google/pprof/profile"
)

func main() {
	out := flag.String("out", "", "the file to write")
	flag.Parse()
	if err := run(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "profile:", err)
		os.Exit(1)
	}
}

func run(out string, in []string) error {
	var all []*profile.Profile
	for _, name := range in {
		p, err := read(name)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		all = append(all, p)
	}
	merged, err := profile.Merge(all)
	if err != nil {
		return err
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	if err := merged.Write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// read returns a profile without what it says of the machine and the time.
func read(name string) (*profile.Profile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := profile.Parse(f)
	if err != nil {
		return nil, err
	}
	p.TimeNanos, p.Comments = 0, nil
	for _, mapping := range p.Mapping {
		mapping.File, mapping.BuildID = "", ""
	}
	for _, sample := range p.Sample {
		sample.Label, sample.NumLabel = nil, nil
	}
	return p, nil
}
