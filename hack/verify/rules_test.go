package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// given is a file of this name with this text.
func given(t *testing.T, name, text string) source {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return source{name, text, file, set}
}

// finding is what a rule finds in the file; empty if nothing.
func finding(t *testing.T, rule func(source, func(string, ...any)), name, text string) string {
	t.Helper()
	var all []string
	rule(given(t, name, text), func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) })
	return strings.Join(all, "\n")
}

func TestImports(t *testing.T) {
	const us = "github.com/kube-kcm/kube-controller-manager/"
	for name, tc := range map[string]struct{ file, imported, want string }{
		"the original": {"pkg/x/x.go", "k8s.io/kubernetes/pkg/apis/core",
			"pkg/x/x.go: imports k8s.io/kubernetes/pkg/apis/core, which only hack/tools may depend on"},
		"the original, for a tool": {"hack/tools/x/x.go", "k8s.io/kubernetes/pkg/apis/core", ""},
		"another controller": {"pkg/controller/a/plan.go", us + "pkg/controller/b",
			"pkg/controller/a/plan.go: imports another controller, " + us + "pkg/controller/b; move what both need to a domain package"},
		"a controller, by the command": {"cmd/x/main.go", us + "pkg/controller/b", ""},
		"the product, by the kit": {"staging/controllerkit/act/act.go", us + "pkg/quota",
			"staging/controllerkit/act/act.go: the kit imports " + us + "pkg/quota; dependencies point the other way"},
		"a client, by a plan":           {"pkg/controller/a/plan.go", "k8s.io/client-go/kubernetes", "pkg/controller/a/plan.go: a pure file imports k8s.io/client-go/kubernetes"},
		"chance, by a plan":             {"pkg/controller/a/plan.go", "math/rand/v2", "pkg/controller/a/plan.go: a pure file imports math/rand/v2"},
		"a gate, by a plan":             {"pkg/controller/a/plan.go", "k8s.io/apiserver/pkg/util/feature", "pkg/controller/a/plan.go: a pure file imports k8s.io/apiserver/pkg/util/feature"},
		"a client, by what observes":    {"pkg/controller/a/observe.go", "k8s.io/client-go/kubernetes", ""},
		"a client, by a test of a plan": {"pkg/controller/a/plan_test.go", "k8s.io/client-go/kubernetes/fake", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := finding(t, imports, tc.file, fmt.Sprintf("package a\n\nimport _ %q\n", tc.imported)); got != tc.want {
				t.Errorf("found %q, want %q", got, tc.want)
			}
		})
	}
}

func TestText(t *testing.T) {
	const (
		clock   = "reads the clock of the machine; take now, or the injected clock"
		queue   = "makes a queue of its own; the runner owns the only loop"
		waits   = "a test waits for a condition and is never skipped"
		machine = "names a path or host of a machine"
	)
	for name, tc := range map[string]struct{ file, line, want string }{
		"the clock":                       {"pkg/controller/a/plan.go", "var x = time.Now()", clock},
		"the clock, in a comment":         {"pkg/controller/a/plan.go", "// time.Now() is not called.", ""},
		"the clock, in a test":            {"pkg/controller/a/plan_test.go", "var x = time.Now()", ""},
		"the clock, outside controllers":  {"pkg/x/x.go", "var x = time.Now()", ""},
		"a queue":                         {"pkg/x/x.go", "var x = workqueue.NewTypedRateLimitingQueue[string](nil)", queue},
		"the queue of the runner":         {"staging/controllerkit/runner/runner.go", "var x = workqueue.NewTypedRateLimitingQueue[string](nil)", ""},
		"a test that sleeps":              {"pkg/x/x_test.go", "func f() { time" + ".Sleep(1) }", waits},
		"a test that is skipped":          {"pkg/x/x_test.go", "func f() { t" + ".Skip() }", waits},
		"a path of somebody's machine":    {"pkg/x/x.go", `const x = "/root/src"`, machine},
		"such a path, in a comment":       {"pkg/x/x.go", "// It is in /root/src.", machine},
		"a path that ends like one of it": {"pkg/x/x.go", `const x = "/usr/root/src"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := tc.want
			if want != "" {
				want = tc.file + ":3: " + want
			}
			if got := finding(t, text, tc.file, "package a\n\n"+tc.line+"\n"); got != want {
				t.Errorf("found %q, want %q", got, want)
			}
		})
	}
}

func TestMeasure(t *testing.T) {
	function := func(lines int) string { return "func f() {" + strings.Repeat("\n", lines-1) + "}\n" }
	file := func(lines int) string { return "package a\n" + strings.Repeat("\n", lines-1) }
	for name, tc := range map[string]struct {
		file, text string
		want       map[string]int
	}{
		"a file at the limit":     {"pkg/x/x.go", file(maxFile), nil},
		"a file over it":          {"pkg/x/x.go", file(maxFile + 1), map[string]int{"pkg/x/x.go": maxFile + 1}},
		"a test over it":          {"pkg/x/x_test.go", file(maxFile + 1), nil},
		"a generated one over it": {"pkg/x/zz_generated.x.go", file(maxFile + 1), nil},
		"a function at the limit": {"pkg/x/x.go", "package a\n" + function(maxFunc), nil},
		"a function over it":      {"pkg/x/x.go", "package a\n" + function(maxFunc+1), map[string]int{"pkg/x/x.go:f": maxFunc + 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]int{}
			measure(given(t, tc.file, tc.text), got)
			if !maps.Equal(got, tc.want) {
				t.Errorf("measured %v, want %v", got, tc.want)
			}
			var findings []string
			compare(got, func(format string, args ...any) { findings = append(findings, fmt.Sprintf(format, args...)) })
			if len(findings) != len(tc.want) {
				t.Errorf("found %q", findings)
			}
		})
	}
}

// A file that may hold a client has to exist somewhere: a name that no controller
// uses any more is no exception.
func TestEveryShellExists(t *testing.T) {
	for _, name := range shells {
		if found, err := filepath.Glob(filepath.Join("..", "..", "pkg", "controller", "*", name)); err != nil || len(found) == 0 {
			t.Errorf("no controller has a file %s (%v)", name, err)
		}
	}
	if slices.Contains(shells, "plan.go") {
		t.Error("a plan may hold a client")
	}
}
