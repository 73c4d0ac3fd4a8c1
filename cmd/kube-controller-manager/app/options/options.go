package options

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/server/flagz"
	apiserveroptions "k8s.io/apiserver/pkg/server/options"
	apiservercompatibility "k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	cpoptions "k8s.io/cloud-provider/options"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/compatibility"
	componentbaseconfig "k8s.io/component-base/config"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json and its flags
	"k8s.io/component-base/metrics"
	genericapp "k8s.io/controller-manager/app"
	cmoptions "k8s.io/controller-manager/options"
	kcmv1alpha1 "k8s.io/kube-controller-manager/config/v1alpha1"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/config"
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	_ "github.com/kube-kcm/kube-controller-manager/pkg/features" // every gate that --feature-gates takes
	"github.com/kube-kcm/kube-controller-manager/pkg/strictyaml"
	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
)

const (
	// securePort is the port of kube-controller-manager in every cluster.
	securePort = 10257
	// shutdownTimeout is how long controllers may take to stop by default.
	shutdownTimeout = 10 * time.Second
	// volumeBinderWorkers is how many claims are bound at once by default. Each waits for
	// the answers to four writes.
	volumeBinderWorkers = 25
)

type leaderElectionConfiguration = componentbaseconfig.LeaderElectionConfiguration

// KubeControllerManagerOptions are the flags of the process and what they are set to.
type KubeControllerManagerOptions struct {
	// ComponentConfig is what the flags of the controllers are bound to.
	ComponentConfig *kcmv1alpha1.KubeControllerManagerConfiguration
	// Generic are the flags that every controller manager has.
	Generic *cmoptions.GenericControllerManagerConfigurationOptions
	// KubeCloudShared are those shared with cloud controller managers.
	KubeCloudShared *cpoptions.KubeCloudSharedOptions

	SecureServing  *apiserveroptions.SecureServingOptions
	Authentication *apiserveroptions.DelegatingAuthenticationOptions
	Authorization  *apiserveroptions.DelegatingAuthorizationOptions
	Metrics        *metrics.Options
	Logs           *logs.Options

	// Master is the address of the API server, over that of the kubeconfig.
	Master string
	// ControllerShutdownTimeout is how long controllers may take to stop.
	ControllerShutdownTimeout time.Duration
	// RejectedPodBackoff replaces pods that kubelets reject at once ever more rarely.
	RejectedPodBackoff bool
	// VolumeBinderWorkers is how many claims, and how many volumes, are bound at once.
	VolumeBinderWorkers int32
	// NodeOutageBrakeThreshold is the share of nodes above which silence is not believed
	// while the process has trouble itself; 0 for none.
	NodeOutageBrakeThreshold float32
	// Shadow compares, and writes nothing.
	Shadow ShadowOptions
	// ConfigFile is where the settings come from that no flag gives; empty if there is no such file.
	ConfigFile string
	// WriteConfigTo is where the settings are written to before the process ends; empty if they are not.
	WriteConfigTo string
	// ValidateConfig checks all settings, and ends.
	ValidateConfig bool
	// PauseConfigMap says at run time what is paused; empty for none.
	PauseConfigMap string
	// MaxDeletesPerMinute holds deletions back; empty for none.
	MaxDeletesPerMinute string
	// PrintRelease prints what the binary is, and ends.
	PrintRelease bool
	// TracingConfigFile says where traces are sent; "" for none.
	TracingConfigFile string
	// BatchWatchReads has busy connections of the caches read at intervals.
	BatchWatchReads bool

	// ComponentGlobalsRegistry has the flags of feature gates and versions. Its
	// Set must be called after parsing and before anything reads a gate.
	ComponentGlobalsRegistry compatibility.ComponentGlobalsRegistry
	// ParsedFlags are the flag sets that Flags made last, for /flagz.
	ParsedFlags *cliflag.NamedFlagSets

	file fromFile
	// given is what the command line has set, by flag.
	given map[string]strictyaml.Value
}

// NewKubeControllerManagerOptions returns the defaults, on the feature gates of
// the process.
func NewKubeControllerManagerOptions() (*KubeControllerManagerOptions, error) {
	return newOptions(apiservercompatibility.DefaultComponentGlobalsRegistry)
}

func newOptions(registry compatibility.ComponentGlobalsRegistry) (*KubeControllerManagerOptions, error) {
	o := &KubeControllerManagerOptions{
		ComponentConfig:           DefaultComponentConfig(),
		SecureServing:             apiserveroptions.NewSecureServingOptions(),
		Authentication:            apiserveroptions.NewDelegatingAuthenticationOptions(),
		Authorization:             apiserveroptions.NewDelegatingAuthorizationOptions(),
		Metrics:                   metrics.NewOptions(),
		Logs:                      logs.NewOptions(),
		ControllerShutdownTimeout: shutdownTimeout,
		VolumeBinderWorkers:       volumeBinderWorkers,
		Shadow:                    ShadowOptions{Window: shadowWindow},
		BatchWatchReads:           true,
		ComponentGlobalsRegistry:  registry,
	}
	shared, err := sharedOptions(o.ComponentConfig)
	if err != nil {
		return nil, err
	}
	o.Generic, o.KubeCloudShared = shared.generic, shared.cloud

	// Certificates that nobody gave are made in memory.
	o.SecureServing.ServerCert.CertDirectory = ""
	o.SecureServing.ServerCert.PairName = leaseName
	o.SecureServing.BindPort = securePort
	o.Authentication.RemoteKubeConfigFileOptional = true
	o.Authorization.RemoteKubeConfigFileOptional = true
	return o, nil
}

