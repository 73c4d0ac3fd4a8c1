package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

// TestAModuleOutsideUsesTheKit gets the kit of HEAD as a user does, into a module that knows
// nothing of this tree, and runs the tests of its example there.
func TestAModuleOutsideUsesTheKit(t *testing.T) {
	proxy, user := t.TempDir(), t.TempDir()
	head, err := exec.Command("git", "-C", root, "rev-parse", "HEAD").Output()
	if err != nil {
		t.Fatal(err)
	}
	// A version that nobody else has, as the cache of modules keeps what it got.
	version := fmt.Sprintf("v0.0.1-test.x%x", sha256.Sum256([]byte(t.TempDir()+string(head))))[:28]
	sums, err := publish(root, version, proxy)
	if err != nil {
		t.Fatal(err)
	}
	cache := strings.TrimSpace(command(t, user, nil, "env", "GOMODCACHE"))
	proxies := "file://" + proxy + ",file://" + cache + "/cache/download," + strings.TrimSpace(command(t, user, nil, "env", "GOPROXY"))
	env := []string{"GOWORK=off", "GOFLAGS=-mod=mod -modcacherw", "GOPROXY=" + proxies, "GONOSUMDB=" + modulePath, "CGO_ENABLED=0"}
	t.Cleanup(func() {
		for _, left := range []string{filepath.Join(cache, modulePath+"@"+version), filepath.Join(cache, "cache", "download", modulePath, "@v", version+".*")} {
			found, _ := filepath.Glob(left) // the pattern is sound
			for _, name := range found {
				if err := os.RemoveAll(name); err != nil {
					t.Error(err)
				}
			}
		}
	})

	command(t, user, env, "mod", "init", "example.com/user")
	command(t, user, env, "get", modulePath+"/examples/expiry@"+version)
	if got := command(t, user, env, "test", "-vet=off", "-run", "TestPlan|TestItDeletes", modulePath+"/examples/expiry"); !strings.Contains(got, "ok") {
		t.Errorf("the example says %s", got)
	}
	gosum, err := os.ReadFile(filepath.Join(user, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(sums) {
		if !strings.Contains(string(gosum), line) {
			t.Errorf("the go command has other sums than %s", line)
		}
	}
	if archived := command(t, user, env, "list", "-m", "-f", "{{.Dir}}", modulePath); !exists(filepath.Join(strings.TrimSpace(archived), "LICENSE")) {
		t.Error("the module has no licence")
	}
}

// TestNothingIsReplaced holds that the modules that others get stand on their own: what a
// go.mod replaces holds for its own tree only, and go install refuses it.
func TestNothingIsReplaced(t *testing.T) {
	for _, name := range []string{"go.mod", folder + "/go.mod"} {
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if found := regexp.MustCompile(`(?m)^\s*(replace\b|exclude\b).*`).FindString(string(content)); found != "" {
			t.Errorf("%s: %s", name, found)
		}
	}
	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	work, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		t.Fatal(err)
	}
	required := regexp.MustCompile(regexp.QuoteMeta(modulePath) + ` (v\S+)`).FindStringSubmatch(string(gomod))
	if required == nil || !strings.Contains(string(work), "replace "+required[0]+" => ./"+folder) {
		t.Errorf("go.mod requires %v, and go.work replaces another:\n%s", required, work)
	}
}

func TestAWrongVersionIsNamed(t *testing.T) {
	for _, version := range []string{"", "0.1.0", "v2.0.0"} {
		if err := run(root, version, t.TempDir(), io.Discard); err == nil || !strings.Contains(err.Error(), `"`+version+`"`) {
			t.Errorf("%q: %v", version, err)
		}
	}
}

func exists(name string) bool { _, err := os.Stat(name); return err == nil }

func command(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
