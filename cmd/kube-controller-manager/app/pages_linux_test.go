package app

import (
	"testing"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// resident is how much of the process's files is in its memory, in bytes.
func resident(t *testing.T) uint64 {
	t.Helper()
	self, err := procfs.Self()
	if err != nil {
		t.Fatal(err)
	}
	status, err := self.NewStatus()
	if err != nil {
		t.Fatal(err)
	}
	return status.RssFile
}

func TestCodeThatOnlyTheStartNeededIsGivenBack(t *testing.T) {
	// Other tests may have given them back already.
	if err := adviseExecutable(unix.MADV_POPULATE_READ); err != nil {
		t.Fatal(err)
	}
	before := resident(t)
	if err := releaseExecutable(); err != nil {
		t.Fatal(err)
	}
	if after := resident(t); after > before/2 {
		t.Errorf("%d MiB of files in memory, %d before", after>>20, before>>20)
	}
}
