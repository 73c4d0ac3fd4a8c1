// Package faults holds patches that put faults into the controllers, to see that
// the explorer finds them: ten that were mended once, by their item in the list of
// known differences, and fourteen that a careless change might make. Each can be seen
// through the API. make explore-proof builds the tree with one at a time.
package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Families are those of the explorer.
var Families = []string{
	"deployment", "replicationcontroller", "statefulset", "daemonset", "job", "cronjob", "disruption",
	"hpa", "service", "collector", "quota", "namespace", "node", "token", "role", "policy", "selinux", "range",
}

// Own is the item of a fault that was never in the tree.
const Own = "own"

// Fault is a patch that makes a controller go wrong. The lines before the diff
// say what it is: "# fault: ...", "# item: ..." and "# family: ...".
type Fault struct {
	// Name is that of the file: 01-what-goes-wrong. Path is the file.
	Name, Path string
	// What goes wrong, in a sentence.
	What string
	// Item is the number of the fault among those that were mended, or Own.
	Item string
	// Family of the explorer, which is to find it.
	Family string
}

// Number is what the name begins with.
func (f Fault) Number() string {
	number, _, _ := strings.Cut(f.Name, "-")
	return number
}

// List reads the patches of a directory, by name.
func List(dir string) ([]Fault, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, fmt.Errorf("list the faults: %w", err)
	}
	slices.Sort(paths)
	all := make([]Fault, 0, len(paths))
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read a fault: %w", err)
		}
		f, err := parse(path, string(content))
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// parse reads the lines before the diff. All three have to be there, and no other.
func parse(path, content string) (Fault, error) {
	f := Fault{Name: strings.TrimSuffix(filepath.Base(path), ".patch"), Path: path}
	fields := map[string]*string{"fault": &f.What, "item": &f.Item, "family": &f.Family}
	head, _, diff := strings.Cut(content, "\ndiff --git ")
	for line := range strings.Lines(head) {
		key, value, ok := strings.Cut(strings.TrimPrefix(line, "# "), ": ")
		field := fields[key]
		switch {
		case strings.TrimSpace(line) == "":
		case !ok || !strings.HasPrefix(line, "# ") || field == nil || *field != "":
			return f, fmt.Errorf("%s: odd line before the diff: %q", f.Name, line)
		default:
			*field = strings.TrimSpace(value)
		}
	}
	switch {
	case f.What == "" || f.Item == "" || f.Family == "":
		return f, fmt.Errorf("%s: the lines fault, item and family have to come before the diff", f.Name)
	case !slices.Contains(Families, f.Family):
		return f, fmt.Errorf("%s: there is no family %q", f.Name, f.Family)
	case !diff:
		return f, fmt.Errorf("%s: there is no diff", f.Name)
	}
	return f, nil
}
