package flex

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// install puts a driver into a directory: a script that writes down how it is called.
func install(t *testing.T, dir, entry, name, script string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, entry), 0o755); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("#!/bin/sh\necho \"$@\" >>%s/calls\n%s\n", dir, script)
	program := filepath.Join(dir, entry, name)
	if err := os.WriteFile(program+".new", []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(program+".new", program); err != nil {
		t.Fatal(err)
	}
}

func calls(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const works = `case $1 in
init) echo '{"status":"Success","capabilities":{"attach":true}}';;
attach) echo '{"status":"Success","device":"/dev/x"}';;
isattached) echo '{"status":"Success","attached":false}';;
detach) echo '{"status":"Success"}';;
esac`

func opened(t *testing.T, dir string) *Drivers {
	t.Helper()
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	d.scan(t.Context())
	return d
}

func TestADriverIsTold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "us")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	install(t, dir, "acme~disk", "disk", works)
	d := opened(t, dir)
	volume := volumes.Flex{Driver: "acme/disk", FSType: "ext4", ReadOnly: true, Options: map[string]string{"a": "b"}}
	device, err := d.Attach(t.Context(), volume, "pv", "n1")
	if device != "/dev/x" || err != nil {
		t.Errorf("attached at %q: %v", device, err)
	}
	if is, err := d.Attached(t.Context(), volume, "pv", "n1"); is || err != nil {
		t.Errorf("attached %t: %v", is, err)
	}
	if err := d.Detach(t.Context(), "acme/disk", "pv", "n1"); err != nil {
		t.Error(err)
	}
	const options = `{"a":"b","kubernetes.io/fsType":"ext4","kubernetes.io/pvOrVolumeName":"pv","kubernetes.io/readwrite":"ro"} n1`
	if got, want := calls(t, dir), "init\nattach "+options+"\nisattached "+options+"\ndetach pv n1\n"; got != want {
		t.Errorf("was called\n%s", got)
	}
	if err := d.Detach(t.Context(), "acme/other", "pv", "n1"); err == nil || d.Attaches("acme/other") {
		t.Error("there is no such driver")
	}
}

func TestWhatDriversAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		script   string
		attaches bool
		err      string // of an attach
	}{
		"it works":                      {works, true, ""},
		"it says nothing of itself":     {`echo '{"status":"Success"}'`, true, ""},
		"it does not attach":            {`echo '{"status":"Success","capabilities":{"attach":false}}'`, false, ""},
		"it knows no attach":            {`[ $1 = init ] && echo '{"status":"Success"}' || { echo '{"status":"Not supported"}'; exit 1; }`, true, ""},
		"it fails":                      {`[ $1 = init ] && echo '{"status":"Success"}' || { echo '{"status":"Failure","message":"no disk"}'; exit 1; }`, true, "attach command failed, status: Failure, reason: no disk"},
		"it ends without a word":        {`[ $1 = init ] && echo '{"status":"Success"}' || exit 3`, true, "unexpected end of JSON input"},
		"it says success and fails":     {`[ $1 = init ] && echo '{"status":"Success"}' || { echo '{"status":"Success"}'; exit 3; }`, true, "exit status 3"},
		"it leaves something behind":    {"(sleep 20) &\n" + works, true, ""},
		"it says what nobody reads":     {`[ $1 = init ] && echo '{"status":"Success"}' || echo hello`, true, "invalid character 'h' looking for beginning of value"},
		"it cannot begin: no driver":    {`exit 1`, false, "there is no FlexVolume driver acme/disk"},
		"it does not know how to begin": {`echo '{"status":"Not supported"}'`, false, "there is no FlexVolume driver acme/disk"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			install(t, dir, "acme~disk", "disk", tc.script)
			d := opened(t, dir)
			if d.Attaches("acme/disk") != tc.attaches {
				t.Errorf("attaches: %t", !tc.attaches)
			}
			_, err := d.Attach(t.Context(), volumes.Flex{Driver: "acme/disk"}, "pv", "n1")
			if (err == nil) != (tc.err == "") || err != nil && !strings.HasPrefix(err.Error(), tc.err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Who installs drivers may put a new directory in the place of the old one.
func TestADirectoryThatIsMadeAgainIsFollowed(t *testing.T) {
	for name, take := range map[string]func(dir string) error{
		"removed": os.RemoveAll,
		"renamed": func(dir string) error { return os.Rename(dir, dir+".old") },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "drivers")
			d := opened(t, dir)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); d.Run(ctx) }()
			defer func() { cancel(); <-ended }()
			for range 2 {
				install(t, dir, "acme~disk", "disk", works)
				fixture.Eventually(t, "it is there", func() bool { return d.Attaches("acme/disk") })
				if err := take(dir); err != nil {
					t.Fatal(err)
				}
				fixture.Eventually(t, "it is gone", func() bool { return !d.Attaches("acme/disk") })
				if err := os.RemoveAll(dir + ".old"); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestDriversComeAndGo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "drivers")
	d := opened(t, dir)
	changed := make(chan string, 100)
	d.OnChange(func(name string) { changed <- name })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); d.Run(ctx) }()
	install(t, dir, "acme~disk", "disk", works)
	if name := <-changed; name != "acme/disk" {
		t.Errorf("%s came", name)
	}
	fixture.Eventually(t, "it attaches", func() bool { return d.Attaches("acme/disk") })
	if err := os.RemoveAll(filepath.Join(dir, "acme~disk")); err != nil {
		t.Fatal(err)
	}
	if name := <-changed; name != "acme/disk" {
		t.Errorf("%s went", name)
	}
	fixture.Eventually(t, "it is gone", func() bool { return !d.Attaches("acme/disk") })
	install(t, dir, "plain", "plain", works)
	fixture.Eventually(t, "one without a vendor came", func() bool { return d.Attaches("plain") })
	cancel()
	<-ended
}

