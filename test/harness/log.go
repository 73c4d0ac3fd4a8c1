package harness

import (
	"io"
	"os"
	"strings"
)

// lineWidth is where Tail cuts a line: some log whole objects.
const lineWidth = 400

// Tail is the last lines of what a file holds from an offset on.
func Tail(path string, from int64, lines int) string {
	all := strings.Split(strings.TrimRight(readFrom(path, from), "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	for i, line := range all {
		if len(line) > lineWidth {
			all[i] = line[:lineWidth] + " ..."
		}
	}
	return strings.Join(all, "\n")
}

// readFrom returns what it can read; a missing file is empty.
func readFrom(path string, from int64) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return ""
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return ""
	}
	return string(content)
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
