// Command verify holds the rules of the house that a reviewer would otherwise
// have to remember. It reads the tracked Go files below the working directory
// and exits 1 with one line for each finding.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	maxFile = 300
	maxFunc = 60
	// sizesFile lists what was larger when the rule began; an entry may shrink or go, never grow.
	sizesFile = "hack/verify/sizes.txt"
)

// shells are the files of a controller that may hold a client, read a clock or record events.
var shells = []string{"controller.go", "observe.go", "metrics.go", "doc.go", "options.go", "adapter.go", "load.go"}

var (
	clients   = regexp.MustCompile(`^k8s\.io/(client-go/(kubernetes|dynamic|metadata|rest|tools/record|discovery)(/|$)|apiserver/pkg/util/feature)|^math/rand`)
	clock     = regexp.MustCompile(`\btime\.(Now|Since|Until|After|Tick|Sleep|NewTimer|NewTicker)\(`)
	ownQueue  = regexp.MustCompile(`\bworkqueue\.New(Typed)?(Named)?(WithConfig|RateLimitingQueue|DelayingQueue|Queue)?(WithConfig)?[\[(]`)
	pacing    = regexp.MustCompile(`\btime\.Sleep\(|\bt\.Skip(Now|f)?\(`)
	machine   = regexp.MustCompile(`(^|[^A-Za-z0-9_.])/(root|work)/[a-z]|proxy\.golang\.org`)
	kubernets = "k8s.io/kubernetes"
)

type source struct {
	name string
	text string
	file *ast.File
	set  *token.FileSet
}

func main() {
	var findings []string
	found := func(format string, args ...any) { findings = append(findings, fmt.Sprintf(format, args...)) }
	sources := load(found)
	sizes := map[string]int{}
	for _, s := range sources {
		imports(s, found)
		text(s, found)
		measure(s, sizes)
	}
	modules(found)
	differences(sources, found)
	byTypes(found, "./pkg/...", "./staging/controllerkit/...")
	if len(os.Args) > 1 && os.Args[1] == "-record" {
		record(sizes)
		return
	}
	compare(sizes, found)
	slices.Sort(findings)
	for _, f := range findings {
		fmt.Fprintln(os.Stderr, f)
	}
	if len(findings) > 0 {
		os.Exit(1)
	}
}

func load(found func(string, ...any)) []source {
	out, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go").Output()
	if err != nil {
		found("list files: %v", err)
	}
	var sources []source
	for name := range strings.FieldsSeq(string(out)) {
		content, err := os.ReadFile(name)
		if err != nil {
			continue // deleted and not committed yet
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, content, parser.ParseComments)
		if err != nil {
			found("%v", err)
			continue
		}
		sources = append(sources, source{name, string(content), file, set})
	}
	return sources
}

// imports holds the direction of dependencies and keeps clients out of pure files.
func imports(s source, found func(string, ...any)) {
	tools := strings.HasPrefix(s.name, "hack/tools/")
	test := strings.HasSuffix(s.name, "_test.go")
	controller := strings.HasPrefix(s.name, "pkg/controller/")
	for _, spec := range s.file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		switch {
		case !tools && (imported == kubernets || strings.HasPrefix(imported, kubernets+"/")):
			found("%s: imports %s, which only hack/tools may depend on", s.name, imported)
		case controller && strings.Contains(imported, "/pkg/controller/"):
			found("%s: imports another controller, %s; move what both need to a domain package", s.name, imported)
		case strings.HasPrefix(s.name, "staging/") && strings.Contains(imported, "kube-controller-manager/pkg/"):
			found("%s: the kit imports %s; dependencies point the other way", s.name, imported)
		case controller && !test && pure(s.name) && clients.MatchString(imported):
			found("%s: a pure file imports %s", s.name, imported)
		}
	}
}

func pure(name string) bool { return !slices.Contains(shells, path.Base(name)) }

// text holds the rules that are about single lines.
func text(s source, found func(string, ...any)) {
	test := strings.HasSuffix(s.name, "_test.go")
	controller := strings.HasPrefix(s.name, "pkg/controller/")
	lines := bufio.NewScanner(strings.NewReader(s.text))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		code, _, _ := strings.Cut(line, "//")
		switch {
		case controller && !test && clock.MatchString(code):
			found("%s:%d: reads the clock of the machine; take now, or the injected clock", s.name, n)
		case !test && !strings.HasPrefix(s.name, "test/") && !strings.HasPrefix(s.name, "staging/controllerkit/runner/") && ownQueue.MatchString(code):
			found("%s:%d: makes a queue of its own; the runner owns the only loop", s.name, n)
		case test && pacing.MatchString(code):
			found("%s:%d: a test waits for a condition and is never skipped", s.name, n)
		case !strings.HasPrefix(s.name, "hack/verify/") && machine.MatchString(line):
			found("%s:%d: names a path or host of a machine", s.name, n)
		}
	}
}

// measure notes the files and functions over the limits.
func measure(s source, sizes map[string]int) {
	if strings.HasSuffix(s.name, "_test.go") || strings.HasPrefix(path.Base(s.name), "zz_generated") {
		return
	}
	if lines := bytes.Count([]byte(s.text), []byte("\n")); lines > maxFile {
		sizes[s.name] = lines
	}
	for _, decl := range s.file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		if lines := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line + 1; lines > maxFunc {
			sizes[s.name+":"+f.Name.Name] = lines
		}
	}
}

func compare(sizes map[string]int, found func(string, ...any)) {
	allowed := map[string]int{}
	content, _ := os.ReadFile(sizesFile)
	for line := range strings.Lines(string(content)) {
		if name, lines, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			allowed[name], _ = strconv.Atoi(lines)
		}
	}
	for name, lines := range sizes {
		if lines > allowed[name] {
			found("%s: %d lines (files up to %d, functions up to %d; listed: %d); split it by what it is about", name, lines, maxFile, maxFunc, allowed[name])
		}
	}
}

func record(sizes map[string]int) {
	var lines []string
	for name, n := range sizes {
		lines = append(lines, fmt.Sprintf("%s %d\n", name, n))
	}
	slices.Sort(lines)
	if err := os.WriteFile(sizesFile, []byte(strings.Join(lines, "")), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// modules holds k8s.io/kubernetes out of the product and all k8s.io modules at one patch.
func modules(found func(string, ...any)) {
	versioned := regexp.MustCompile(`(?m)^\s*(k8s\.io/[a-z-]+) (v0\.\d+\.\d+)`)
	patches := map[string][]string{}
	for _, name := range []string{"go.mod", "staging/controllerkit/go.mod"} {
		content, err := os.ReadFile(name)
		if err != nil {
			found("%v", err)
			continue
		}
		if regexp.MustCompile(`(?m)^\s*k8s\.io/kubernetes `).Match(content) {
			found("%s: depends on k8s.io/kubernetes", name)
		}
		for _, m := range versioned.FindAllStringSubmatch(string(content), -1) {
			if m[2] >= "v0.30" { // kube-openapi, utils and the like have versions of their own
				patches[m[2]] = append(patches[m[2]], name+" "+m[1])
			}
		}
	}
	if len(patches) > 1 {
		found("go.mod: k8s.io modules at more than one patch: %v", patches)
	}
}
