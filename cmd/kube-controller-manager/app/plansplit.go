package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"sigs.k8s.io/yaml"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/splitplan"
	"github.com/kube-kcm/kube-controller-manager/pkg/release"
)

const planSplitDescription = `Plans how this binary runs beside the original, each with some of the controllers
and a lease of its own. It asks no API server and changes nothing.

Without --move it says of all controllers which may run in another process, which
have to go together, and what each needs and forgets when it moves.

With --move it prints the flags of both sides. A plan that tears apart what must
be together is refused, with exit code 1.`

// splitOptions are the flags of plan-split.
type splitOptions struct {
	move, controllers     []string
	manifest, into, image string
	lease                 string
	port                  int
	// takesValue reports whether a flag of the program is followed by its value.
	takesValue func(flag string) bool
}

// takesValue returns what knows the flags of the program: one that is switched on by its name
// alone is not followed by a value.
func takesValue(flags *pflag.FlagSet) func(string) bool {
	return func(name string) bool {
		flag := flags.Lookup(name)
		return flag != nil && flag.NoOptDefVal == ""
	}
}

// newPlanSplitCommand returns the subcommand plan-split.
func newPlanSplitCommand() *cobra.Command {
	o := &splitOptions{}
	cmd := &cobra.Command{
		Use:   "plan-split",
		Short: "Plan how this binary runs beside the original",
		Long:  planSplitDescription,
		Args:  cobra.NoArgs,
		// That of the parent would set up a log; an answer of this command is for a person.
		PersistentPreRun: func(*cobra.Command, []string) {},
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.takesValue = takesValue(cmd.Root().Flags())
			return o.run(cmd.OutOrStdout(), cmd.Flags().Changed("controllers"))
		},
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.move, "move", nil, "The controllers that this binary is to run, all of them and not those in addition; all for everything that the original runs.")
	flags.StringSliceVar(&o.controllers, "controllers", splitplan.DefaultLine().Controllers, "The --controllers of the original when nothing has moved. --manifest has it too.")
	flags.StringVar(&o.lease, "leader-elect-resource-name", component+"-split", "The lease of this binary, and the name of its static pod.")
	flags.IntVar(&o.port, "secure-port", 10357, "The port of this binary.")
	flags.StringVar(&o.manifest, "manifest", "", "The static pod of the original when nothing has moved. Its --controllers, lease and port count.")
	flags.StringVar(&o.into, "write-manifests", "", "A directory for the static pods of both sides, made from --manifest. It must not be that of the kubelet, which would take both at once.")
	flags.StringVar(&o.image, "image", "localhost/"+component+":"+release.Version(), "The image of this binary in the manifests.")
	// Those of the parent show its sections of flags.
	cmd.SetUsageFunc(new(cobra.Command).UsageFunc())
	cmd.SetHelpFunc(new(cobra.Command).HelpFunc())
	return cmd
}

// addSubcommands adds plan-split; of those that cobra adds beside a first one only completion
// stays, unlisted. Any other argument is refused as before.
func addSubcommands(cmd *cobra.Command) {
	cmd.CompletionOptions.HiddenDefaultCmd = true
	cmd.SetHelpCommand(&cobra.Command{Hidden: true})
	cmd.AddCommand(newPlanSplitCommand())
}

func (o *splitOptions) run(out io.Writer, given bool) error {
	rows := splitRows()
	if len(o.move) == 0 && o.into == "" {
		return splitplan.WriteTable(out, rows)
	}
	theirs, original, err := o.original(given)
	if err != nil {
		return err
	}
	plan, err := splitplan.New(splitplan.Request{Controllers: rows, Theirs: theirs, Move: o.move, Lease: o.lease, Port: o.port})
	if err != nil {
		return err
	}
	if original != nil {
		plan.Warnings = append(plan.Warnings, original.Warnings()...)
	}
	if err := plan.Write(out); err != nil || o.into == "" {
		return err
	}
	return o.write(out, original, plan)
}

// original is how the original runs when nothing has moved, with its manifest if there is one.
func (o *splitOptions) original(given bool) (splitplan.Line, *splitplan.Manifest, error) {
	line := splitplan.DefaultLine()
	line.Controllers = o.controllers
	if o.manifest == "" {
		if o.into != "" {
			return line, nil, errors.New("--write-manifests needs --manifest, the static pod that both are made from")
		}
		return line, nil, nil
	}
	if given {
		return line, nil, errors.New("--controllers and --manifest both say how the original runs: give one of them")
	}
	content, err := os.ReadFile(o.manifest)
	if err != nil {
		return line, nil, fmt.Errorf("--manifest: %w", err)
	}
	original, err := splitplan.Read(content, o.takesValue)
	if err != nil {
		return line, nil, fmt.Errorf("--manifest=%s: %w", o.manifest, err)
	}
	return original.Line(), original, nil
}

// write writes the static pods of both sides, or of ours alone when it runs everything.
func (o *splitOptions) write(out io.Writer, original *splitplan.Manifest, plan splitplan.Plan) error {
	from, err := filepath.Abs(o.manifest)
	if err != nil {
		return fmt.Errorf("--manifest=%s: %w", o.manifest, err)
	}
	into, err := filepath.Abs(o.into)
	if err != nil {
		return fmt.Errorf("--write-manifests=%s: %w", o.into, err)
	}
	if filepath.Dir(from) == into {
		return fmt.Errorf("--write-manifests=%s: that is where --manifest is; the kubelet would take both manifests at once", o.into)
	}
	if filepath.Base(from) == o.lease+".yaml" {
		return fmt.Errorf("--leader-elect-resource-name=%s: the manifest of the original has this name", o.lease)
	}
	if err := os.MkdirAll(into, 0o755); err != nil {
		return fmt.Errorf("--write-manifests=%s: %w", o.into, err)
	}
	pods := map[string]*corev1.Pod{o.lease + ".yaml": original.Ours(plan, o.image)}
	if !plan.Whole() {
		pods[filepath.Base(from)] = original.Theirs(plan)
	}
	for name, pod := range pods {
		text, err := yaml.Marshal(pod)
		if err == nil {
			err = os.WriteFile(filepath.Join(into, name), append([]byte("# Written by "+component+" plan-split --move="+strings.Join(o.move, ",")+"\n"), text...), 0o600)
		}
		if err != nil {
			return fmt.Errorf("--write-manifests=%s: %w", o.into, err)
		}
	}
	_, err = fmt.Fprintf(out, "\nWrote %d manifests into %s\n", len(pods), o.into)
	return err
}

// splitRows are the rows of the table of controllers, as far as a split depends on them.
func splitRows() []splitplan.Controller {
	var rows []splitplan.Controller
	for _, c := range Controllers() {
		row := splitplan.Controller{Name: c.Name, Cloud: c.Cloud}
		for _, gate := range c.Gates {
			if !utilfeature.DefaultFeatureGate.Enabled(gate) {
				row.Gates = append(row.Gates, string(gate))
			}
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b splitplan.Controller) int { return strings.Compare(a.Name, b.Name) })
	return rows
}
