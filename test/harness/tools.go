package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Tools says where the executables of a test control plane are.
type Tools struct {
	// Dir holds all of them.
	Dir string
	// Etcd and APIServer make the control plane.
	Etcd, APIServer string
	// ReferenceManager is the controller manager whose behaviour is compared with.
	ReferenceManager string
}

// FindTools looks for the executables, in KCM_TOOLS if that is set.
func FindTools() (Tools, error) {
	dir, explicit := os.LookupEnv("KCM_TOOLS")
	if !explicit {
		root, err := ModuleRoot()
		if err != nil {
			return Tools{}, err
		}
		dir = filepath.Join(root, "_output", "tools", "bin")
	}
	tools := Tools{
		Dir:              dir,
		Etcd:             filepath.Join(dir, "etcd"),
		APIServer:        filepath.Join(dir, "kube-apiserver"),
		ReferenceManager: filepath.Join(dir, "kube-controller-manager"),
	}
	for _, path := range []string{tools.Etcd, tools.APIServer} {
		if _, err := os.Stat(path); err != nil {
			return Tools{}, fmt.Errorf("find the tools in %s (make tools builds them): %w", dir, err)
		}
	}
	return tools, nil
}

// Rivals are the two binaries of a comparison.
type Rivals struct {
	// Root is the tree that they belong to.
	Root string
	// Reference is the original, Ours the binary under test.
	Reference, Ours string
}

// FindRivals finds both; ours is where make build puts it, unless a path is given.
func FindRivals(ours string) (Rivals, error) {
	tools, err := FindTools()
	if err != nil {
		return Rivals{}, err
	}
	root, err := ModuleRoot()
	if err != nil {
		return Rivals{}, err
	}
	if ours == "" {
		ours = built(root)
	}
	return Rivals{Root: root, Reference: tools.ReferenceManager, Ours: ours}, nil
}

// built is where make build puts the controller manager.
func built(root string) string {
	return filepath.Join(root, "_output", "bin", "kube-controller-manager")
}

// ModuleRoot is the nearest directory above the working directory that holds
// this module's go.mod.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module root: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("find the module root: no go.mod above the working directory")
		}
		dir = parent
	}
}
