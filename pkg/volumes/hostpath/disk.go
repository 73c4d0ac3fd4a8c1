package hostpath

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// temporary is where all directories are.
	temporary = "/tmp"
	// provisioned has the directories that were made here.
	provisioned = "hostpath_pv"
	// mode is that of a directory which is made.
	mode os.FileMode = 0o750
)

// Disk is where directories are made and deleted.
type Disk struct {
	top string // in place of /tmp
}

// LocalDisk returns the disk of this machine.
func LocalDisk() Disk { return Disk{temporary} }

// Provision makes the directory of a volume and returns its path. The id is in its name.
func (d Disk) Provision(id types.UID) (string, error) {
	top, err := os.OpenRoot(d.top)
	if err != nil {
		return "", err
	}
	defer top.Close()
	name := path.Join(provisioned, string(id))
	if err := top.MkdirAll(name, mode); err != nil {
		return "", err
	}
	return path.Join(temporary, name), nil
}

// Delete deletes the directory of a volume and all that is in it. One that is gone is no
// error.
func (d Disk) Delete(directory string) error {
	name, err := below(directory)
	if err != nil {
		return err
	}
	top, err := os.OpenRoot(d.top)
	if err != nil {
		return err
	}
	defer top.Close()
	return top.RemoveAll(name)
}

// below returns a path relative to the directory that may be deleted from, or why it is
// not in there.
func below(directory string) (string, error) {
	name, inside := strings.CutPrefix(path.Clean(directory), temporary+"/")
	if !inside || name == "" || slices.Contains(strings.Split(directory, "/"), "..") {
		return "", fmt.Errorf("host_path deleter only supports %s/.+ but received provided %s", temporary, directory)
	}
	return name, nil
}
