package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// hostFiles begins the names of the files of a story that the manager finds on its host.
const hostFiles = "host/"

// writeHost puts the story's files for the manager's host into a directory of the
// control plane, where $HOST leads. Scripts are executable.
func (s *suite) writeHost(story *Story) error {
	for name, content := range story.Files {
		rest, is := strings.CutPrefix(name, hostFiles)
		if !is {
			continue
		}
		path := filepath.Join(s.cp.Dir, hostFiles, story.Name, rest)
		mode := os.FileMode(0o644)
		if strings.HasPrefix(content, "#!") {
			mode = 0o755
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write %s of the story: %w", name, err)
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			return fmt.Errorf("write %s of the story: %w", name, err)
		}
	}
	return nil
}
