package files

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

	"golang.org/x/mod/module"
)

// project begins the paths of the modules of this project.
const project = "github.com/kube-kcm/kube-controller-manager"

var licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// Module is what an executable is built from, with its licence files, named PATH/FILE.
type Module struct {
	Path, Version, Sum string
	Licenses           []File
}

// Ours reports whether the module is a part of this project.
func (m Module) Ours() bool { return strings.HasPrefix(m.Path, project) }

// GoLicenses are those of Go itself, which every executable has parts of.
func GoLicenses() ([]File, error) {
	root, err := goEnv("GOROOT") // a program built with -trimpath does not know it
	if err != nil {
		return nil, err
	}
	found, err := licensesIn(root, "go")
	if err != nil {
		return nil, fmt.Errorf("licence of Go: %w", err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no licence of Go in %s", root)
	}
	return found, nil
}

// Modules returns what an executable says that it is built from: the module of its own,
// and the others in the order of their paths. Each module of others has a licence.
func Modules(program string) ([]Module, error) {
	cache, err := goEnv("GOMODCACHE")
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("read what %s is built from: %w", program, err)
	}
	var all []Module
	for _, dep := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		m := Module{Path: dep.Path, Version: dep.Version, Sum: dep.Sum}
		if all = append(all, m); m.Ours() {
			continue
		}
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
		all[len(all)-1].Licenses = of
	}
	return all, nil
}

// Licenses returns the licences of Go and of all modules that executables are built from.
func Licenses(programs ...string) ([]File, error) {
	found, err := GoLicenses()
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, program := range programs {
		modules, err := Modules(program)
		if err != nil {
			return nil, err
		}
		for _, m := range modules {
			if !seen[m.Path] {
				found = append(found, m.Licenses...)
			}
			seen[m.Path] = true
		}
	}
	return found, nil
}

func licensesIn(dir, name string) ([]File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []File
	for _, entry := range entries {
		if entry.IsDir() || !licenseName.MatchString(entry.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		found = append(found, File{path.Join(name, entry.Name()), 0o644, content})
	}
	return found, nil
}

func goEnv(name string) (string, error) {
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		return "", fmt.Errorf("go env %s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}
