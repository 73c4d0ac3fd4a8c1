package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/kube-kcm/kube-controller-manager/hack/image/files"
)

// repository is the name under which a runtime has the image that it imports; one without
// a host would be looked for elsewhere.
const repository = "localhost/kube-controller-manager"

// apiLevelLabel says which version of Kubernetes the image stands in for.
const apiLevelLabel = "com.github.kube-kcm.api-level"

// write writes the archive.
func write(o options) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range o.binaries {
		image, err := imageOf(p, o)
		if err != nil {
			return fmt.Errorf("image for %s: %w", p.arch, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{MediaType: types.OCIManifestSchema1, Platform: &v1.Platform{OS: "linux", Architecture: p.arch}},
		})
	}
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	top, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := top.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": o.version, "io.containerd.image.name": repository + ":" + o.version,
	})); err != nil {
		return err
	}
	return pack(dir, o)
}

// imageOf has one layer. It is started by root, as key files are root's, and by a
// command line without a path, or by one that begins with /go-runner.
func imageOf(p platform, o options) (v1.Image, error) {
	all, err := root(p, o.license)
	if err != nil {
		return nil, err
	}
	var content bytes.Buffer
	if err := files.WriteTar(&content, o.created, all); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: "make image", Created: v1.Time{Time: o.created}}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", p.arch, v1.Time{Time: o.created}
	config.Config = v1.Config{
		User: "0", WorkingDir: "/", Entrypoint: []string{"/go-runner"},
		Env: []string{
			"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
			"SSL_CERT_FILE=/" + certificates,
		},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "kube-controller-manager",
			"org.opencontainers.image.description": "The control loops of a Kubernetes cluster",
			"org.opencontainers.image.version":     o.version,
			"org.opencontainers.image.revision":    o.revision,
			"org.opencontainers.image.created":     o.created.UTC().Format(time.RFC3339),
			"org.opencontainers.image.licenses":    "Apache-2.0",
			apiLevelLabel:                          o.apiLevel,
		},
	}
	return mutate.ConfigFile(image, config)
}

// pack writes a directory as a tar file, its names sorted and its times equal.
func pack(dir string, o options) error {
	var all []files.File
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		all = append(all, files.File{Name: filepath.ToSlash(strings.TrimPrefix(name, dir+string(filepath.Separator))), Mode: 0o644, Content: content})
		return err
	})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return err
	}
	out, err := os.Create(o.out)
	if err != nil {
		return err
	}
	if err := files.WriteTar(out, o.created, files.WithDirectories(all)); err != nil {
		_ = out.Close() // the first error is the one that counts
		return err
	}
	return out.Close()
}
