package options

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	cpconfig "k8s.io/cloud-provider/config"
	cpconfigv1alpha1 "k8s.io/cloud-provider/config/v1alpha1"
	cpoptions "k8s.io/cloud-provider/options"
	"k8s.io/component-base/metrics"
	cmconfig "k8s.io/controller-manager/config"
	cmconfigv1alpha1 "k8s.io/controller-manager/config/v1alpha1"
	cmoptions "k8s.io/controller-manager/options"
	netutils "k8s.io/utils/net"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/config"
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
)

// shared are the options that come from libraries and are bound to their
// unversioned types.
type shared struct {
	generic *cmoptions.GenericControllerManagerConfigurationOptions
	cloud   *cpoptions.KubeCloudSharedOptions
}

// sharedOptions takes the defaults of the libraries' flags from the configuration.
func sharedOptions(c *configuration) (shared, error) {
	generic := &cmconfig.GenericControllerManagerConfiguration{}
	if err := cmconfigv1alpha1.Convert_v1alpha1_GenericControllerManagerConfiguration_To_config_GenericControllerManagerConfiguration(&c.Generic, generic, nil); err != nil {
		return shared{}, fmt.Errorf("read the default generic configuration: %w", err)
	}
	cloud := &cpconfig.KubeCloudSharedConfiguration{}
	if err := cpconfigv1alpha1.Convert_v1alpha1_KubeCloudSharedConfiguration_To_config_KubeCloudSharedConfiguration(&c.KubeCloudShared, cloud, nil); err != nil {
		return shared{}, fmt.Errorf("read the default cloud configuration: %w", err)
	}
	return shared{
		generic: cmoptions.NewGenericControllerManagerConfigurationOptions(generic),
		cloud:   cpoptions.NewKubeCloudSharedOptions(cloud),
	}, nil
}

// applyComponentConfig writes the configuration that the flags made.
func (o *KubeControllerManagerOptions) applyComponentConfig(c *configuration) error {
	o.ComponentConfig.DeepCopyInto(c)
	generic := cmconfig.GenericControllerManagerConfiguration{}
	if err := o.Generic.ApplyTo(&generic, nil, nil, names.KCMControllerAliases()); err != nil {
		return err
	}
	if err := cmconfigv1alpha1.Convert_config_GenericControllerManagerConfiguration_To_v1alpha1_GenericControllerManagerConfiguration(&generic, &c.Generic, nil); err != nil {
		return fmt.Errorf("write the generic configuration: %w", err)
	}
	cloud := cpconfig.KubeCloudSharedConfiguration{}
	if err := o.KubeCloudShared.ApplyTo(&cloud); err != nil {
		return err
	}
	if err := cpconfigv1alpha1.Convert_config_KubeCloudSharedConfiguration_To_v1alpha1_KubeCloudSharedConfiguration(&cloud, &c.KubeCloudShared, nil); err != nil {
		return fmt.Errorf("write the cloud configuration: %w", err)
	}
	return nil
}

// startPatience is how long a start asks again for what the API server refuses for now.
const startPatience = time.Minute

// applyServing opens the port and says who may use it. Nothing listens on after
// an error.
func (o *KubeControllerManagerOptions) applyServing(ctx context.Context, c *config.Config) (err error) {
	if err := o.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{netutils.ParseIPSloppy("127.0.0.1")}); err != nil {
		return fmt.Errorf("error creating self-signed certificates: %w", err)
	}
	if err := o.SecureServing.ApplyTo(&c.SecureServing); err != nil {
		return err
	}
	if c.SecureServing == nil {
		return nil
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.SecureServing.Listener.Close())
		}
	}()
	// Who may ask is read from the cluster, once, and the process ends without it.
	wrap, over := transport.Lookups(ctx, startPatience)
	defer over()
	o.Authentication.WithCustomRoundTripper(wrap)
	o.shadowServing(c, wrap)
	if err := o.Authentication.ApplyTo(&c.Authentication, c.SecureServing, nil); err != nil {
		return err
	}
	return o.Authorization.ApplyTo(&c.Authorization)
}

// applyMetrics sets what the flags say of metrics. The library complains of a
// manifest that nobody named, so it is asked for less when there is none.
func (o *KubeControllerManagerOptions) applyMetrics() {
	m := o.Metrics
	if m.AllowListMapping != nil || m.AllowListMappingManifest != "" {
		m.Apply()
		return
	}
	if m.ShowHiddenMetricsForVersion != "" {
		metrics.SetShowHidden()
	}
	metrics.SetDisabledMetrics(m.DisabledMetrics)
}
