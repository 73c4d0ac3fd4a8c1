//go:build tools

// Package containerd pins what an operator puts the image into a node or a registry with. It
// is a module of its own, so that nothing of it reaches the product or the other tools.
package containerd

import (
	_ "github.com/containerd/containerd/v2/cmd/containerd"
	_ "github.com/containerd/containerd/v2/cmd/ctr"
	_ "github.com/google/go-containerregistry/cmd/crane"
)
