package app

import (
	"debug/elf"
	"fmt"
	"os"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// releaseExecutable takes the program's own code and constants out of its memory.
// A start touches nearly all of them, work only a part, and that part comes back
// from the page cache as it is used. Nothing that was ever written is touched:
// code never is, constants are not in a program without relocations.
func releaseExecutable() error { return adviseExecutable(unix.MADV_DONTNEED) }

// adviseExecutable gives the system this advice on the executable's pages that
// are only ever read.
func adviseExecutable(advice uintptr) error {
	path, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("find the executable: %w", err)
	}
	program, err := elf.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("read the executable: %w", err)
	}
	defer func() { _ = program.Close() }()
	self, err := procfs.Self()
	if err != nil {
		return fmt.Errorf("read the mappings: %w", err)
	}
	maps, err := self.ProcMaps()
	if err != nil {
		return fmt.Errorf("read the mappings: %w", err)
	}
	for _, m := range maps {
		constants := m.Perms.Read && program.Type == elf.ET_EXEC
		if m.Pathname != path || m.Perms.Write || !m.Perms.Execute && !constants {
			continue
		}
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.StartAddr, m.EndAddr-m.StartAddr, advice); errno != 0 {
			return fmt.Errorf("advise on the pages of the executable: %w", errno)
		}
	}
	return nil
}
