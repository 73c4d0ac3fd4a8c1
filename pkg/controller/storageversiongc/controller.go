package storageversiongc

import (
	"context"
	"fmt"
	"time"

	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	internalinformers "k8s.io/client-go/informers/apiserverinternal/v1alpha1"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1"
	"k8s.io/client-go/kubernetes"
	internallisters "k8s.io/client-go/listers/apiserverinternal/v1alpha1"
	coordinationlisters "k8s.io/client-go/listers/coordination/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name                = "storageversion-garbage-collector-controller"
	leaseQueue          = "storage_version_garbage_collector_leases"
	storageVersionQueue = "storage_version_garbage_collector_storageversions"
)

var resource = apiserverinternalv1alpha1.Resource("storageversions")

// byServer finds StorageVersions by the IDs of the servers in them.
var byServer = cache.NewIndex("apiServerID", func(object any) ([]string, error) {
	sv, _ := object.(*storageVersion)
	return servers(sv), nil
})

// Informers returns informers whose Leases are only those of API servers. The
// caller starts them; client must be one that may list and watch Leases.
func Informers(client kubernetes.Interface, resync time.Duration) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, resync,
		informers.WithNamespace(metav1.NamespaceSystem), informers.WithTransform(cache.Trim),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = identityLabel + "=" + apiServer }))
}

// Options are the settings of the controller.
type Options struct {
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// Controller cleans StorageVersions. One loop is about servers that have just
// gone, the other about entries of servers that may never have been there.
type Controller struct {
	*runner.Group
	leases   coordinationlisters.LeaseNamespaceLister
	versions internallisters.StorageVersionLister
	indexer  toolscache.Indexer
	client   kubernetes.Interface
	// The keys of the loops are names: of Leases, and of StorageVersions.
	byLease, byVersion *consistency.Tracker[string]
	clock              clock.PassiveClock
}

// New returns the controller, which is not running yet.
func New(leases coordinationinformers.LeaseInformer, versions internalinformers.StorageVersionInformer, client kubernetes.Interface, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if err := cache.Ensure(versions.Informer(), byServer); err != nil {
		return nil, err
	}
	stores := map[schema.GroupResource]consistency.Store{resource: versions.Informer().GetStore()}
	c := &Controller{
		leases: leases.Lister().Leases(metav1.NamespaceSystem), versions: versions.Lister(), indexer: versions.Informer().GetIndexer(),
		client: client, clock: o.Clock,
		byLease: consistency.NewTracker[string](stores), byVersion: consistency.NewTracker[string](stores),
	}
	synced := []toolscache.InformerSynced{leases.Informer().HasSynced, versions.Informer().HasSynced}
	gone := runner.New(runner.Options[string]{Name: "leases", Queue: leaseQueue, Clock: o.Clock, Writes: c.byLease, Synced: synced}, c.syncLease)
	unknown := runner.New(runner.Options[string]{Name: "storageversions", Queue: storageVersionQueue, Clock: o.Clock, Writes: c.byVersion, Synced: synced}, c.syncVersion)
	c.Group = runner.NewGroup(name, gone, unknown)
	err := runner.Watch(gone, leases.Informer(), func(change runner.Change[coordinationv1.Lease], wake runner.Wake[string]) {
		if change.New == nil {
			wake.Add(change.Old.Name)
		}
	})
	if err != nil {
		return nil, err
	}
	return c, runner.Watch(unknown, versions.Informer(), func(change runner.Change[storageVersion], wake runner.Wake[string]) {
		if change.New != nil && len(change.New.Status.StorageVersions) > 0 {
			wake.Add(change.New.Name)
		}
	})
}

// syncLease cleans all StorageVersions of a server whose Lease has vanished.
func (c *Controller) syncLease(ctx context.Context, server string) runner.Result {
	gone, err := c.gone(ctx, []string{server})
	if err != nil || len(gone) == 0 {
		return runner.Done(err).Because(plan{Why: "the server is there"})
	}
	found, err := cache.Lookup[storageVersion](c.indexer, byServer, server)
	if err != nil {
		return runner.Done(err)
	}
	var errs []error
	for _, sv := range found {
		errs = append(errs, c.apply(ctx, server, c.byLease, decide(sv, gone, c.clock.Now())))
	}
	return runner.Done(errs...).Because(plan{Gone: gone, Why: fmt.Sprintf("%d storage versions named it", len(found))})
}

// syncVersion cleans one StorageVersion of all servers that are not there.
func (c *Controller) syncVersion(ctx context.Context, name string) runner.Result {
	sv, err := c.versions.Get(name)
	if apierrors.IsNotFound(err) {
		c.byVersion.Forget(name)
		sv, err = nil, nil
	}
	if err != nil {
		return runner.Done(fmt.Errorf("get storage version %s: %w", name, err))
	}
	gone, err := c.gone(ctx, servers(sv))
	if err != nil {
		return runner.Done(err)
	}
	do := decide(sv, gone, c.clock.Now())
	return runner.Done(c.apply(ctx, name, c.byVersion, do)).Because(do)
}
