package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// keptOf is the file that holds what was found of a package: a line for each mutant, and
// before them one that tells the code.
func keptOf(pkg string) string {
	return filepath.Join(kept, strings.ReplaceAll(pkg, "/", "-")+".tsv")
}

func (m *mutant) key(pkg string) string {
	return strings.Join([]string{pkg, m.file, m.function, m.kind, m.code}, "\t")
}

func keep(pkg string, mutants []mutant) error {
	sum, err := sumOf(pkg)
	if err != nil {
		return err
	}
	var out strings.Builder
	fmt.Fprintln(&out, "#", sum)
	for _, m := range mutants {
		fmt.Fprintf(&out, "%s\t%s\t%d\n", m.key(pkg), m.status, m.line)
	}
	if err := os.MkdirAll(kept, 0o755); err != nil {
		return err
	}
	return os.WriteFile(keptOf(pkg), []byte(out.String()), 0o644)
}

// recall gives what was found before of each mutant, or nothing if the code was another.
func recall(pkg string, mutants []mutant) ([]string, error) {
	content, err := os.ReadFile(keptOf(pkg))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sum, err := sumOf(pkg)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	if lines[0] != "# "+sum || len(lines) != len(mutants)+1 {
		return nil, nil
	}
	was := make([]string, len(mutants))
	for i, line := range lines[1:] {
		fields := strings.Split(line, "\t")
		was[i] = fields[len(fields)-2]
	}
	return was, nil
}

// sumOf tells the code of a package, without its tests.
func sumOf(pkg string) (string, error) {
	names, err := filepath.Glob(filepath.Join(pkg, "*.go"))
	if err != nil {
		return "", err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	sum := sha256.New()
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(content), content)
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}
