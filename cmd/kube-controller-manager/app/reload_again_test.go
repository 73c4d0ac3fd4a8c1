package app

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/config"
)

// Clients that began without a rate have limiters of their own.
func TestABurstNeedsARateToChange(t *testing.T) {
	r := newRig(t)
	for i, s := range r.present {
		if s.Flag == "kube-api-qps" {
			r.present[i].Value.Text = "0"
		}
	}
	r.write(t, strings.NewReplacer("qps 20", "qps 0", "burst 30", "burst 40").Replace(before))
	if r.logged("needs a restart", "kube-api-burst", "40") != 1 || r.logged("Setting changed", "from") != 0 || len(r.waiting) != 1 {
		t.Errorf("%v waits; logged:\n%s", r.waiting, r.log.GetBuffer().String())
	}
}

// TestAFileThatAnotherOneSpoiledIsReadAgain has the fault lie in a file that this one names.
func TestAFileThatAnotherOneSpoiledIsReadAgain(t *testing.T) {
	r := newRig(t)
	content := strings.Replace(before, "syncs 5", "syncs 9", 1)
	spoiled := &spoiled{File: r.File, why: errors.New("the key does not match")}
	r.File = spoiled
	r.write(t, content)
	aMinute := func() {
		for range refusedLooks {
			r.look()
		}
	}
	aMinute()
	if n := r.logged("cannot be used", "does not match"); n != 1 || r.loop.workers.Load() != 0 || spoiled.reads != 2 {
		t.Errorf("%d lines, %d workers, %d reads", n, r.loop.workers.Load(), spoiled.reads)
	}
	spoiled.why = nil
	aMinute()
	if n := r.loop.workers.Load(); n != 9 || r.logged("in order again") != 1 {
		t.Errorf("%d workers, want 9; logged:\n%s", n, r.log.GetBuffer().String())
	}
}

// TestAFileThatDoesNotAnswerHoldsUpNoStop has the file be a pipe that nobody writes to.
func TestAFileThatDoesNotAnswerHoldsUpNoStop(t *testing.T) {
	r := newRig(t)
	path := filepath.Join(t.TempDir(), "config")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	opened := make(chan struct{})
	r.File = &piped{File: r.File, path: path, asked: sync.OnceFunc(func() { close(opened) })}
	stop := r.followFile(t.Context(), nil)
	<-opened
	stopped := make(chan struct{})
	go func() {
		stop()
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-time.After(time.Minute):
		t.Error("the stop waits for the file")
	}
	if f, err := os.OpenFile(path, os.O_RDWR, 0); err == nil { // let the reader go
		_ = f.Close()
	}
}

// piped is a file at another path.
type piped struct {
	config.File
	path  string
	asked func()
}

func (p *piped) Path() string {
	p.asked()
	return p.path
}

// spoiled cannot be read as long as there is a reason.
type spoiled struct {
	config.File
	why   error
	reads int
}

func (s *spoiled) Read(content []byte) ([]config.Setting, error) {
	s.reads++
	if s.why != nil {
		return nil, s.why
	}
	return s.File.Read(content)
}
