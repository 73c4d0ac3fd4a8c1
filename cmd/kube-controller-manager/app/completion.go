package app

import (
	"strings"

	"github.com/spf13/cobra"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/component-base/compatibility"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/options"
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
)

// addCompletion names values of flags to the completion of a shell, which the library has
// as the command "completion". Where nothing is named, it completes files.
func addCompletion(cmd *cobra.Command, o *options.KubeControllerManagerOptions) {
	controllers := []string{"*"}
	for _, name := range names.All() {
		controllers = append(controllers, name, "-"+name)
	}
	var gates []string
	for _, known := range o.ComponentGlobalsRegistry.FeatureGateFor(compatibility.DefaultKubeComponent).KnownFeatures() {
		name, stage, _ := strings.Cut(known, "=true|false ")
		gates = append(gates, name+"=true\t"+stage, name+"=false\t"+stage)
	}
	for flag, words := range map[string][]string{
		"controllers":                controllers,
		"feature-gates":              gates,
		"logging-format":             {"text", "json"},
		"cloud-provider":             {"external"},
		"cidr-allocator-type":        {"RangeAllocator"},
		"leader-elect-resource-lock": {"leases"},
	} {
		utilruntime.Must(cmd.RegisterFlagCompletionFunc(flag, oneOf(words)))
	}
}

// oneOf completes the last item of a list.
func oneOf(words []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		var found []cobra.Completion
		for _, word := range words {
			if strings.HasPrefix(before+word, typed) {
				found = append(found, before+word)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}