// Flags returns all flags by section. The controllers are named in the help of
// --controllers; aliases are accepted there and not shown.
func (o *KubeControllerManagerOptions) Flags() cliflag.NamedFlagSets {
	flags := cliflag.NamedFlagSets{}
	o.Generic.AddFlags(&flags, names.All(), names.DisabledByDefault(), names.KCMControllerAliases())
	generic := flags.FlagSet("generic")
	o.KubeCloudShared.AddFlags(generic)
	o.ComponentGlobalsRegistry.AddFlags(generic)
	generic.DurationVar(&o.ControllerShutdownTimeout, "controller-shutdown-timeout", o.ControllerShutdownTimeout,
		"How long to wait for the controllers to stop before the process ends.")

	each := sections()
	addSection := func(s section) { s.flags(flags.FlagSet(s.controller), o.ComponentConfig) }
	addSection(each[0]) // the cloud's controller comes with the cloud's flags
	o.SecureServing.AddFlags(flags.FlagSet("secure serving"))
	o.Authentication.AddFlags(flags.FlagSet("authentication"))
	o.Authorization.AddFlags(flags.FlagSet("authorization"))
	for _, s := range each[1:] {
		addSection(s)
	}
	o.addOwnFlags(flags.FlagSet(ownSection))
	o.Metrics.AddFlags(flags.FlagSet("metrics"))
	logsapi.AddFlags(o.Logs, flags.FlagSet("logs"))

	misc := flags.FlagSet("misc")
	misc.StringVar(&o.Master, "master", o.Master,
		"The address of the API server, instead of the one in the kubeconfig.")
	misc.StringVar(&o.Generic.ClientConnection.Kubeconfig, "kubeconfig", o.Generic.ClientConnection.Kubeconfig,
		"Kubeconfig file with the address of the API server and the credentials for it. Without it and without --master the service account of the pod is used.")
	o.ParsedFlags = &flags
	return flags
}

// Validate reports everything that is wrong with the command line, in one error.
// It opens nothing and starts nothing.
func (o *KubeControllerManagerOptions) Validate() error {
	p := &problems{}
	o.checkGeneric(p)
	gates := o.ComponentGlobalsRegistry.FeatureGateFor(compatibility.DefaultKubeComponent)
	s := &settings{
		configuration: o.ComponentConfig,
		podCIDRs:      podCIDRs{o.KubeCloudShared.AllocateNodeCIDRs, o.KubeCloudShared.ClusterCIDR},
		enabled:       o.enabled(names.DisabledByDefault()),
		gates:         gates,
	}
	for _, section := range sections() {
		section.check(p, s)
	}
	o.checkOwn(p)
	o.checkServing(p)
	p.add(o.Metrics.Validate()...)
	if errs := logsapi.Validate(o.Logs, gates, nil); len(errs) > 0 {
		p.add(errs.ToAggregate().Errors()...)
	}
	p.add(o.ComponentGlobalsRegistry.Validate()...)
	o.checkClient(p)
	return p.message()
}

// enabled reports whether --controllers lets any of some controllers run.
func (o *KubeControllerManagerOptions) enabled(disabledByDefault []string) func(...string) bool {
	chosen, off := names.Canonical(o.Generic.Controllers, names.KCMControllerAliases()), sets.NewString(disabledByDefault...)
	return func(controllers ...string) bool {
		return slices.ContainsFunc(controllers, func(controller string) bool { return genericapp.IsControllerEnabled(controller, off, chosen) })
	}
}

// Config validates the command line, opens what it names and returns the
// configuration of the process. ctx bounds the life of event recording.
func (o *KubeControllerManagerOptions) Config(ctx context.Context) (_ *config.Config, err error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	c := &config.Config{
		ControllerShutdownTimeout: o.ControllerShutdownTimeout,
		RejectedPodBackoff:        o.RejectedPodBackoff,
		VolumeBinderWorkers:       o.VolumeBinderWorkers,
		NodeOutageBrakeThreshold:  o.NodeOutageBrakeThreshold,
		BatchWatchReads:           o.BatchWatchReads,
		ComponentGlobalsRegistry:  o.ComponentGlobalsRegistry,
		File:                      o.configFile(),
	}
	if c.PauseConfigMap, err = pauseConfigMap(o.PauseConfigMap); err != nil {
		return nil, err
	}
	if c.MaxDeletesPerMinute, err = deleteRates(o.MaxDeletesPerMinute); err != nil {
		return nil, err
	}
	if o.ParsedFlags != nil {
		c.Flagz = flagz.NamedFlagSetsReader{FlagSets: *o.ParsedFlags}
	}
	if c.Kubeconfig, err = o.clientConfig(); err != nil {
		return nil, fmt.Errorf("%s: %w", o.clientFlags(), err)
	}
	o.applyShadow(c)
	c.Rates = transport.NewRates(c.Kubeconfig.QPS, c.Kubeconfig.Burst)
	if c.Client, err = kubernetes.NewForConfig(c.Rates.Limited(rest.AddUserAgent(c.Kubeconfig, leaseName), 1, 1)); err != nil {
		return nil, err
	}
	if c.Tracing, err = o.applyTracing(); err != nil {
		return nil, fmt.Errorf("--tracing-config-file=%s: %w", o.TracingConfigFile, err)
	}
	if err := o.applyComponentConfig(&c.ComponentConfig); err != nil {
		return nil, err
	}
	if err := o.applyServing(ctx, c); err != nil {
		return nil, err
	}
	o.applyMetrics()
	// Run flushes and ends it: what is recorded during a stop is still written.
	c.EventBroadcaster = record.NewBroadcaster(record.WithContext(context.WithoutCancel(ctx)))
	c.EventRecorder = c.EventBroadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: leaseName})
	return c, nil
}
