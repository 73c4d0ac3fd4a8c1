package options

import (
	"errors"
	"fmt"
	"os"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	apiservercompatibility "k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/compatibility"

	"github.com/kube-kcm/kube-controller-manager/pkg/release"
	"github.com/kube-kcm/kube-controller-manager/pkg/strictyaml"
)

// ErrUnreadable says that no field of a configuration file could be read.
var ErrUnreadable = errors.New("the configuration file cannot be read")

// fromFile is what is known of the file that was read.
type fromFile struct {
	// places are where the flags stand that the file has set.
	places []place
	// overridden are the fields that flags of the command line have set in its stead.
	overridden []string
	// notices are about fields that are deprecated.
	notices []string
}

// ReadConfigFile sets the flags that the command line has not set to what --config has.
// All problems of the file are in one error, each with file and line. ErrUnreadable is in
// it when the file is not what it should be as a whole: what follows from the flags alone
// is of no use then.
func (o *KubeControllerManagerOptions) ReadConfigFile() error {
	if o.ConfigFile == "" {
		return nil
	}
	data, err := os.ReadFile(o.ConfigFile)
	if err != nil {
		return unreadable{fmt.Errorf("--config=%s: %w", o.ConfigFile, err)}
	}
	return o.useConfigFile(data)
}

// unreadable is an ErrUnreadable that says no more than what is in it.
type unreadable struct{ error }

func (unreadable) Is(target error) bool { return target == ErrUnreadable }

func (e unreadable) Unwrap() error { return e.error }

func (o *KubeControllerManagerOptions) useConfigFile(data []byte) error {
	o.given = map[string]strictyaml.Value{}
	for _, f := range o.fields() {
		if f.flag.Changed {
			o.given[f.flag.Name] = f.value()
		}
	}
	root, problems, err := strictyaml.Read(data)
	if err == nil {
		var wrong []strictyaml.Problem
		wrong, err = wrongVersion(root)
		problems = append(problems, wrong...)
	}
	if err != nil {
		return unreadable{o.inFile(problems)}
	}
	found, err := o.setFields(root)
	if err != nil {
		return err
	}
	return o.inFile(append(problems, found...))
}

// inFile returns problems as an error; nil when there are none.
func (o *KubeControllerManagerOptions) inFile(problems []strictyaml.Problem) error {
	var errs []error
	for _, p := range problems {
		errs = append(errs, fmt.Errorf("%s:%d: %s", o.ConfigFile, max(p.Line, 1), p.Text))
	}
	return utilerrors.NewAggregate(errs)
}

// wrongVersion returns an error for a file that cannot be understood, such as one of a
// later release.
func wrongVersion(root strictyaml.Value) (problems []strictyaml.Problem, err error) {
	for _, want := range [][2]string{{"apiVersion", fileVersion}, {"kind", fileKind}} {
		f, ok := lookup(root, want[0])
		group, _, _ := strings.Cut(f.Value.Text, "/")
		switch {
		case !ok:
			problems = append(problems, strictyaml.Problem{Line: 1, Text: fmt.Sprintf("%s is missing: want %s", want[0], want[1])})
		case f.Value.Kind == strictyaml.String && f.Value.Text == want[1]:
		case want[0] == "apiVersion" && group == fileGroup:
			err = ErrUnreadable
			problems = append(problems, strictyaml.Problem{Line: f.Line,
				Text: fmt.Sprintf("apiVersion %s is not one that %s reads; it reads %s. A file for a later release needs that release", f.Value, release.Version(), want[1])})
		default:
			err = ErrUnreadable
			problems = append(problems, strictyaml.Problem{Line: f.Line, Text: fmt.Sprintf("%s: want %s, got %s", want[0], want[1], f.Value)})
		}
	}
	return problems, err
}

func lookup(v strictyaml.Value, name string) (strictyaml.Field, bool) {
	for _, f := range v.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return strictyaml.Field{}, false
}

// setFields sets the flags. A field that the command line has set is checked on flags
// that nobody uses.
func (o *KubeControllerManagerOptions) setFields(root strictyaml.Value) ([]strictyaml.Problem, error) {
	spare, err := spareOptions()
	if err != nil {
		return nil, err
	}
	w := &walk{fields: map[string]fileField{}}
	unused := map[string]fileField{}
	for _, f := range spare.fields() {
		unused[f.path] = f
	}
	for _, f := range o.fields() {
		if _, given := o.given[f.flag.Name]; given {
			f = unused[f.path]
		}
		w.fields[f.path] = f
	}
	w.set = func(at strictyaml.Field, f fileField) {
		name := f.flag.Name
		w.problems = append(w.problems, f.set(at.Value)...)
		if _, given := o.given[name]; given {
			o.file.overridden = append(o.file.overridden, f.path+" (--"+name+")")
			return
		}
		f.flag.Changed = true
		o.file.places = append(o.file.places, place{flag: name, path: f.path, field: at})
		if f.flag.Deprecated != "" {
			o.file.notices = append(o.file.notices, fmt.Sprintf("%s:%d: %s (--%s) is deprecated, %s", o.ConfigFile, at.Line, f.path, name, f.flag.Deprecated))
		}
	}
	w.mapping("", root)
	return w.problems, nil
}

// spareOptions are options with all flags, that change nothing of the process.
func spareOptions() (*KubeControllerManagerOptions, error) {
	gates := utilfeature.DefaultMutableFeatureGate.DeepCopyAndReset()
	if err := gates.AddDependencies(utilfeature.DefaultMutableFeatureGate.Dependencies()); err != nil {
		return nil, fmt.Errorf("copy the feature gates: %w", err)
	}
	registry := compatibility.NewComponentGlobalsRegistry()
	if err := registry.Register(compatibility.DefaultKubeComponent, apiservercompatibility.DefaultBuildEffectiveVersion(), gates); err != nil {
		return nil, fmt.Errorf("copy the feature gates: %w", err)
	}
	o, err := newOptions(registry)
	if err != nil {
		return nil, err
	}
	o.Flags()
	return o, nil
}
