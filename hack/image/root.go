package main

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	licenses     = "usr/share/licenses"
	certificates = "etc/ssl/certs/ca-certificates.crt"
)

// file is a file or a directory of the image, which belongs to root.
type file struct {
	name    string
	mode    int64
	content []byte
}

// root returns the files of an image in their order, every directory before what is in it.
func root(p platform, license string) ([]file, error) {
	files := []file{
		{"etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin\n")},
		{"etc/group", 0o644, []byte("root:x:0:\nnobody:x:65534:\n")},
		{certificates, 0o644, authorities()},
		{"root/", 0o700, nil},
		{"tmp/", 0o1777, nil},
		{"var/log/", 0o755, nil},
	}
	program := filepath.Join(p.dir, "kube-controller-manager")
	for from, to := range map[string]string{
		program:                           "usr/local/bin/kube-controller-manager",
		filepath.Join(p.dir, "go-runner"): "go-runner",
		license:                           path.Join(licenses, "kube-controller-manager", "LICENSE"),
	} {
		content, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		mode := int64(0o755)
		if from == license {
			mode = 0o644
		}
		files = append(files, file{to, mode, content})
	}
	others, err := licensesOf(program, filepath.Join(p.dir, "go-runner"))
	if err != nil {
		return nil, err
	}
	return withDirectories(append(files, others...)), nil
}

// withDirectories adds the directories that the files stand in, and sorts all.
func withDirectories(files []file) []file {
	known := map[string]bool{}
	for _, f := range files {
		known[f.name] = true
	}
	for _, f := range slices.Clone(files) {
		for dir := path.Dir(strings.TrimSuffix(f.name, "/")); dir != "."; dir = path.Dir(dir) {
			if name := dir + "/"; !known[name] {
				known[name] = true
				files = append(files, file{name, 0o755, nil})
			}
		}
	}
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return files
}

// authorities are the certificates of the public authorities.
func authorities() []byte {
	var all bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&all, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return all.Bytes()
}

// writeTar writes files that have one time and belong to root.
func writeTar(to io.Writer, at time.Time, files []file) error {
	archive := tar.NewWriter(to)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: at.UTC(), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := archive.WriteHeader(header); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
		if _, err := archive.Write(f.content); err != nil {
			return fmt.Errorf("write %s: %w", f.name, err)
		}
	}
	return archive.Close()
}
