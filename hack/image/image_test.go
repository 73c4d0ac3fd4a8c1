package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// input is an image of this very test, which is an executable with modules.
func input(t *testing.T) options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"kube-controller-manager", "go-runner"} {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	license := filepath.Join(dir, "LICENSE")
	if err := os.WriteFile(license, []byte("free"), 0o600); err != nil {
		t.Fatal(err)
	}
	return options{
		binaries: []platform{{"amd64", dir}, {"arm64", dir}}, version: "v1", apiLevel: "v0", revision: "abc",
		created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), license: license, out: filepath.Join(t.TempDir(), "image.tar"),
	}
}

func TestTheSameInputGivesTheSameBytes(t *testing.T) {
	var archives [][]byte
	for range 2 {
		o := input(t)
		if err := write(o); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(o.out)
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, content)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives of the same input differ")
	}
}

func TestTheRootHasItsFilesAndDirectories(t *testing.T) {
	o := input(t)
	all, err := root(o.binaries[0], o.license)
	if err != nil {
		t.Fatal(err)
	}
	modes, last := map[string]int64{}, ""
	for _, f := range all {
		if f.Name <= last {
			t.Errorf("%s comes after %s", f.Name, last)
		}
		modes[f.Name], last = f.Mode, f.Name
	}
	for name, mode := range map[string]int64{
		"go-runner": 0o755, "usr/": 0o755, "usr/local/bin/kube-controller-manager": 0o755, "tmp/": 0o1777, "root/": 0o700, "var/log/": 0o755,
		certificates: 0o644, "usr/share/licenses/golang.org/x/mod/LICENSE": 0o644,
	} {
		if modes[name] != mode {
			t.Errorf("%s has mode %o, want %o", name, modes[name], mode)
		}
	}
	if got := strings.Count(string(authorities()), "BEGIN CERTIFICATE"); got < 50 {
		t.Errorf("%d certificates of authorities", got)
	}
}

func TestWhatIsMissingIsNamedInOneGo(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"nothing is given":   {nil, []string{"-binaries", "-created", "-version", "-api-level", "-revision", "-out"}},
		"no directory":       {[]string{"-binaries", "amd64"}, []string{"ARCH=DIR"}},
		"a time of no shape": {[]string{"-created", "today"}, []string{"today"}},
	} {
		_, err := parse(tc.args)
		for _, want := range tc.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not name %s", name, err, want)
			}
		}
	}
	o := input(t)
	o.binaries[0].dir = t.TempDir()
	if err := write(o); err == nil || !strings.Contains(err.Error(), "amd64") {
		t.Errorf("without executables it ends with %v", err)
	}
}
