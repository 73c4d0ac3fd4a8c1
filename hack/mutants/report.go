package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
)

// enough is the share of the mutants reached by a test that tests have to kill, in percent.
const enough = 90

// count is what became of the mutants of a package.
type count struct {
	killed, lived, listed, late, unreached int
}

func (c *count) add(o count) {
	c.killed += o.killed
	c.lived += o.lived
	c.listed += o.listed
	c.late += o.late
	c.unreached += o.unreached
}

// share leaves out what timed out: it counts neither way.
func (c *count) share() float64 {
	if c.killed+c.lived == 0 {
		return 100
	}
	return 100 * float64(c.killed) / float64(c.killed+c.lived)
}

func (c *count) row(name string) string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %d | %.1f%% |\n", name,
		c.killed+c.lived+c.late, c.killed, c.late, c.lived, c.listed, c.unreached, c.share())
}

func report(table, remarks io.Writer) error {
	known, err := reasons()
	if err != nil {
		return err
	}
	names, err := listed()
	if err != nil {
		return err
	}
	fmt.Fprint(table, "| package | reached | killed | timed out | lived | of these listed | not reached | killed or lived: killed |\n|---|---|---|---|---|---|---|---|\n")
	var total count
	var weak, missing []string
	for _, name := range names {
		c, err := tally(name, known, remarks)
		if errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, name)
			continue
		}
		if err != nil {
			return err
		}
		fmt.Fprint(table, c.row(name))
		total.add(c)
		if c.share() < enough {
			weak = append(weak, name)
		}
	}
	fmt.Fprint(table, total.row("all"))
	if len(missing) > 0 {
		fmt.Fprintf(table, "\nNot measured: %s\n", strings.Join(missing, ", "))
	}
	if len(weak) > 0 {
		return fmt.Errorf("less than %d%% killed: %s", enough, strings.Join(weak, ", "))
	}
	return nil
}

// tally counts the mutants of a package, tells those that live without a reason, and the
// reasons that nothing needs.
func tally(name string, known map[string]string, remarks io.Writer) (count, error) {
	var c count
	content, err := os.ReadFile(keptOf(name))
	if err != nil {
		return c, err
	}
	alive := map[string]bool{}
	for line := range strings.Lines(string(content)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 7 {
			continue
		}
		switch key := strings.Join(fields[:5], "\t"); fields[5] {
		case "KILLED":
			c.killed++
		case "TIMED OUT":
			c.late++
		case "NOT COVERED":
			c.unreached++
		case "LIVED":
			c.lived++
			alive[key] = true
			if known[key] != "" {
				c.listed++
				continue
			}
			fmt.Fprintf(remarks, "lives: %s/%s:%s: %s %s: %s\n", fields[0], fields[1], fields[6], fields[2], fields[3], fields[4])
		}
	}
	for key := range known {
		if strings.HasPrefix(key, name+"\t") && !alive[key] {
			fmt.Fprintf(remarks, "listed, and does not live: %s\n", strings.ReplaceAll(key, "\t", " "))
		}
	}
	return c, nil
}

// reasons says why a mutant may live.
func reasons() (map[string]string, error) {
	content, err := os.ReadFile(survivors)
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	n := 0
	for line := range strings.Lines(string(content)) {
		n++
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 6 || fields[5] == "" {
			return nil, fmt.Errorf("%s:%d: wanted package, file, function, mutation, code and a reason, between tabs", survivors, n)
		}
		known[strings.Join(fields[:5], "\t")] = fields[5]
	}
	return known, nil
}
