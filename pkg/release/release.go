// Package release holds the version of this project. It stands beside the API level: the
// version of Kubernetes, which other programs read from --version, the user agent and
// kubernetes_build_info, and which they would not understand with a suffix.
package release

import (
	_ "embed"
	"strings"
)

// The file is the one place that holds the version; the Makefile reads it too.
//
//go:embed VERSION
var file string

// suffix begins the number of a release among those of one API level.
const suffix = "-kcm."

// Version is the version of this project, such as v1.36.3-kcm.1.
func Version() string { return strings.TrimSpace(file) }

// APILevel is the version of Kubernetes that the release stands in for, such as v1.36.3.
func APILevel() string {
	level, _, _ := strings.Cut(Version(), suffix)
	return level
}
