package harness

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Usage is what a process has needed so far.
type Usage struct {
	// User and System are CPU times, in steps of 10 ms.
	User, System time.Duration
	// PeakKiB and ResidentKiB are the highest and the present resident memory,
	// AnonymousKiB the present part that is no page of the executable.
	PeakKiB, ResidentKiB, AnonymousKiB int
	// ReadBytes and WrittenBytes went through read and write calls: those of
	// sockets, and of the few files that a controller manager opens.
	ReadBytes, WrittenBytes int64
}

// CPU is user and system time.
func (u Usage) CPU() time.Duration { return u.User + u.System }

// Usage reads what the process has needed; it fails once the process has ended.
func (p *Process) Usage() (Usage, error) {
	var texts [3]string
	for i, name := range []string{"stat", "status", "io"} {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.Pid(), name))
		if err != nil {
			return Usage{}, fmt.Errorf("read the usage of %s: %w", p.name, err)
		}
		texts[i] = string(content)
	}
	u, err := parseUsage(texts[0], texts[1], texts[2])
	if err != nil {
		return Usage{}, fmt.Errorf("read the usage of %s: %w", p.name, err)
	}
	return u, nil
}

// parseUsage reads the files stat, status and io of /proc.
func parseUsage(stat, status, io string) (Usage, error) {
	// The command's name, in parentheses, may hold spaces.
	_, rest, ok := strings.Cut(stat, ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 13 {
		return Usage{}, fmt.Errorf("odd stat: %q", stat)
	}
	values := map[string]int64{}
	for _, text := range []string{status, io} {
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(line, ":")
			if words := strings.Fields(value); len(words) > 0 {
				if n, err := strconv.ParseInt(words[0], 10, 64); err == nil {
					values[name] = n
				}
			}
		}
	}
	for i, name := range map[int]string{11: "utime", 12: "stime"} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return Usage{}, fmt.Errorf("odd %s: %w", name, err)
		}
		values[name] = n
	}
	for _, name := range []string{"VmHWM", "VmRSS", "RssAnon", "rchar", "wchar"} {
		if _, ok := values[name]; !ok {
			return Usage{}, fmt.Errorf("no %s", name)
		}
	}
	const tick = 10 * time.Millisecond // Linux counts in hundredths of a second for all programs
	return Usage{
		User: time.Duration(values["utime"]) * tick, System: time.Duration(values["stime"]) * tick,
		PeakKiB: int(values["VmHWM"]), ResidentKiB: int(values["VmRSS"]), AnonymousKiB: int(values["RssAnon"]),
		ReadBytes: values["rchar"], WrittenBytes: values["wchar"],
	}, nil
}
