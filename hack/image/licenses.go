package main

import (
	"debug/buildinfo"
	"fmt"
	"go/build"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/module"
)

var licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// licensesOf returns the licences of Go and of all modules that executables are built from.
func licensesOf(programs ...string) ([]file, error) {
	found, err := licensesIn(build.Default.GOROOT, "go")
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("no licence in %s: %w", build.Default.GOROOT, err)
	}
	cache, err := moduleCache()
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return nil, fmt.Errorf("read what %s is built from: %w", program, err)
		}
		for _, m := range info.Deps {
			if m.Replace != nil || seen[m.Path] {
				continue // part of this project
			}
			seen[m.Path] = true
			escaped, err := module.EscapePath(m.Path)
			if err != nil {
				return nil, err
			}
			of, err := licensesIn(filepath.Join(cache, filepath.FromSlash(escaped)+"@"+m.Version), m.Path)
			if err != nil {
				return nil, fmt.Errorf("licence of %s: %w", m.Path, err)
			}
			if len(of) == 0 {
				return nil, fmt.Errorf("module %s %s has no licence file", m.Path, m.Version)
			}
			found = append(found, of...)
		}
	}
	return found, nil
}

func licensesIn(dir, name string) ([]file, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []file
	for _, entry := range entries {
		if entry.IsDir() || !licenseName.MatchString(entry.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		found = append(found, file{path.Join(licenses, name, entry.Name()), 0o644, content})
	}
	return found, nil
}

func moduleCache() (string, error) {
	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMODCACHE: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
