package legacytokencleaner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name = "legacy-serviceaccount-token-cleaner-controller"

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
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
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
	*runner.Runner[key]
	accounts corelisters.ServiceAccountLister
	client   kubernetes.Interface
	reader   kubernetes.Interface
	metadata metadata.Interface
	clock    clock.PassiveClock
	unused   time.Duration
}

// New returns the controller, which is not running yet. It writes with client,
// which may only get the tracking config map besides, and lists with the clients
// reader and metadata, as caches do.
func New(accounts coreinformers.ServiceAccountInformer, client, reader kubernetes.Interface, metadata metadata.Interface, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{
		accounts: accounts.Lister(), client: client, reader: reader, metadata: metadata, clock: o.Clock, unused: o.CleanUpPeriod,
	}
	c.Runner = runner.New(runner.Options[key]{
		Name: name, Clock: o.Clock, Synced: []toolscache.InformerSynced{accounts.Informer().HasSynced},
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[key](firstRetry, period),
	}, c.sync)
	c.Add(pass)
	return c, nil
}

// plan is shown at the debug endpoint.
type plan struct {
	Namespaces []string `json:"namespaces,omitempty"`
	Mark       []string `json:"mark,omitempty"`
	Delete     []string `json:"delete,omitempty"`
	InUse      []string `json:"inUse,omitempty"`
	Why        string   `json:"why"`
}

func (c *Controller) sync(ctx context.Context, k key) runner.Result {
	if k == pass {
		do, err := c.find(ctx)
		return runner.Done(err).LookAgain(period).Because(do)
	}
	do, err := c.retire(ctx, k.namespace)
	return runner.Done(err).Because(do)
}

// find queues the namespaces in which tokens may be to retire.
func (c *Controller) find(ctx context.Context) (plan, error) {
	now := c.clock.Now()
	tracking, err := c.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, TrackingConfigMap, metav1.GetOptions{})
	if err != nil {
		return plan{Why: "it is not known since when uses are recorded"}, fmt.Errorf("get config map %s/%s: %w", metav1.NamespaceSystem, TrackingConfigMap, err)
	}
	from, err := trackedFrom(tracking)
	if err != nil {
		return plan{Why: "it is not known since when uses are recorded"}, err
	}
	if due := from.Add(c.unused); now.Before(due) {
		return plan{Why: "uses are not recorded for long enough before " + due.Format(time.RFC3339)}, nil
	}
	namespaces := sets.New[string]()
	err = c.eachToken(ctx, metav1.NamespaceAll, func(secret *metav1.PartialObjectMetadata) {
		if judge(secret, c.cachedAccount(secret), c.unused, now).Do != keep {
			namespaces.Insert(secret.Namespace)
		}
	})
	if err != nil {
		return plan{Why: "token secrets cannot be read"}, err
	}
	do := plan{Namespaces: sets.List(namespaces), Why: "generated tokens are unused for the clean-up period in the namespaces named"}
	for _, namespace := range do.Namespaces {
		c.Add(key{namespace})
	}
	return do, nil
}

// retire judges the tokens of a namespace by what is there now, and marks or
// deletes those that no pod refers to.
func (c *Controller) retire(ctx context.Context, namespace string) (plan, error) {
	now := c.clock.Now()
	var candidates []*metav1.PartialObjectMetadata
	err := c.eachToken(ctx, namespace, func(secret *metav1.PartialObjectMetadata) {
		if judge(secret, c.cachedAccount(secret), c.unused, now).Do != keep {
			candidates = append(candidates, secret)
		}
	})
	if err != nil || len(candidates) == 0 {
		return plan{Why: "nothing to retire"}, err
	}
	referred, err := c.secretsOfPods(ctx, namespace)
	if err != nil {
		return plan{Why: "it is not known what pods use"}, err
	}
	do := plan{Why: "generated tokens are unused for the clean-up period"}
	var errs []error
	for _, secret := range candidates {
		if referred.Has(secret.Name) {
			do.InUse = append(do.InUse, secret.Name)
			continue
		}
		errs = append(errs, c.retireOne(ctx, &do, secret, now))
	}
	slices.Sort(do.InUse)
	return do, errors.Join(errs...)
}

func (c *Controller) retireOne(ctx context.Context, do *plan, secret *metav1.PartialObjectMetadata, now time.Time) error {
	account, err := c.liveAccount(ctx, secret)
	if err != nil {
		return err
	}
	action := judge(secret, account, c.unused, now).Do
	switch action {
	case keep:
		return nil
	case mark:
		do.Mark = append(do.Mark, secret.Name)
	case remove:
		do.Delete = append(do.Delete, secret.Name)
	}
	return c.apply(ctx, action, secret, now)
}
