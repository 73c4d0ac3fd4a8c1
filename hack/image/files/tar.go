// Package files has what archives of a release are made of: files with modes, tar files
// that are the same for the same input, and the licences of what an executable is built
// from.
package files

import (
	"archive/tar"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
)

// File is a file of an archive, or a directory, whose name ends with a slash. It belongs to
// root.
type File struct {
	Name    string
	Mode    int64
	Content []byte
}

// WithDirectories adds the directories that the files stand in, and sorts all by name: a
// directory comes before what is in it.
func WithDirectories(files []File) []File {
	known := map[string]bool{}
	for _, f := range files {
		known[f.Name] = true
	}
	for _, f := range slices.Clone(files) {
		for dir := path.Dir(strings.TrimSuffix(f.Name, "/")); dir != "."; dir = path.Dir(dir) {
			if name := dir + "/"; !known[name] {
				known[name] = true
				files = append(files, File{name, 0o755, nil})
			}
		}
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files
}

// WriteTar writes files in their order, all with one time.
func WriteTar(to io.Writer, at time.Time, files []File) error {
	archive := tar.NewWriter(to)
	for _, f := range files {
		header := &tar.Header{Name: f.Name, Mode: f.Mode, Size: int64(len(f.Content)), ModTime: at.UTC(), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if strings.HasSuffix(f.Name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("write %s: %w", f.Name, err)
		}
		if _, err := archive.Write(f.Content); err != nil {
			return fmt.Errorf("write %s: %w", f.Name, err)
		}
	}
	return archive.Close()
}
