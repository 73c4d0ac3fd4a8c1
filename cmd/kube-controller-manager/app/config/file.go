package config

import (
	kcmv1alpha1 "k8s.io/kube-controller-manager/config/v1alpha1"

	"github.com/kube-kcm/kube-controller-manager/pkg/strictyaml"
)

// File is a configuration file that is read again when it changes.
type File interface {
	// Path is where it lies.
	Path() string
	// Settings are those at the start: of the command line, the file and the defaults.
	Settings() []Setting
	// Read returns the settings with another content of the file, in the same order; an
	// error names all that is wrong with it. Nothing of the process changes.
	Read(content []byte) ([]Setting, error)
	// Shown is what /configz shows of settings.
	Shown([]Setting) (*kcmv1alpha1.KubeControllerManagerConfiguration, error)
}

// Setting is a flag, what it is set to, and its field in the file.
type Setting struct {
	Flag, Field string
	Value       strictyaml.Value
	// Reload reports whether a running process takes up another value.
	Reload bool
}
