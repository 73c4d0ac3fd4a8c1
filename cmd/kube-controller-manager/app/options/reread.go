package options

import (
	"errors"
	"fmt"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	kcmv1alpha1 "k8s.io/kube-controller-manager/config/v1alpha1"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/config"
	"github.com/kube-kcm/kube-controller-manager/pkg/strictyaml"
)

// reader reads the configuration file again.
type reader struct {
	path string
	// given is what the command line has set, by flag: that stays.
	given map[string]strictyaml.Value
	start []config.Setting
}

var _ config.File = &reader{}

// configFile returns what reads --config again; nil without one.
func (o *KubeControllerManagerOptions) configFile() config.File {
	if o.ConfigFile == "" {
		return nil
	}
	return &reader{o.ConfigFile, o.given, o.settings()}
}

func (o *KubeControllerManagerOptions) settings() []config.Setting {
	var all []config.Setting
	for _, f := range o.fields() {
		all = append(all, config.Setting{Flag: f.flag.Name, Field: f.path, Value: f.value(), Reload: f.reload})
	}
	return all
}

// Path is where the file lies.
func (r *reader) Path() string { return r.path }

// Settings are those at the start.
func (r *reader) Settings() []config.Setting { return r.start }

// Read returns the settings with another content of the file.
func (r *reader) Read(content []byte) ([]config.Setting, error) {
	o, err := r.with(func(f fileField) (strictyaml.Value, bool) { v, ok := r.given[f.flag.Name]; return v, ok })
	if err != nil {
		return nil, err
	}
	o.ConfigFile = r.path
	inFile := o.useConfigFile(content)
	if errors.Is(inFile, ErrUnreadable) {
		return nil, inFile
	}
	err = utilerrors.NewAggregate([]error{inFile, o.ComponentGlobalsRegistry.Set(), o.Validate()})
	if err != nil {
		return nil, o.Located(err)
	}
	return o.settings(), nil
}

// Shown is what /configz shows of settings.
func (r *reader) Shown(settings []config.Setting) (*kcmv1alpha1.KubeControllerManagerConfiguration, error) {
	values := map[string]strictyaml.Value{}
	for _, s := range settings {
		values[s.Flag] = s.Value
	}
	o, err := r.with(func(f fileField) (strictyaml.Value, bool) { v, ok := values[f.flag.Name]; return v, ok })
	if err != nil {
		return nil, err
	}
	c := &kcmv1alpha1.KubeControllerManagerConfiguration{}
	return c, o.applyComponentConfig(c)
}

// with returns options whose flags have values.
func (r *reader) with(value func(fileField) (strictyaml.Value, bool)) (*KubeControllerManagerOptions, error) {
	o, err := spareOptions()
	if err != nil {
		return nil, err
	}
	for _, f := range o.fields() {
		v, ok := value(f)
		if !ok {
			continue
		}
		if problems := f.set(v); len(problems) > 0 {
			return nil, fmt.Errorf("set --%s: %s", f.flag.Name, problems[0].Text)
		}
		f.flag.Changed = true
	}
	return o, nil
}
