package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// binary writes a program that says this of its build.
func binary(t *testing.T, says string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "manager")
	script := "#!/bin/sh\n[ \"$1\" = --version=raw ] && echo 'version.Info{" + says + "}'\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAReportNamesTheCommitOfOurBuild(t *testing.T) {
	reference := binary(t, `GitVersion:"v1.36.3", GitCommit:"$Format:%H$", GitTreeState:"clean"`)
	sum := strings.Repeat("0a", 20)
	for name, tc := range map[string]struct{ says, want, refused string }{
		"a build of a commit": {`GitVersion:"v1.36.3", GitCommit:"` + sum + `", GitTreeState:"clean"`,
			"ours: v1.36.3, build of 0a0a0a0a0a0a --v=2", ""},
		"a build with changes": {`GitVersion:"v1.36.3", GitCommit:"` + sum + `", GitTreeState:"dirty"`,
			"ours: v1.36.3, build of 0a0a0a0a0a0a with changes that are not committed --v=2", ""},
		"a build without a stamp": {`GitVersion:"v0.0.0", GitCommit:"$Format:%H$", GitTreeState:""`,
			"", `the build does not name its commit, but "$Format:%H$"; run make build`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := versions(t.Context(), &options{reference: reference, ours: binary(t, tc.says), oursFlags: []string{"--v=2"}})
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Fatalf("got the error %v, want %s", err, tc.refused)
				}
				return
			}
			if err != nil || len(got) != 2 || got[1] != tc.want || !strings.HasSuffix(got[0], ": v1.36.3") {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}
