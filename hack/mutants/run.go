package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// switches is the file that goes into the package. A switch tells by itself that it was
// reached: no coverage knows of operators, or of what runs before main.
const switches = `package %s

import (
	"os"
	"strconv"
	"sync/atomic"
)

var (
	mutatedNumber, _ = strconv.Atoi(os.Getenv("MUTANT"))
	mutatedReached   [%d]atomic.Bool
)

func mutated(n int) bool {
	if mutatedNumber == 0 && !mutatedReached[n].Swap(true) {
		f, err := os.OpenFile(os.Getenv("MUTANTS_REACHED"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		f.WriteString(strconv.Itoa(n) + "\n")
		f.Close()
	}
	return n == mutatedNumber
}
`

// mutate tries the mutants of a package and keeps what was found.
func mutate(pkg string, again bool) error {
	temp, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	mutants, err := build(pkg, temp)
	if err != nil {
		return err
	}
	was, err := recall(pkg, mutants)
	if err != nil {
		return err
	}
	if len(mutants) > 0 {
		if err := try(pkg, temp, mutants, was, again); err != nil {
			return err
		}
	}
	return keep(pkg, mutants)
}

// build makes the test binary of a package with all its mutants.
func build(pkg, temp string) ([]mutant, error) {
	var mutants []mutant
	l, err := load(pkg)
	if err != nil {
		return nil, err
	}
	overlay := map[string]string{}
	write := func(name string, content []byte) error {
		changed := filepath.Join(temp, name)
		overlay[filepath.Join(l.dir, name)] = changed
		return os.WriteFile(changed, content, 0o600)
	}
	for i, file := range l.files {
		name := l.names[i]
		if wiring(name) {
			continue
		}
		source, err := os.ReadFile(filepath.Join(l.dir, name))
		if err != nil {
			return nil, err
		}
		c := changer{set: l.set, info: l.info, own: l.pkg, source: source, name: name, mutants: &mutants}
		if err := write(name, c.change(file)); err != nil {
			return nil, err
		}
	}
	if len(mutants) == 0 {
		return nil, nil
	}
	if err := write("mutated.go", fmt.Appendf(nil, switches, l.pkg.Name(), len(mutants)+1)); err != nil {
		return nil, err
	}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(temp, "overlay.json"), list, 0o600); err != nil {
		return nil, err
	}
	output, err := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", filepath.Join(temp, "overlay.json"),
		"-o", filepath.Join(temp, "test"), "./"+pkg).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("with its mutants: %w\n%s", err, output)
	}
	return mutants, nil
}

// loaded is a package with its types.
type loaded struct {
	dir   string
	names []string
	set   *token.FileSet
	files []*ast.File
	pkg   *types.Package
	info  *types.Info
}

func load(pkg string) (*loaded, error) {
	output, err := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,GoFiles,Export,DepOnly", "./"+pkg).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	l := &loaded{set: token.NewFileSet(), info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}}
	exports, path := map[string]string{}, ""
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p struct {
			ImportPath, Dir, Export string
			GoFiles                 []string
			DepOnly                 bool
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			path, l.dir, l.names = p.ImportPath, p.Dir, p.GoFiles
		}
	}
	for _, name := range l.names {
		file, err := parser.ParseFile(l.set, filepath.Join(l.dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		l.files = append(l.files, file)
	}
	config := types.Config{Importer: importer.ForCompiler(l.set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})}
	l.pkg, err = config.Check(path, l.set, l.files, l.info)
	return l, err
}

// try runs the tests once as they are and once for each mutant that they reach.
func try(pkg, temp string, mutants []mutant, was []string, again bool) error {
	reached := filepath.Join(temp, "reached")
	start := time.Now()
	output, ok, err := test(pkg, temp, 10*time.Minute, "MUTANTS_REACHED="+reached, "-test.v")
	if err != nil || !ok {
		return fmt.Errorf("its tests fail as they are: %v\n%s", err, output)
	}
	quick := quickest(output)
	// A busy machine needs longer now and then: try again what timed out.
	limit := 2*time.Since(start) + 5*time.Second
	content, err := os.ReadFile(reached)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, line := range strings.Fields(string(content)) {
		n, err := strconv.Atoi(line)
		if err != nil {
			return err
		}
		m := &mutants[n-1]
		if again && was != nil && was[n-1] == "KILLED" {
			m.status = "KILLED"
			continue
		}
		// The quick ones first: others may wait for what never comes.
		_, ok, err := test(pkg, temp, limit, "MUTANT="+line, "-test.run="+quick)
		if ok && err == nil {
			_, ok, err = test(pkg, temp, limit, "MUTANT="+line, "-test.skip="+quick)
		}
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			m.status = "TIMED OUT"
		case err != nil:
			return err
		case ok:
			m.status = "LIVED"
		default:
			m.status = "KILLED"
		}
	}
	return nil
}

var passed = regexp.MustCompile(`(?m)^--- PASS: (Test\w+) \(0\.0\ds\)$`)

// quickest is an expression for the tests that took next to no time.
func quickest(output string) string {
	names := []string{"none"}
	for _, match := range passed.FindAllStringSubmatch(output, -1) {
		names = append(names, match[1])
	}
	return "^(" + strings.Join(names, "|") + ")$"
}

// test runs the tests and reports whether they pass. The memory is bounded, as a mutant may
// allocate without end.
func test(pkg, temp string, limit time.Duration, env string, which string) (string, bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	args := []string{"-c", `ulimit -v 8388608; exec "$0" "$@"`, filepath.Join(temp, "test"), "-test.short", "-test.failfast", "-test.paniconexit0", which}
	cmd := exec.CommandContext(ctx, "sh", args...)
	cmd.Dir, cmd.Env = pkg, append(os.Environ(), env, "TMPDIR="+temp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var output bytes.Buffer
	cmd.Stdout, cmd.WaitDelay = &output, time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", false, ctx.Err()
	}
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return "", false, err
	}
	return output.String(), err == nil, nil
}
