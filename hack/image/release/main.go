// Command release puts the files of a release into a directory: executables, the image,
// the manifests, the licences, what each platform's executables are built from (CycloneDX),
// and the checksums of all. The same input gives the same bytes.
//
//	release -version V -api-level V -kit V -created TIME -binaries linux/amd64=DIR ... -image FILE -manifests DIR -license FILE -out DIR
//
// The directory of a platform holds some of kube-controller-manager, go-runner and kubectl-kcm.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// options are what a release is made of.
type options struct {
	// version is the release, apiLevel the version of Kubernetes that it stands in for,
	// kit the version of the module staging/controllerkit.
	version, apiLevel, kit string
	// created is the time of all that has one.
	created   time.Time
	platforms []platform
	// image is the archive with the images, manifests the directory of manifests.
	image, manifests, license string
	out                       string
}

// platform is a system and architecture, as linux/amd64, and the directory of its executables.
type platform struct{ name, dir string }

// file is the platform as a part of a file's name.
func (p platform) file() string { return strings.ReplaceAll(p.name, "/", "-") }

func main() {
	o, err := parse(os.Args[1:])
	if err == nil {
		err = write(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.Func("binaries", "OS/ARCH=DIR: the executables of a platform; may be given more than once", func(value string) error {
		name, dir, found := strings.Cut(value, "=")
		if system, arch, is := strings.Cut(name, "/"); !found || !is || system == "" || arch == "" || dir == "" {
			return errors.New("want OS/ARCH=DIR")
		}
		o.platforms = append(o.platforms, platform{name, dir})
		return nil
	})
	flags.Func("created", "the time of the commit, as in 2026-01-02T15:04:05Z", func(value string) (err error) {
		o.created, err = time.Parse(time.RFC3339, value)
		return err
	})
	texts := map[string]*string{
		"version": &o.version, "api-level": &o.apiLevel, "kit": &o.kit, "image": &o.image,
		"manifests": &o.manifests, "license": &o.license, "out": &o.out,
	}
	for name, value := range texts {
		flags.StringVar(value, name, "", "required")
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var missing []string
	for name, value := range texts {
		if *value == "" {
			missing = append(missing, "-"+name)
		}
	}
	if len(o.platforms) == 0 {
		missing = append(missing, "-binaries")
	}
	if o.created.IsZero() {
		missing = append(missing, "-created")
	}
	if slices.Sort(missing); len(missing) > 0 {
		return o, fmt.Errorf("missing: %s", strings.Join(missing, ", "))
	}
	return o, nil
}
