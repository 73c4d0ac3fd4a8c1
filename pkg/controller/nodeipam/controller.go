package nodeipam

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	// workers is how many nodes are served at once.
	workers = 30
	// firstRetry and lastRetry bound how long a node waits after a failure. Each report of its
	// status, every five minutes at least, is when the original tries again.
	firstRetry = 5 * time.Millisecond
	lastRetry  = 5 * time.Minute
)

// Controller gives nodes their CIDRs; its keys are their names.
type Controller struct {
	*reconcile.Controller[string]
	nodes toolscache.Store
	live  client.Reader
	book  *book
	// doubts are the UIDs of nodes that are read live before they are patched again.
	doubts sync.Map

	start    sync.Mutex
	listed   bool
	failed   error
	failedAt time.Time
	// retryAt is when the next try is planned.
	retryAt time.Time
}

// New returns the controller, which is not running yet.
func New(nodes coreinformers.NodeInformer, hand reconcile.Hand, o Options) (*Controller, error) {
	register()
	c := &Controller{nodes: nodes.Informer().GetStore(), live: hand.Reader(), book: newBook(o)}
	c.Controller = reconcile.New(reconcile.Options[string]{
		Runner: runner.Options[string]{Name: "node-ipam-controller", Queue: "cidrallocator_node", Workers: workers, RateLimiter: runner.Retries[string](firstRetry, lastRetry)},
		Hand:   hand, Caches: reconcile.Caches{corev1.Resource("nodes"): c.nodes},
		Note: func(_ string, of any) { c.doubts.Store(types.UID(of.(doubt)), true) },
	}, c.observe, plan)
	return c, runner.Watch(c.Runner, nodes.Informer(), func(change runner.Change[corev1.Node], wake runner.Wake[string]) {
		if wakes(change) {
			wake.Add(change.Now().Name)
		}
	})
}

// wakes reports whether a node is new or gone, or has other CIDRs than before.
func wakes(change runner.Change[corev1.Node]) bool {
	before, after := change.Old, change.New
	return before == nil || after == nil || before.UID != after.UID || !slices.Equal(cidrsOf(before), cidrsOf(after))
}
