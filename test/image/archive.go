// Package image starts what `make image` writes, as installations start the original.
package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Archive is the content of an OCI archive, by name.
type Archive map[string][]byte

// Config is what an image says of itself.
type Config struct {
	OS, Architecture string
	Config           struct {
		User            string
		Entrypoint, Env []string
		Labels          map[string]string
	}
}

type descriptor struct {
	MediaType, Digest string
	Annotations       map[string]string
	Platform          struct{ Architecture string }
}

// manifest is an index, or the manifest of an image.
type manifest struct {
	Manifests, Layers []descriptor
	Config            descriptor
}

// Open reads an archive.
func Open(path string) (Archive, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	archive := Archive{}
	return archive, each(bytes.NewReader(content), func(header *tar.Header, from io.Reader) error {
		archive[header.Name], err = io.ReadAll(from)
		return err
	})
}

// Reference is the name under which a runtime has the image, and its architectures.
func (a Archive) Reference() (name string, architectures []string, err error) {
	index, inner, err := a.index()
	if err != nil {
		return "", nil, err
	}
	for _, image := range inner.Manifests {
		architectures = append(architectures, image.Platform.Architecture)
	}
	return index.Manifests[0].Annotations["io.containerd.image.name"], architectures, nil
}

// Image returns the image of an architecture, and its layers, unpacked.
func (a Archive) Image(architecture string) (Config, [][]byte, error) {
	var config Config
	_, inner, err := a.index()
	if err != nil {
		return config, nil, err
	}
	for _, image := range inner.Manifests {
		if image.Platform.Architecture != architecture {
			continue
		}
		var m manifest
		if err := a.read(image, &m); err != nil {
			return config, nil, err
		}
		if err := a.read(m.Config, &config); err != nil {
			return config, nil, err
		}
		var layers [][]byte
		for _, layer := range m.Layers {
			zipped, err := gzip.NewReader(bytes.NewReader(a[blob(layer)]))
			if err != nil {
				return config, nil, fmt.Errorf("layer %s: %w", layer.Digest, err)
			}
			content, err := io.ReadAll(zipped)
			if err != nil {
				return config, nil, fmt.Errorf("layer %s: %w", layer.Digest, err)
			}
			layers = append(layers, content)
		}
		return config, layers, nil
	}
	return config, nil, fmt.Errorf("the archive has no image for %s", architecture)
}

func (a Archive) index() (outer, inner manifest, err error) {
	if err := json.Unmarshal(a["index.json"], &outer); err != nil {
		return outer, inner, fmt.Errorf("index.json: %w", err)
	}
	if len(outer.Manifests) != 1 {
		return outer, inner, fmt.Errorf("index.json names %d images, want 1", len(outer.Manifests))
	}
	return outer, inner, a.read(outer.Manifests[0], &inner)
}

func (a Archive) read(d descriptor, into any) error {
	if err := json.Unmarshal(a[blob(d)], into); err != nil {
		return fmt.Errorf("%s %s: %w", d.MediaType, d.Digest, err)
	}
	return nil
}

func blob(d descriptor) string { return "blobs/" + strings.Replace(d.Digest, ":", "/", 1) }

// Unpack puts a layer into a directory, with its modes. All belongs to who calls.
func Unpack(layer []byte, dir string) error {
	return each(bytes.NewReader(layer), func(header *tar.Header, from io.Reader) error {
		if header.Uid != 0 || header.Gid != 0 {
			return fmt.Errorf("%s belongs to %d:%d, not to root", header.Name, header.Uid, header.Gid)
		}
		path := filepath.Join(dir, header.Name)
		if header.Typeflag == tar.TypeDir {
			return errors.Join(os.MkdirAll(path, 0o755), os.Chmod(path, header.FileInfo().Mode()))
		}
		content, err := io.ReadAll(from)
		if err != nil {
			return err
		}
		return errors.Join(os.WriteFile(path, content, 0o600), os.Chmod(path, header.FileInfo().Mode()))
	})
}

func each(from io.Reader, visit func(*tar.Header, io.Reader) error) error {
	archive := tar.NewReader(from)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(header, archive); err != nil {
			return fmt.Errorf("%s: %w", header.Name, err)
		}
	}
}
