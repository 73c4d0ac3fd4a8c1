// Command image writes an OCI archive with the binaries of one or more architectures. It
// needs no daemon and no registry, and the same input gives the same bytes.
//
//	image -binaries amd64=DIR -binaries arm64=DIR -version V -api-level V -revision COMMIT -created TIME -license FILE -out FILE
//
// Each DIR holds kube-controller-manager and go-runner.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

// options are what the image is made of.
type options struct {
	// binaries are the directories of the executables, by architecture.
	binaries []platform
	version  string
	// apiLevel is the version of Kubernetes that the image stands in for.
	apiLevel string
	revision string
	// created is the time of all files, and what the image says of itself.
	created time.Time
	license string
	out     string
}

// platform is an architecture and the directory of its executables.
type platform struct{ arch, dir string }

func main() {
	o, err := parse(os.Args[1:])
	if err == nil {
		err = write(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.Func("binaries", "ARCH=DIR: the executables of an architecture; may be given more than once", func(value string) error {
		arch, dir, found := strings.Cut(value, "=")
		if !found || arch == "" || dir == "" {
			return errors.New("want ARCH=DIR")
		}
		o.binaries = append(o.binaries, platform{arch, dir})
		return nil
	})
	flags.Func("created", "the time of the commit, as in 2026-01-02T15:04:05Z", func(value string) (err error) {
		o.created, err = time.Parse(time.RFC3339, value)
		return err
	})
	flags.StringVar(&o.version, "version", "", "the version, which is the tag")
	flags.StringVar(&o.apiLevel, "api-level", "", "the version of Kubernetes that it stands in for")
	flags.StringVar(&o.revision, "revision", "", "the commit")
	flags.StringVar(&o.license, "license", "LICENSE", "the licence of this project")
	flags.StringVar(&o.out, "out", "", "the archive")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var errs []error
	for name, missing := range map[string]bool{
		"binaries": len(o.binaries) == 0, "created": o.created.IsZero(), "version": o.version == "", "api-level": o.apiLevel == "", "revision": o.revision == "", "out": o.out == "",
	} {
		if missing {
			errs = append(errs, fmt.Errorf("-%s is missing", name))
		}
	}
	return o, errors.Join(errs...)
}
