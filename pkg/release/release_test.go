package release

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

func TestTheVersionHasTheAPILevelOfTheLibraries(t *testing.T) {
	if !regexp.MustCompile(`^v1\.\d+\.\d+-kcm\.[1-9]\d*$`).MatchString(Version()) {
		t.Fatalf("the version is %q", Version())
	}
	modules, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if library := "k8s.io/client-go v0." + strings.TrimPrefix(APILevel(), "v1."); !strings.Contains(string(modules), "\t"+library+"\n") {
		t.Errorf("the API level is %s, and go.mod has no %s", APILevel(), library)
	}
}

// TestTheVersionIsWrittenOnce holds that what is built, installed and documented has it.
func TestTheVersionIsWrittenOnce(t *testing.T) {
	out, err := exec.Command("make", "--no-print-directory", "-C", "../..", "version").CombinedOutput()
	if want := Version() + " " + APILevel(); err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("make version says %q, %v, want %q", out, err, want)
	}
	for file, want := range map[string]string{
		"../../build/kube-controller-manager.yaml": "image: localhost/kube-controller-manager:" + Version() + "\n",
		"../../CHANGELOG.md":                       "## [" + Version() + "]",
	} {
		if content, err := os.ReadFile(file); err != nil || !strings.Contains(string(content), want) {
			t.Errorf("%s lacks %q, %v", file, want, err)
		}
	}
	older := regexp.MustCompile(regexp.QuoteMeta(suffix) + `\d+`)
	for _, file := range strings.Fields(tracked(t)) {
		content, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range older.FindAllString(string(content), -1) {
			if !strings.HasSuffix(Version(), found) {
				t.Errorf("%s names a release %s", file, found)
			}
		}
	}
}

// tracked are the files in which an operator copies the version from.
func tracked(t *testing.T) string {
	out, err := exec.Command("git", "-C", "../..", "ls-files", "README.md", "build/*.yaml", "docs/operate/*.md").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
