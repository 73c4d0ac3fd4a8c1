// Command kit makes a module of staging/controllerkit as the go command would from a tag on
// HEAD, puts it into a directory that serves as a GOPROXY, and prints the lines of go.sum
// that belong to it.
//
//	kit -root DIR -version V -proxy DIR
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// modulePath and folder are where the kit is: in the world, and in the tree.
const (
	modulePath = "github.com/kube-kcm/kube-controller-manager/staging/controllerkit"
	folder     = "staging/controllerkit"
)

func main() {
	root := flag.String("root", "../..", "the tree")
	version := flag.String("version", "", "the version that it gets")
	proxy := flag.String("proxy", "", "where it is put; a new directory by default, which is removed")
	flag.Parse()
	err := run(*root, *version, *proxy, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "kit:", err)
		os.Exit(1)
	}
}

func run(root, version, proxy string, out io.Writer) error {
	if err := module.Check(modulePath, version); err != nil {
		return fmt.Errorf("-version %q: %w", version, err)
	}
	if proxy == "" {
		dir, err := os.MkdirTemp("", "kit")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		proxy = dir
	}
	sums, err := publish(root, version, proxy)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, sums)
	return err
}

// publish puts the kit of HEAD into a proxy and returns its lines of go.sum.
func publish(root, version, proxy string) (sums string, err error) {
	gomod, err := git(root, "show", "HEAD:"+folder+"/go.mod")
	if err != nil {
		return "", err
	}
	head, err := git(root, "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	// The clone, of which the tree may be a worktree.
	dot, err := git(root, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return "", err
	}
	var zipped bytes.Buffer
	m := module.Version{Path: modulePath, Version: version}
	if err := zip.CreateFromVCS(&zipped, m, filepath.Dir(strings.TrimSpace(string(dot))), strings.TrimSpace(string(head)), folder); err != nil {
		return "", fmt.Errorf("make the module of %s at HEAD of %s: %w", folder, root, err)
	}
	dir := filepath.Join(proxy, filepath.FromSlash(modulePath), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	archive := filepath.Join(dir, version+".zip")
	for name, content := range map[string][]byte{
		archive:                             zipped.Bytes(),
		filepath.Join(dir, version+".mod"):  gomod,
		filepath.Join(dir, version+".info"): fmt.Appendf(nil, `{"Version":%q}`, version),
		filepath.Join(dir, "list"):          []byte(version + "\n"),
	} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return "", err
		}
	}
	whole, err := dirhash.HashZip(archive, dirhash.Hash1)
	if err != nil {
		return "", err
	}
	alone, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(gomod)), nil })
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s %s\n%s %s/go.mod %s\n", modulePath, version, whole, modulePath, version, alone), nil
}

func git(root string, args ...string) ([]byte, error) {
	out, err := exec.Command("git", append([]string{"-C", root}, args...)...).Output()
	if err != nil {
		return nil, fmt.Errorf("git %s in %s: %w", strings.Join(args, " "), root, err)
	}
	return out, nil
}
