package storageversionmigrator

import (
	"context"
	"errors"
	"sync"
	"time"

	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	storagemigrationinformers "k8s.io/client-go/informers/storagemigration/v1beta1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name = "storage-version-migrator-controller"
	// versionQueue names the queues of the two loops before the objects, as in the original.
	versionQueue = "resource-version-controller"
	// workers is how many migrations write their objects at once, as in the original.
	workers = 5
)

var resource = storagemigrationv1beta1.Resource("storageversionmigrations")

// byResource finds migrations by the resource that they migrate.
var byResource = cache.NewIndex("migratedResource", func(object any) ([]string, error) {
	if m, ok := object.(*migration); ok {
		return []string{m.Spec.Resource.String()}, nil
	}
	return nil, nil
})

// Discovery is asked which versions of a resource are served.
type Discovery interface {
	ServerGroups() (*metav1.APIGroupList, error)
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// Definitions are read live.
type Definitions interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*definition, error)
}

// Options are what the controller reads, besides migrations and objects. Both are required.
type Options struct {
	Discovery   Discovery
	Definitions Definitions
}

// Controller carries out migrations. Each of its loops does one part: whose turn
// it is, from which version on, and the objects. The keys are names of migrations.
type Controller struct {
	*runner.Group
	turns, versions, objects *reconcile.Controller[string]

	migrations  toolscache.Indexer
	live        client.Reader
	discovery   Discovery
	definitions Definitions
	places      places
}

// New returns the controller, which is not running yet. The hand knows the objects of
// any resource.
func New(migrations storagemigrationinformers.StorageVersionMigrationInformer, hand reconcile.Hand, o Options) (*Controller, error) {
	if err := cache.Ensure(migrations.Informer(), byResource); err != nil {
		return nil, err
	}
	c := &Controller{
		migrations: migrations.Informer().GetIndexer(), live: hand.Reader(),
		discovery: o.Discovery, definitions: o.Definitions,
	}
	options := func(loop, queue string, workers int) reconcile.Options[string] {
		return reconcile.Options[string]{
			Runner: runner.Options[string]{Name: loop, Queue: queue, Workers: workers, FixedWorkers: true}, Name: name, Hand: hand,
			Caches: reconcile.Caches{resource: c.migrations}, Note: c.note,
		}
	}
	c.turns = reconcile.New(options("migration-runner-controller", versionQueue, 1), c.observeTurn, planTurn)
	c.versions = reconcile.New(options("resource-version-controller", versionQueue, 1), c.observeVersion, planVersion)
	c.objects = reconcile.New(options(name, name, workers), c.observePage, planPage)
	c.Group = runner.NewGroup(name, c.turns, c.versions, c.objects)
	return c, errors.Join(
		runner.Watch(c.turns.Runner, migrations.Informer(), c.wakeTurns),
		runner.Watch(c.versions.Runner, migrations.Informer(), wakeIf(wantsVersion)),
		runner.Watch(c.objects.Runner, migrations.Informer(), wakeIf(wantsObjects)))
}

// wakeTurns wakes the migration itself and, when it has ended, those that wait for it.
func (c *Controller) wakeTurns(change runner.Change[migration], wake runner.Wake[string]) {
	wake.Add(change.Now().Name)
	if change.New != nil && (!finished(change.New) || running(change.New)) {
		return
	}
	peers, err := cache.Lookup[migration](c.migrations, byResource, change.Now().Spec.Resource.String())
	if err != nil {
		return // the index has been ensured
	}
	for _, peer := range peers {
		wake.Add(peer.Name)
	}
}

func wakeIf(wants func(*migration) bool) func(runner.Change[migration], runner.Wake[string]) {
	return func(change runner.Change[migration], wake runner.Wake[string]) {
		if change.New == nil || wants(change.New) {
			wake.Add(change.Now().Name)
		}
	}
}

// note keeps how far a migration has come.
func (c *Controller) note(key string, noted any) {
	if at, is := noted.(*place); is {
		c.places.move(key, at)
	}
}

// places are the migrations under way, by name.
type places struct {
	// of has each a *place, and missed since when discovery does not have its resource.
	of, missed sync.Map
}

// seen notes whether discovery has the resource of a migration, and returns since when it
// has not.
func (p *places) seen(name string, is bool, now time.Time) time.Time {
	if is {
		p.missed.Delete(name)
		return time.Time{}
	}
	since, _ := p.missed.LoadOrStore(name, now)
	return since.(time.Time)
}

func (p *places) get(m *migration) *place {
	found, _ := p.of.Load(m.Name)
	if at, is := found.(*place); is && at.uid == m.UID {
		return at
	}
	return nil
}

// move replaces a place; with nil it is forgotten.
func (p *places) move(name string, to *place) {
	if to == nil {
		p.of.Delete(name)
		p.missed.Delete(name)
		return
	}
	p.of.Store(name, to)
}
