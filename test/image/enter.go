package image

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Root unpacks the image for this machine into a directory, and adds what a runtime does.
func (a Archive) Root(dir string) error {
	_, layers, err := a.Image(runtime.GOARCH)
	if err != nil {
		return err
	}
	for _, layer := range layers {
		if err := Unpack(layer, dir); err != nil {
			return err
		}
	}
	null := filepath.Join(dir, "dev", "null")
	return errors.Join(os.MkdirAll(filepath.Dir(null), 0o755), os.WriteFile(null, nil, 0o600), os.Chmod(null, 0o666))
}

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

// Healthy asks the manager that serves at this port of the machine for its health.
func Healthy(ctx context.Context, port int32) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d/healthz", port), nil)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("/healthz at port %d: %s", port, response.Status)
	}
	return nil
}
