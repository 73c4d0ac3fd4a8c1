package options

import "github.com/spf13/pflag"

func (o *KubeControllerManagerOptions) addReleaseFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.PrintRelease, "print-release", o.PrintRelease,
		"Prints the release of this binary, the version of Kubernetes that it stands in for, its commit and the Go that built it, and exits. --version prints the version of Kubernetes alone, for programs that read it.")
	isNoSetting(fs, "print-release")
}
