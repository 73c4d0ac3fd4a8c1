package image

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Inside is a process of that user whose root is the directory. Where the caller is not
// root, it has a user namespace of its own, in which the owner of the files is that user.
func Inside(root string, user int) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Chroot: root}
	switch uid := os.Getuid(); {
	case uid != 0:
		attr.Cloneflags = syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getgid(), Size: 1}}
	case user != 0:
		attr.Credential = &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}
	}
	return attr
}

// LookUp finds a command as a runtime does, by the PATH of the image.
func LookUp(root, command string) string {
	if strings.HasPrefix(command, "/") {
		return command
	}
	for _, dir := range []string{"/usr/local/bin", "/usr/bin"} {
		if _, err := os.Stat(filepath.Join(root, dir, command)); err == nil {
			return filepath.Join(dir, command)
		}
	}
	return command
}
