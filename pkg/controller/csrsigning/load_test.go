package csrsigning

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// A file that cannot be read to its end, as on a server that is gone, holds up one look
// and nobody who signs.
func TestAFileThatHangsHoldsNobodyUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca.crt")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &pair{files: Files{Cert: path, Key: os.DevNull}}
	looked := make(chan change, 1)
	go func() { looked <- p.look(noon) }()
	var writer *os.File
	fixture.Eventually(t, "the look reads the file", func() bool {
		var err error
		writer, err = os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil
	})
	t.Cleanup(func() { _ = writer.Close() })

	others := make(chan change, 1)
	go func() { p.authority(); others <- p.look(noon.Add(time.Minute)) }()
	select {
	case found := <-others:
		if found != (change{}) {
			t.Errorf("the other look found %+v", found)
		}
	case <-time.After(20 * time.Second):
		t.Error("the other look waits for the file")
	}
	if _, err := writer.WriteString("no certificate"); err != nil {
		t.Fatal(err)
	}
	_ = writer.Close()
	if found := <-looked; found.trouble == nil {
		t.Error("the first look has not read the file")
	}
}
