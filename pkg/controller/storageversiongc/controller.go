package storageversiongc

import (
	"errors"

	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	internalinformers "k8s.io/client-go/informers/apiserverinternal/v1alpha1"
	coordinationinformers "k8s.io/client-go/informers/coordination/v1"
	coordinationlisters "k8s.io/client-go/listers/coordination/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const name = "storageversion-garbage-collector-controller"

var resource = apiserverinternalv1alpha1.Resource("storageversions")

// byServer finds StorageVersions by the IDs of the servers in them.
var byServer = cache.NewIndex("apiServerID", func(object any) ([]string, error) {
	sv, _ := object.(*storageVersion)
	return servers(sv), nil
})

// Informers makes informers whose Leases are only those of API servers.
var Informers = cache.Labelled(metav1.NamespaceSystem, identityLabel, apiServer)

// Controller cleans StorageVersions. One loop is about servers that have just
// gone, the other about entries of servers that may never have been there.
type Controller struct {
	*runner.Group
	// The keys of the loops are names: of Leases, and of StorageVersions.
	byLease, byVersion *reconcile.Controller[string]

	leases   coordinationlisters.LeaseNamespaceLister
	versions toolscache.Indexer
	live     client.Reader
}

// New returns the controller, which is not running yet.
func New(leases coordinationinformers.LeaseInformer, versions internalinformers.StorageVersionInformer, hand reconcile.Hand) (*Controller, error) {
	if err := cache.Ensure(versions.Informer(), byServer); err != nil {
		return nil, err
	}
	c := &Controller{
		leases: leases.Lister().Leases(metav1.NamespaceSystem), versions: versions.Informer().GetIndexer(), live: hand.Reader(),
	}
	options := func(loop, queue string) reconcile.Options[string] {
		return reconcile.Options[string]{
			Runner: runner.Options[string]{Name: loop, Queue: queue,
				Synced: []toolscache.InformerSynced{leases.Informer().HasSynced, versions.Informer().HasSynced}},
			Name: name, Hand: hand, Caches: reconcile.Caches{resource: versions.Informer().GetStore()},
		}
	}
	c.byLease = reconcile.New(options("leases", "storage_version_garbage_collector_leases"), c.observeServer, plan)
	c.byVersion = reconcile.New(options("storageversions", "storage_version_garbage_collector_storageversions"), c.observeVersion, plan)
	c.Group = runner.NewGroup(name, c.byLease, c.byVersion)
	return c, errors.Join(
		runner.Watch(c.byLease.Runner, leases.Informer(), func(change runner.Change[coordinationv1.Lease], wake runner.Wake[string]) {
			if change.New == nil {
				wake.Add(change.Old.Name)
			}
		}),
		runner.Watch(c.byVersion.Runner, versions.Informer(), func(change runner.Change[storageVersion], wake runner.Wake[string]) {
			if change.New != nil && len(change.New.Status.StorageVersions) > 0 {
				wake.Add(change.New.Name)
			}
		}),
	)
}
