package app

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	metricsfeatures "k8s.io/component-base/metrics/features"
	terminal "k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/config"
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/options"
)

const description = `The controller manager runs the control loops of Kubernetes. Each loop watches
objects through the API server, compares what they ask for with what there is, and
makes the changes that bring the two together: it creates and deletes pods for
workloads, keeps endpoints for services, binds volumes, judges the health of nodes,
and cleans up after objects that are gone.

Several instances may run at a time. One of them leads and runs the loops, the
others wait for its lease to end.

"plan-split", as the first argument, plans how this binary runs beside the original.`

// NewControllerManagerCommand returns the command with all its flags. It runs
// until the context of the command ends or something fails; it claims no signals
// and may be embedded.
func NewControllerManagerCommand() *cobra.Command { return newCommand(Run) }

func newCommand(run func(context.Context, *config.CompletedConfig) error) *cobra.Command {
	o, err := options.NewKubeControllerManagerOptions()
	utilruntime.Must(err)
	cmd := &cobra.Command{
		Use:  component,
		Long: description,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			verflag.PrintAndExitIfRequested()
			if o.PrintRelease {
				return printRelease(cmd.OutOrStdout())
			}
			if ended, err := prepare(cmd, o); ended || err != nil {
				return err
			}
			cliflag.PrintFlags(cmd.Flags())
			ctx := cmd.Context()
			c, err := o.Config(ctx)
			if err != nil && ctx.Err() != nil {
				klog.Info("Stopped while starting: ", err)
				return nil
			}
			if err != nil {
				return o.Located(err)
			}
			return run(ctx, c.Complete())
		},
	}
	addFlags(cmd, o)
	addSubcommands(cmd)
	return cmd
}

// addFlags gives the command all flags, and a help that shows them by section,
// as wide as the terminal.
func addFlags(cmd *cobra.Command, o *options.KubeControllerManagerOptions) {
	sections := o.Flags()
	global := sections.FlagSet("global")
	verflag.AddFlags(global)
	globalflag.AddGlobalFlags(global, cmd.Name(), logs.SkipLoggingConfigurationFlags())
	for _, flags := range sections.FlagSets {
		cmd.Flags().AddFlagSet(flags)
	}
	columns, _, err := terminal.TerminalSize(cmd.OutOrStdout())
	if err != nil {
		columns = 0 // not a terminal: lines stay as long as they are
	}
	cliflag.SetUsageAndHelpFunc(cmd, sections, columns)
	addCompletion(cmd, o)
}

// settle makes the parsed feature gates, the emulated version and the logging
// take effect. All that follows, checks included, depends on them. If one of them
// is wrong, whatever else is wrong with the command line is reported with it.
func settle(o *options.KubeControllerManagerOptions) error {
	err := o.ComponentGlobalsRegistry.Set()
	if err != nil || logsapi.ValidateAndApply(o.Logs, utilfeature.DefaultFeatureGate) != nil {
		return utilerrors.NewAggregate([]error{err,
			o.Validate()})
	}
	metricsfeatures.ApplyFeatureGates(utilfeature.DefaultFeatureGate)
	utilfeature.DefaultMutableFeatureGate.AddMetrics()
	o.ComponentGlobalsRegistry.AddMetrics()
	return nil
}

func noArguments(cmd *cobra.Command, args []string) error {
	for _, arg := range args {
		if arg != "" {
			return fmt.Errorf("%q does not take any arguments, got %q", cmd.CommandPath(), args)
		}
	}
	return nil
}
