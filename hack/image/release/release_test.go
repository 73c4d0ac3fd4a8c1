package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

const executableFile = "kube-controller-manager-v9.9.9-kcm.9-linux-amd64"

// released makes a release of this very test, which is an executable with modules.
func released(t *testing.T) options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	err = errors.Join(
		os.MkdirAll(filepath.Join(dir, "bin"), 0o755), os.MkdirAll(filepath.Join(dir, "build", "examples"), 0o755),
		os.Symlink(self, filepath.Join(dir, "bin", "kube-controller-manager")), os.Symlink(self, filepath.Join(dir, "bin", "go-runner")),
		os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("free"), 0o600), os.WriteFile(filepath.Join(dir, "image.tar"), []byte("image"), 0o600),
		os.WriteFile(filepath.Join(dir, "build", "pod.yaml"), []byte("kind: Pod"), 0o600), os.WriteFile(filepath.Join(dir, "build", "examples", "main.go"), []byte("package main"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	o := options{
		version: "v9.9.9-kcm.9", apiLevel: "v9.9.9", kit: "v0.9.0", created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		platforms: []platform{{"linux/amd64", filepath.Join(dir, "bin")}},
		image:     filepath.Join(dir, "image.tar"), manifests: filepath.Join(dir, "build"), license: filepath.Join(dir, "LICENSE"), out: filepath.Join(dir, "out"),
	}
	if err := write(o); err != nil {
		t.Fatal(err)
	}
	return o
}

func contentOf(t *testing.T, o options, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(o.out, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestTheChecksumsAreThoseOfAllFiles(t *testing.T) {
	o := released(t)
	var listed []string
	for line := range strings.Lines(string(contentOf(t, o, sums))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if is := sha256.Sum256(contentOf(t, o, name)); hex.EncodeToString(is[:]) != sum {
			t.Errorf("the checksum of %s is wrong", name)
		}
		listed = append(listed, name)
	}
	entries, err := os.ReadDir(o.out)
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, entry := range entries {
		if entry.Name() != sums {
			there = append(there, entry.Name())
		}
	}
	prefix := "kube-controller-manager-v9.9.9-kcm.9-"
	want := []string{prefix + "image.tar", prefix + "licenses.tar.gz", executableFile, prefix + "linux-amd64.cdx.json", prefix + "manifests.tar.gz"}
	if slices.Sort(want); !slices.Equal(there, want) || !slices.Equal(listed, there) {
		t.Errorf("there are %q, listed are %q, want %q", there, listed, want)
	}
	if info, err := os.Stat(filepath.Join(o.out, executableFile)); err != nil || info.Mode().Perm()&0o111 == 0 {
		t.Errorf("the executable: %v, %v", info, err)
	}
}

func TestTheBillNamesEveryModule(t *testing.T) {
	o := released(t)
	bom := cdx.BOM{}
	if err := cdx.NewBOMDecoder(bytes.NewReader(contentOf(t, o, executableFile+".cdx.json")), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	versions, licences := map[string]string{}, map[string]string{}
	for _, c := range *bom.Components {
		if versions[c.Name] = c.Version; c.Licenses != nil {
			licences[c.Name] = (*c.Licenses)[0].License.ID
		}
	}
	info, err := buildinfo.ReadFile(filepath.Join(o.out, executableFile))
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Deps) < 3 || versions["std"] != info.GoVersion {
		t.Errorf("%d modules, std is %q", len(info.Deps), versions["std"])
	}
	for _, m := range info.Deps {
		if versions[m.Path] != m.Version || licences[m.Path] == "" {
			t.Errorf("%s %s is there as %q under %q", m.Path, m.Version, versions[m.Path], licences[m.Path])
		}
	}
	if got := versions[info.Main.Path]; got != o.version {
		t.Errorf("our own module is there as %q", got)
	}
	if bom.SerialNumber != "" || bom.Metadata.Timestamp != "2026-01-02T03:04:05Z" || bom.Metadata.Component.Version != o.version {
		t.Errorf("it is %q of %s for %s", bom.SerialNumber, bom.Metadata.Timestamp, bom.Metadata.Component.Version)
	}
}

func TestArchivesHoldManifestsAndLicences(t *testing.T) {
	o := released(t)
	for name, want := range map[string][]string{
		"manifests": {"build/pod.yaml"},
		"licenses":  {"kube-controller-manager/LICENSE", "go/LICENSE", "golang.org/x/mod/LICENSE"},
	} {
		zipped, err := gzip.NewReader(bytes.NewReader(contentOf(t, o, "kube-controller-manager-v9.9.9-kcm.9-"+name+".tar.gz")))
		if err != nil {
			t.Fatal(err)
		}
		var there []string
		for archive := tar.NewReader(zipped); ; {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			there = append(there, header.Name)
		}
		for _, file := range want {
			if !slices.Contains(there, file) {
				t.Errorf("%s has no %s: %q", name, file, there)
			}
		}
		if slices.ContainsFunc(there, func(file string) bool { return strings.HasSuffix(file, ".go") }) {
			t.Errorf("%s has code: %q", name, there)
		}
	}
}

func TestTheSameInputGivesTheSameRelease(t *testing.T) {
	a, b := released(t), released(t)
	if one, other := contentOf(t, a, sums), contentOf(t, b, sums); !bytes.Equal(one, other) {
		t.Errorf("two releases of the same input differ:\n%s\n%s", one, other)
	}
}

func TestWhatIsMissingIsNamedInOneGo(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"nothing is given":   {nil, []string{"-api-level", "-binaries", "-created", "-image", "-kit", "-license", "-manifests", "-out", "-version"}},
		"no system":          {[]string{"-binaries", "amd64=dir"}, []string{"OS/ARCH=DIR"}},
		"a time of no shape": {[]string{"-created", "today"}, []string{"today"}},
	} {
		_, err := parse(tc.args)
		for _, want := range tc.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not name %s", name, err, want)
			}
		}
	}
	o := options{platforms: []platform{{"linux/arm64", t.TempDir()}}, image: os.Args[0], out: t.TempDir()}
	if err := write(o); err == nil || !strings.Contains(err.Error(), "linux/arm64") {
		t.Errorf("without executables it ends with %v", err)
	}
}
