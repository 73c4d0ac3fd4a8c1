package app

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/options"
)

// prepare reads the configuration file, settles the gates, versions and logging, and
// carries out the flags after which the process ends.
func prepare(cmd *cobra.Command, o *options.KubeControllerManagerOptions) (ended bool, err error) {
	err = problems(o)
	if o.ValidateConfig {
		err = list(cmd.ErrOrStderr(), err)
	}
	if err != nil {
		return true, err
	}
	if o.WriteConfigTo != "" {
		return true, o.WriteConfigFile()
	}
	if o.ValidateConfig {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "The configuration is valid.")
		return true, err
	}
	if o.ConfigFile != "" {
		overridden, notices := o.FromConfigFile()
		klog.InfoS("Read the configuration file", "file", o.ConfigFile, "overriddenByFlags", overridden)
		for _, notice := range notices {
			klog.Warning(notice)
		}
	}
	return false, nil
}

// problems reads the file, settles the options and returns what is wrong with both. With
// a fault in the file, or --validate-config, it checks everything else too; otherwise the
// start does that.
func problems(o *options.KubeControllerManagerOptions) error {
	inFile := o.ReadConfigFile()
	if errors.Is(inFile, options.ErrUnreadable) {
		return inFile
	}
	err := settle(o)
	if err == nil && (inFile != nil || o.ValidateConfig) {
		err = o.Validate()
	}
	return o.Located(utilerrors.NewAggregate([]error{inFile, err}))
}

// list prints each problem in a line and returns their number, as an error.
func list(out io.Writer, err error) error {
	if err == nil {
		return nil
	}
	problems := []error{err}
	var several utilerrors.Aggregate
	if errors.As(err, &several) {
		problems = utilerrors.Flatten(several).Errors()
	}
	seen := map[string]bool{} // a library reports some twice
	problems = slices.DeleteFunc(problems, func(problem error) bool {
		twice := seen[problem.Error()]
		seen[problem.Error()] = true
		return twice
	})
	for _, problem := range problems {
		if _, err := fmt.Fprintln(out, problem); err != nil {
			return err
		}
	}
	return fmt.Errorf("problems in the configuration: %d", len(problems))
}
