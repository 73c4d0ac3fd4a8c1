package legacytokencleaner

import (
	"time"

	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	// period is the time between two passes.
	period = 24 * time.Hour
	// firstRetry is the time to the first retry of what failed; it doubles up to the period.
	firstRetry = time.Second
)

// Options are the settings of the controller.
type Options struct {
	// CleanUpPeriod is how long a token must be unused before it is marked
	// invalid, and how long it is then invalid before it is deleted.
	CleanUpPeriod time.Duration
}

// key is a namespace with tokens to retire; the empty one is the pass over all.
type key struct{ namespace string }

var pass = key{}

func (k key) String() string {
	if k == pass {
		return "pass"
	}
	return k.namespace
}

// Controller retires tokens.
type Controller struct {
	*reconcile.Controller[key]
	accounts corelisters.ServiceAccountLister
	own      client.Reader
	live     client.Reader
	unused   time.Duration
}

// New returns the controller, which is not running yet. Its hand may only get the
// tracking config map besides writing; it lists with live, as caches do.
func New(accounts coreinformers.ServiceAccountInformer, live client.Reader, hand reconcile.Hand, o Options) (*Controller, error) {
	c := &Controller{accounts: accounts.Lister(), own: hand.Reader(), live: live, unused: o.CleanUpPeriod}
	c.Controller = reconcile.New(reconcile.Options[key]{
		Runner: runner.Options[key]{
			Name: "legacy-serviceaccount-token-cleaner-controller", Synced: []toolscache.InformerSynced{accounts.Informer().HasSynced},
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[key](firstRetry, period),
		},
		Hand: hand, Note: c.noted,
	}, c.observe, plan)
	c.Add(pass)
	return c, nil
}

// noted wakes the namespaces that the pass has found, and logs what was retired.
func (c *Controller) noted(_ key, note any) {
	switch note := note.(type) {
	case found:
		for _, namespace := range note {
			c.Add(key{namespace})
		}
	case retired:
		for _, r := range note {
			labels := r.secret.Labels
			klog.Background().Info("Marked or deleted an unused generated token", "secret", klog.KObj(r.secret), "action", r.action,
				"created", r.secret.CreationTimestamp, "lastUsed", labels[LastUsedLabel], "invalidSince", labels[InvalidSinceLabel])
		}
	}
}