// A program in the place of another may be able to do other things.
func TestADriverThatIsReplacedIsAskedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "drivers")
	d := opened(t, dir)
	var changed []string
	d.OnChange(func(name string) { changed = append(changed, name) })
	for _, tc := range []struct {
		script   string
		attaches bool
		changes  int
	}{
		{works, true, 1},
		{strings.Replace(works, `"attach":true`, `"attach":false`, 1), false, 2},
		{"exit 1", false, 2}, // it keeps what is known of it
		{works, true, 3},
	} {
		install(t, dir, "acme~disk", "disk", tc.script)
		for range 2 {
			d.scan(t.Context())
		}
		if d.Attaches("acme/disk") != tc.attaches || len(changed) != tc.changes {
			t.Errorf("with %q it attaches: %t; changed %q", tc.script, d.Attaches("acme/disk"), changed)
		}
	}
	if n := strings.Count(calls(t, dir), "init"); n != 4 {
		t.Errorf("it was asked %d times", n)
	}
}

// A driver that fails and writes into its directory would be run without a pause.
func TestADriverThatFailsIsAskedAgainWhenItChangesOrAfterAWhile(t *testing.T) {
	dir := t.TempDir()
	install(t, dir, "acme~disk", "disk", "exit 1")
	d := opened(t, dir)
	program := filepath.Join(dir, "acme~disk", "disk")
	for _, tc := range []struct {
		name   string
		change func()
		asked  int
	}{
		{"nothing has changed", func() {}, 1},
		{"it was replaced", func() { install(t, dir, "acme~disk", "disk", "exit 2") }, 2},
		{"it has grown", func() { grow(t, program) }, 3},
		{"it has waited", func() { d.pause = 0 }, 4},
	} {
		tc.change()
		d.scan(t.Context())
		if n := strings.Count(calls(t, dir), "init"); n != tc.asked {
			t.Errorf("%s: it was asked %d times", tc.name, n)
		}
	}
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if d.scan(t.Context()); d.again() != nil {
		t.Error("what is gone is looked at again")
	}
}

// grow writes to a file within what its time of change can tell.
func grow(t *testing.T, file string) {
	t.Helper()
	was, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(text, "# more\n"...), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, was.ModTime(), was.ModTime()); err != nil {
		t.Fatal(err)
	}
}

// What a driver needs may come to a place that nobody watches.
func TestADriverThatFailsIsLookedAtByItself(t *testing.T) {
	dir, ready := t.TempDir(), filepath.Join(t.TempDir(), "ready")
	install(t, dir, "acme~disk", "disk", "[ -e "+ready+" ] || exit 1; "+works)
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	d.pause = 10 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); d.Run(ctx) }()
	fixture.Eventually(t, "it has failed", d.Ready)
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "it is known", func() bool { return d.Attaches("acme/disk") })
	cancel()
	<-ended
}

// That a directory cannot be read does not mean that nothing is in it.
func TestADirectoryThatCannotBeReadTakesNoDriverAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "drivers")
	d := opened(t, dir)
	install(t, dir, "acme~disk", "disk", works)
	d.scan(t.Context())
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if d.scan(t.Context()); !d.Attaches("acme/disk") {
		t.Error("the driver is gone while nobody can look")
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if d.scan(t.Context()); d.Attaches("acme/disk") {
		t.Error("the driver is there without its directory")
	}
}

func TestADirectoryThatCannotBeMadeIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(file, "drivers")); err == nil {
		t.Error("a file is no directory")
	}
}

// Whoever needs the drivers waits for a slow one, and nobody else does.
func TestDriversAreAskedAfterTheStart(t *testing.T) {
	dir := t.TempDir()
	install(t, dir, "acme~disk", "disk", "while [ ! -e $(dirname $0)/go ]; do sleep 0.01; done; "+works)
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); d.Run(ctx) }()
	if d.Ready() || d.Attaches("acme/disk") {
		t.Error("a driver is known that has not answered")
	}
	if err := os.WriteFile(filepath.Join(dir, "acme~disk", "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "it is ready", d.Ready)
	if !d.Attaches("acme/disk") {
		t.Error("the driver is not known")
	}
	cancel()
	<-ended
}
