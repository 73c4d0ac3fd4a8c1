package options

import (
	_ "embed"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kube-kcm/kube-controller-manager/pkg/strictyaml"
)

const (
	// fileVersion and fileKind are what a configuration file begins with.
	fileGroup   = "kube-kcm.github.io"
	fileVersion = fileGroup + "/v1alpha1"
	fileKind    = "KubeControllerManagerConfiguration"
	// ownFields is the part of the file for the flags that the original does not have.
	ownFields = "extensions"
	// noField annotates a flag that is no setting: what it asks for is done, and the
	// process ends.
	noField = fileGroup + "/no-field"
)

// fieldTable has the field of each flag of the original. Fields are called as in the
// published type KubeControllerManagerConfiguration, where that has them.
//
//go:embed fields.tsv
var fieldTable string

// fileField is a setting: a flag, and where its value stands in the configuration file.
type fileField struct {
	path string // with dots
	flag *pflag.Flag
	// reload reports whether a running process takes up a new value.
	reload bool
}

// fields returns the settings in the order of the file: those of the table, and then all
// other flags of ours.
func (o *KubeControllerManagerOptions) fields() []fileField {
	var all []fileField
	seen := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(fieldTable), "\n")[1:] {
		row := strings.Split(line, "\t")
		if flag := o.flag(row[0]); flag != nil {
			all = append(all, fileField{row[1], flag, row[2] == "yes"})
			seen[row[0]] = true
		}
	}
	var own []fileField
	o.ParsedFlags.FlagSet(ownSection).VisitAll(func(flag *pflag.Flag) {
		if _, none := flag.Annotations[noField]; !none && !seen[flag.Name] {
			own = append(own, fileField{path: ownFields + "." + camelCase(flag.Name), flag: flag})
		}
	})
	slices.SortFunc(own, func(a, b fileField) int { return strings.Compare(a.path, b.path) })
	return append(all, own...)
}

// flag returns a flag of any section.
func (o *KubeControllerManagerOptions) flag(name string) *pflag.Flag {
	for _, flags := range o.ParsedFlags.FlagSets {
		if flag := flags.Lookup(name); flag != nil {
			return flag
		}
	}
	return nil
}

func camelCase(flag string) string {
	words := strings.Split(flag, "-")
	for i, word := range words[1:] {
		if word != "" {
			words[i+1] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}

// document returns the configuration file of the flags. Deprecated ones are in it only
// when they were set; with onlySet, that holds for all.
func (o *KubeControllerManagerOptions) document(onlySet bool) strictyaml.Value {
	v := strictyaml.Value{}
	v.Put([]string{"apiVersion"}, strictyaml.Text(fileVersion))
	v.Put([]string{"kind"}, strictyaml.Text(fileKind))
	for _, f := range o.fields() {
		if f.flag.Changed || !onlySet && f.flag.Deprecated == "" {
			v.Put(strings.Split(f.path, "."), f.value())
		}
	}
	return v
}
