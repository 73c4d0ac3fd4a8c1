package options

import (
	"net/http"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/transport"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/config"
	kcmtransport "github.com/kube-kcm/kube-controller-manager/pkg/transport"
)

const (
	// shadowWindow is how long the running manager has by default.
	shadowWindow = 30 * time.Second
	// leastShadowWindow leaves time for the round of a watch.
	leastShadowWindow = time.Second
)

// ShadowOptions are the flags of a process that compares and writes nothing.
type ShadowOptions struct {
	Enabled bool
	// Window is how long the running manager has for what we would do.
	Window time.Duration
}

func (o *KubeControllerManagerOptions) addShadowFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Shadow.Enabled, "shadow", o.Shadow.Enabled,
		"Runs all controllers without a lease and without any write, beside the controller manager that leads, and compares what they would write with what that one does. "+
			"The agreement is at /debug/shadow, in the metric kcm_shadow_comparisons_total, and in the log once for each sort of difference. "+
			"--leader-elect is ignored. All requests are reads with the credentials of --kubeconfig, except the reviews (TokenReview, SubjectAccessReview) of who calls its own secure port. "+
			"--batch-watch-reads is off.")
	fs.DurationVar(&o.Shadow.Window, "shadow-window", o.Shadow.Window,
		"How long the running controller manager may take to write what the shadow would write, before that counts as a difference. At least 1s. Used with --shadow only.")
}

func (o *KubeControllerManagerOptions) checkShadow(p *problems) {
	if o.Shadow.Window < leastShadowWindow {
		p.addf("shadow-window must not be less than %s, but got %s", leastShadowWindow, o.Shadow.Window)
	}
	if !o.Shadow.Enabled {
		if o.Shadow.Window != shadowWindow {
			p.addf("--shadow-window=%s has no effect without --shadow", o.Shadow.Window)
		}
		return
	}
	if name := o.KubeCloudShared.CloudProvider.Name; name != "" && name != "external" {
		p.addf("--cloud-provider=%s cannot be used with --shadow: its loops change the cloud", name)
	}
	if m := o.Generic.LeaderMigration; m != nil && m.Enabled {
		p.addf("--enable-leader-migration cannot be used with --shadow, which takes no lease")
	}
}

// applyShadow has nothing but reads leave the process. Managed fields, which say who has
// written, are in watch events that are not pruned.
func (o *KubeControllerManagerOptions) applyShadow(c *config.Config) {
	if !o.Shadow.Enabled {
		return
	}
	c.Shadow = &config.Shadow{Window: o.Shadow.Window, ReadOnly: &kcmtransport.ReadOnly{}}
	c.Kubeconfig = c.Shadow.ReadOnly.Config(c.Kubeconfig)
	c.BatchWatchReads = false
}

// shadowServing lets the secure port of a shadow ask about its callers, and no more.
func (o *KubeControllerManagerOptions) shadowServing(c *config.Config, lookups transport.WrapperFunc) {
	if c.Shadow == nil {
		return
	}
	readOnly := c.Shadow.ReadOnly.Wrap(kcmtransport.TokenReviews, kcmtransport.SubjectAccessReviews)
	o.Authentication.WithCustomRoundTripper(func(next http.RoundTripper) http.RoundTripper { return readOnly(lookups(next)) })
	o.Authorization.WithCustomRoundTripper(readOnly)
}
