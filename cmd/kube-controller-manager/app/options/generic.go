package options

import (
	"errors"
	"fmt"
	"math"
	"mime"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	cloudprovider "k8s.io/cloud-provider"
	cmconfig "k8s.io/controller-manager/config"
	migrationoptions "k8s.io/controller-manager/pkg/leadermigration/options"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
)

// checkGeneric reports what is wrong with the flags that concern no controller.
func (o *KubeControllerManagerOptions) checkGeneric(p *problems) {
	p.controllers(o.Generic.Controllers)
	p.leaderElection(&o.Generic.GenericControllerManagerConfiguration.LeaderElection)
	p.leaderMigration(o.Generic.LeaderMigration)
	p.notNegative("min-resync-period", o.Generic.MinResyncPeriod.Duration)
	p.notNegative("controller-start-interval", o.Generic.ControllerStartInterval.Duration)
	p.notNegative("controller-shutdown-timeout", o.ControllerShutdownTimeout)

	cloud := o.KubeCloudShared
	p.positive("node-monitor-period", cloud.NodeMonitorPeriod.Duration)
	p.notNegative("route-reconciliation-period", cloud.RouteReconciliationPeriod.Duration)
	if name := cloud.CloudProvider.Name; name != "" && !cloudprovider.IsExternal(name) && !cloudprovider.IsCloudProvider(name) {
		p.addf("--cloud-provider=%s: %w (unknown cloud provider %q: this build has none of that name)", name, cloudprovider.ErrorForDisabledProvider(name), name)
	}
	p.allocator(cloud.CIDRAllocatorType, cloud.AllocateNodeCIDRs && o.enabled(nil)(names.NodeIpamController))
}

// allocator refuses those that are not built in. That none is named matters only where
// CIDRs are allocated.
func (p *problems) allocator(kind string, allocate bool) {
	switch {
	case kind == "" && allocate:
		p.with("cidr-allocator-type", kind, errors.New("invalid CIDR allocator type: "))
	case kind != "" && kind != rangeAllocator:
		p.addf("--cidr-allocator-type=%s: built-in cloud providers are disabled. The ipam %s is not available", kind, kind)
	}
}

// controllers refuses names that nobody knows.
func (p *problems) controllers(chosen []string) {
	known, aliases := sets.New(names.All()...), names.KCMControllerAliases()
	for _, choice := range chosen {
		name := strings.TrimPrefix(choice, "-")
		if choice != "*" && !known.Has(name) && !known.Has(aliases[name]) {
			p.addf("--controllers: %q is not in the list of known controllers", name)
		}
	}
}

// leaderElection refuses times with which nobody could lead, or two could.
func (p *problems) leaderElection(c *leaderElectionConfiguration) {
	if !c.LeaderElect {
		return
	}
	if c.ResourceLock != "leases" {
		p.with("leader-elect-resource-lock", c.ResourceLock, errors.New(`resourceLock value must be "leases"`))
	}
	p.objectName("leader-elect-resource-name", "resource name", c.ResourceName, validation.IsDNS1123Subdomain)
	p.objectName("leader-elect-resource-namespace", "resource namespace", c.ResourceNamespace, validation.IsDNS1123Label)
	lease, renew, retry := c.LeaseDuration.Duration, c.RenewDeadline.Duration, c.RetryPeriod.Duration
	if lease < time.Second {
		p.with("leader-elect-lease-duration", lease, errors.New("leaseDuration must be at least one second"))
	}
	if lease <= renew {
		p.addf("--leader-elect-lease-duration=%s --leader-elect-renew-deadline=%s: leaseDuration must be greater than renewDeadline", lease, renew)
	}
	if retry <= 0 {
		p.with("leader-elect-retry-period", retry, errors.New("retryPeriod must be greater than zero"))
	}
	if renew <= time.Duration(leaderelection.JitterFactor*float64(retry)) {
		p.addf("--leader-elect-renew-deadline=%s --leader-elect-retry-period=%s: renewDeadline must be greater than retryPeriod*JitterFactor, which is %g times the period",
			renew, retry, leaderelection.JitterFactor)
	}
}

// objectName refuses what no object can be called.
func (p *problems) objectName(flag, what, name string, check func(string) []string) {
	if name == "" {
		p.with(flag, `""`, fmt.Errorf("%s may not be empty", what))
		return
	}
	for _, problem := range check(name) {
		p.with(flag, name, fmt.Errorf("%s is not valid: %s", what, problem))
	}
}

// leaderMigration reads the file if it will be used.
func (p *problems) leaderMigration(o *migrationoptions.LeaderMigrationOptions) {
	if !o.Enabled {
		return
	}
	var c cmconfig.GenericControllerManagerConfiguration
	err := o.ApplyTo(&c)
	if lock := c.LeaderMigration.ResourceLock; err == nil && lock != resourcelock.LeasesResourceLock {
		err = fmt.Errorf("resourceLock: %q: must be %q", lock, resourcelock.LeasesResourceLock)
	}
	p.with("leader-migration-config", o.ControllerMigrationConfig, err)
}

// checkClient reports what is wrong with the flags of the way to the API server.
func (o *KubeControllerManagerOptions) checkClient(p *problems) {
	c := o.Generic.ClientConnection
	if math.IsNaN(float64(c.QPS)) {
		p.addf("kube-api-qps must be a number, but got %g", c.QPS)
	}
	if c.QPS > 0 && c.Burst <= 0 {
		p.with("kube-api-burst", c.Burst, errors.New("burst is required to be greater than 0 when RateLimiter is not set and QPS is set to greater than 0"))
	}
	if err := supportedContentType(c.ContentType); err != nil {
		p.with("kube-api-content-type", c.ContentType, err)
	}
	if c.Kubeconfig == "" && o.Master == "" {
		return // inside a cluster: there is nothing to read on the command line
	}
	if _, err := o.clientConfig(); err != nil {
		p.addf("%s: %w", o.clientFlags(), err)
	}
}

// clientFlags are the flags that say where the API server is.
func (o *KubeControllerManagerOptions) clientFlags() string {
	flags := "--kubeconfig=" + o.Generic.ClientConnection.Kubeconfig
	if o.Master != "" {
		flags += " --master=" + o.Master
	}
	return flags
}

// clientConfig says how the API server is reached, and proves as much of it as
// can be proved without a connection.
func (o *KubeControllerManagerOptions) clientConfig() (*rest.Config, error) {
	connection := o.Generic.ClientConnection
	c, err := clientcmd.BuildConfigFromFlags(o.Master, connection.Kubeconfig)
	if err != nil {
		return nil, err
	}
	if _, _, err := rest.DefaultServerUrlFor(c); err != nil {
		return nil, err
	}
	if _, err := rest.TLSConfigFor(c); err != nil {
		return nil, err
	}
	c.DisableCompression = true
	c.AcceptContentTypes = connection.AcceptContentTypes
	c.ContentType = connection.ContentType
	c.QPS = connection.QPS
	c.Burst = int(connection.Burst)
	return c, nil
}

// supportedContentType refuses what no client could send. Clients fall back to
// JSON where none is named and where CBOR is switched off.
func supportedContentType(value string) error {
	if value == "" || value == runtime.ContentTypeCBOR {
		return nil
	}
	mediaType, _, err := mime.ParseMediaType(value)
	if err != nil {
		return err
	}
	if _, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mediaType); !ok {
		return fmt.Errorf("no serializers registered for %s", value)
	}
	return nil
}
