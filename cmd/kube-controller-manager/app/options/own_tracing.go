package options

import (
	"errors"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	tracingapi "k8s.io/component-base/tracing/api/v1"
)

func (o *KubeControllerManagerOptions) addTracingFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.TracingConfigFile, "tracing-config-file", o.TracingConfigFile,
		"A file with a TracingConfiguration of apiserver.config.k8s.io, as for the flag of this name of the API server: where traces are sent (OTLP over gRPC), and how many in a million. "+
			"A trace shows which write woke which controller, and what that wrote. Without this flag there are none.")
}

func (o *KubeControllerManagerOptions) checkTracing(p *problems) {
	if o.TracingConfigFile == "" {
		return
	}
	_, errs := readTracing(o.TracingConfigFile)
	for _, err := range errs {
		p.with("tracing-config-file", o.TracingConfigFile, err)
	}
}

// readTracing returns what a file says, and everything that is wrong with it.
func readTracing(file string) (*tracingapi.TracingConfiguration, []error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, []error{err}
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	read := &apiserver.TracingConfiguration{}
	var errs []error
	if err := runtime.DecodeInto(serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(), data, read); err != nil {
		strict, is := runtime.AsStrictDecodingError(err)
		if !is {
			return nil, []error{err}
		}
		errs = append(errs, strict.Errors()...)
	}
	for _, wrong := range tracingapi.ValidateTracingConfiguration(&read.TracingConfiguration, nil, (*field.Path)(nil)) {
		errs = append(errs, wrong)
	}
	return &read.TracingConfiguration, errs
}

// applyTracing returns the configuration of traces; nil for none.
func (o *KubeControllerManagerOptions) applyTracing() (*tracingapi.TracingConfiguration, error) {
	if o.TracingConfigFile == "" {
		return nil, nil
	}
	read, errs := readTracing(o.TracingConfigFile)
	return read, errors.Join(errs...)
}
