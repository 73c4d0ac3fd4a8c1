package hostpath

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOnlyWhatIsBelowTmpIsDeleted(t *testing.T) {
	for given, want := range map[string]string{
		"/tmp/a":                "a",
		"/tmp/hostpath_pv/u/":   "hostpath_pv/u",
		"/tmp//a/./b":           "a/b",
		"/tmp/..a":              "..a",
		"/tmp":                  "",
		"/tmp/":                 "",
		"/tmp//":                "",
		"/tmp/.":                "",
		"/tmp/../etc":           "",
		"/tmp/a/../b":           "",
		"/tmp/a/../../etc":      "",
		"/var/tmp/a":            "",
		"/data/tmp/a":           "",
		"/tmpa":                 "",
		"tmp/a":                 "",
		"/":                     "",
		"":                      "",
		"/../tmp/a":             "",
		"/tmp\n/tmp/a":          "",
		"/etc\x00/tmp/a":        "",
		"/home/tmp/hostpath_pv": "",
	} {
		t.Run(given, func(t *testing.T) {
			got, err := below(given)
			if got != want || (err == nil) != (want != "") {
				t.Errorf("got %q, %v", got, err)
			}
			if err != nil && err.Error() != "host_path deleter only supports /tmp/.+ but received provided "+given {
				t.Errorf("says %q", err)
			}
		})
	}
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Lstat(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return err == nil
}

func TestADirectoryIsMadeAndDeletedWithAllThatIsInIt(t *testing.T) {
	disk := Disk{t.TempDir()}
	got, err := disk.Provision("0b1c")
	if err != nil || got != "/tmp/hostpath_pv/0b1c" {
		t.Fatalf("got %q, %v", got, err)
	}
	directory := filepath.Join(disk.top, "hostpath_pv/0b1c")
	info, err := os.Stat(directory)
	if err != nil || !info.IsDir() || info.Mode().Perm() != 0o750 {
		t.Fatalf("got %v, %v", info, err)
	}
	if err := os.WriteFile(filepath.Join(directory, "data"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := disk.Provision("other"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second one finds nothing, which is as good
		if err := disk.Delete(got); err != nil {
			t.Fatal(err)
		}
	}
	if exists(t, directory) || !exists(t, filepath.Join(disk.top, "hostpath_pv/other")) {
		t.Error("another directory was deleted")
	}
}

func TestASymbolicLinkLeadsNowhere(t *testing.T) {
	disk, elsewhere := Disk{t.TempDir()}, t.TempDir()
	precious := filepath.Join(elsewhere, "precious")
	if err := os.Mkdir(precious, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(disk.top, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, filepath.Join(disk.top, provisioned)); err != nil {
		t.Fatal(err)
	}
	if err := disk.Delete("/tmp/link/precious"); err == nil {
		t.Error("no error")
	}
	if _, err := disk.Provision("u"); err == nil || exists(t, filepath.Join(elsewhere, "u")) {
		t.Errorf("made a directory elsewhere: %v", err)
	}
	if err := disk.Delete("/tmp/link"); err != nil { // the link itself is in there
		t.Error(err)
	}
	if !exists(t, precious) || exists(t, filepath.Join(disk.top, "link")) {
		t.Error("what the link leads to was deleted")
	}
}

func TestADiskThatIsNotThereIsAnError(t *testing.T) {
	disk := Disk{filepath.Join(t.TempDir(), "none")}
	if _, err := disk.Provision("u"); err == nil {
		t.Error("made a directory")
	}
	if err := disk.Delete("/tmp/a"); err == nil {
		t.Error("says that it is deleted")
	}
}
