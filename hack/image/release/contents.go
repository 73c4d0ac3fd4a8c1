package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kube-kcm/kube-controller-manager/hack/image/files"
)

const (
	program = "kube-controller-manager"
	// sums is the file with the checksums of all others.
	sums = "SHA256SUMS"
)

// executables are those of a platform that exist, in the order in which they are listed.
// What is only in the image has no file of its own in a release.
var executables = []struct {
	name  string
	alone bool
}{{program, true}, {"kubectl-kcm", true}, {"go-runner", false}}

// write makes the directory new.
func write(o options) error {
	if err := os.RemoveAll(o.out); err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	all, err := contents(o)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b files.File) int { return strings.Compare(a.Name, b.Name) })
	var list bytes.Buffer
	for _, f := range all {
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(f.Content), f.Name)
	}
	for _, f := range append(all, files.File{Name: sums, Mode: 0o644, Content: list.Bytes()}) {
		if err := os.WriteFile(filepath.Join(o.out, f.Name), f.Content, os.FileMode(f.Mode)); err != nil {
			return err
		}
	}
	return nil
}

// contents are the files of a release but for the checksums.
func contents(o options) ([]files.File, error) {
	image, err := os.ReadFile(o.image)
	if err != nil {
		return nil, err
	}
	all := []files.File{{Name: program + "-" + o.version + "-image.tar", Mode: 0o644, Content: image}}
	var paths []string
	for _, p := range o.platforms {
		found, err := of(p)
		if err != nil {
			return nil, err
		}
		for _, e := range found {
			if paths = append(paths, e.path); e.alone {
				all = append(all, files.File{Name: e.name + "-" + o.version + "-" + p.file(), Mode: 0o755, Content: e.content})
			}
		}
		bill, err := sbom(o, p, found)
		if err != nil {
			return nil, err
		}
		all = append(all, files.File{Name: program + "-" + o.version + "-" + p.file() + ".cdx.json", Mode: 0o644, Content: bill})
	}
	licenses, err := files.Licenses(paths...)
	if err != nil {
		return nil, err
	}
	license, err := os.ReadFile(o.license)
	if err != nil {
		return nil, err
	}
	manifests, err := manifestsIn(o.manifests)
	if err != nil {
		return nil, err
	}
	for name, in := range map[string][]files.File{
		"licenses":  append(licenses, files.File{Name: program + "/LICENSE", Mode: 0o644, Content: license}),
		"manifests": manifests,
	} {
		archive, err := zipped(o, in)
		if err != nil {
			return nil, err
		}
		all = append(all, files.File{Name: program + "-" + o.version + "-" + name + ".tar.gz", Mode: 0o644, Content: archive})
	}
	return all, nil
}

// executable is one of a platform.
type executable struct {
	name, path string
	alone      bool
	content    []byte
}

func of(p platform) ([]executable, error) {
	var found []executable
	for _, e := range executables {
		from := filepath.Join(p.dir, e.name)
		content, err := os.ReadFile(from)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, executable{e.name, from, e.alone, content})
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no executable for %s in %s", p.name, p.dir)
	}
	return found, nil
}

// manifestsIn are the files of a directory that no Go program is made of.
func manifestsIn(dir string) ([]files.File, error) {
	var found []files.File
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json", ".md"}, path.Ext(name)) {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(dir, name)
		found = append(found, files.File{Name: path.Join("build", filepath.ToSlash(inside)), Mode: 0o644, Content: content})
		return err
	})
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("no manifest in %s", dir)
	}
	return found, err
}

// zipped has no time and no name in its head.
func zipped(o options, in []files.File) ([]byte, error) {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	if err := files.WriteTar(compressed, o.created, files.WithDirectories(in)); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
