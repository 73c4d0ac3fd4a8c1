package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/explore/faults"
)

const binary = "kube-controller-manager"

// workshop builds binaries from a copy of the tree and has the explorer look at them.
type workshop struct {
	// out is where everything goes that is to be kept, ldflags are those of the linker.
	out, ldflags string
	lanes        int
	log          io.Writer
	// tree is the copy, good the binary without a fault.
	tree, good string
	explorer   explorer
}

// open makes the copy, the binary without a fault, and the explorer.
func (w *workshop) open() error {
	tree, err := os.MkdirTemp("", "explore-proof")
	if err != nil {
		return fmt.Errorf("make room for a copy of the tree: %w", err)
	}
	w.tree = tree
	w.good = filepath.Join(w.out, "good", binary)
	test := filepath.Join(w.out, "explore.test")
	w.explorer = commands{test: test, dir: filepath.Join("test", "explore"), lanes: w.lanes, log: w.log}
	archive := filepath.Join(tree, "tree.tar")
	for _, c := range []*exec.Cmd{
		exec.Command("git", "archive", "--output="+archive, "HEAD"),
		exec.Command("tar", "-x", "-f", archive, "-C", tree),
		exec.Command("go", "test", "-c", "-vet=off", "-o", test, "./test/explore"),
	} {
		if err := w.do(c); err != nil {
			return err
		}
	}
	return w.build(w.good)
}

func (w *workshop) close() {
	if err := os.RemoveAll(w.tree); err != nil {
		fmt.Fprintln(w.log, "prove:", err)
	}
}

// try builds the binary with the fault and looks for it.
func (w *workshop) try(f faults.Fault, seed int, limit, shrink time.Duration) (trial, error) {
	patch, err := filepath.Abs(f.Path)
	if err != nil {
		return trial{}, err
	}
	out := filepath.Join(w.out, f.Number())
	if err := os.RemoveAll(out); err != nil {
		return trial{}, fmt.Errorf("remove what was found before: %w", err)
	}
	if err := w.do(w.apply(patch)); err != nil {
		return trial{}, err
	}
	faulty := filepath.Join(out, binary)
	if err := errors.Join(w.build(faulty), w.do(w.apply("--reverse", patch))); err != nil {
		return trial{}, err
	}
	return search(w.explorer, hunt{faulty, w.good, f.Family, out, seed, limit, shrink}, time.Now)
}

// apply patches the copy.
func (w *workshop) apply(args ...string) *exec.Cmd {
	c := exec.Command("git", append([]string{"apply"}, args...)...)
	c.Dir = w.tree
	return c
}

// build builds the copy as it is now.
func (w *workshop) build(path string) error {
	c := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", w.ldflags, "-o", path, "./cmd/"+binary)
	c.Dir = w.tree
	return w.do(c)
}

func (w *workshop) do(c *exec.Cmd) error {
	c.Stdout, c.Stderr = w.log, w.log
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	return nil
}
