package options

import (
	"fmt"
	"os"

	"github.com/spf13/pflag"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/kube-kcm/kube-controller-manager/pkg/strictyaml"
)

func (o *KubeControllerManagerOptions) addConfigFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.ConfigFile, "config", o.ConfigFile,
		"A YAML file with settings, of the kind "+fileKind+" of "+fileVersion+". It has a field for every flag; a flag that is given on the command line wins over the file. "+
			"While the process runs, changes of the verbosity of the log, of the numbers of workers and of the request rates are taken up within 5 s. All others need a restart, and the log says so.")
	fs.StringVar(&o.WriteConfigTo, "write-config-to", o.WriteConfigTo,
		"A file to which all settings are written, those of the flags, of --config and the defaults, for use with --config. Then the process ends.")
	fs.BoolVar(&o.ValidateConfig, "validate-config", o.ValidateConfig,
		"Checks the flags, --config and the files that they name as a start does, prints all problems with their lines, and ends: with exit code 1 if there are any.")
	isNoSetting(fs, "config", "write-config-to", "validate-config")
}

// isNoSetting keeps flags out of the configuration file.
func isNoSetting(fs *pflag.FlagSet, flags ...string) {
	for _, flag := range flags {
		utilruntime.Must(fs.SetAnnotation(flag, noField, nil))
	}
}

// WriteConfigFile writes all settings to --write-config-to.
func (o *KubeControllerManagerOptions) WriteConfigFile() error {
	data, err := strictyaml.Write(o.document(false))
	if err == nil {
		err = os.WriteFile(o.WriteConfigTo, data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("--write-config-to=%s: %w", o.WriteConfigTo, err)
	}
	return nil
}

// FromConfigFile returns what there is to log of the file that was read: the fields in
// whose stead the command line has flags, and the use of deprecated ones.
func (o *KubeControllerManagerOptions) FromConfigFile() (overridden, notices []string) {
	return o.file.overridden, o.file.notices
}
