package harness

import (
	"testing"
	"time"
)

func TestParseUsage(t *testing.T) {
	stat := "77 (a b) S 1 77 77 0 -1 4194560 100 0 0 0 250 50 0 0 20 0"
	status := "Name:\ta b\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\nRssAnon:\t  512 kB\n"
	io := "rchar: 9000\nwchar: 70\nread_bytes: 0\n"
	if _, err := parseUsage("77 (a", status, io); err == nil {
		t.Error("a cut stat is taken")
	}
	if _, err := parseUsage(stat, "Name:\ta\n", io); err == nil {
		t.Error("a status without memory is taken")
	}
	got, err := parseUsage(stat, status, io)
	want := Usage{User: 2500 * time.Millisecond, System: 500 * time.Millisecond, PeakKiB: 2048, ResidentKiB: 1024, AnonymousKiB: 512, ReadBytes: 9000, WrittenBytes: 70}
	if err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	if got.CPU() != 3*time.Second {
		t.Errorf("CPU %s, want 3s", got.CPU())
	}
}
