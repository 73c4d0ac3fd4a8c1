package app

import (
	"testing"

	"github.com/prometheus/procfs"
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
	before := resident(t)
	if err := releaseExecutable(); err != nil {
		t.Fatal(err)
	}
	if after := resident(t); after > before/2 {
		t.Errorf("%d MiB of files in memory, %d before", after>>20, before>>20)
	}
}
