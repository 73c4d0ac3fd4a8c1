package storageversionmigrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	storagemigrationinformers "k8s.io/client-go/informers/storagemigration/v1beta1"
	"k8s.io/client-go/kubernetes"
	storagemigrationlisters "k8s.io/client-go/listers/storagemigration/v1beta1"
	"k8s.io/client-go/metadata"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name         = "storage-version-migrator-controller"
	turnQueue    = "migration-runner-controller"
	versionQueue = "resource-version-controller"

	// nextPage lets other migrations go first.
	nextPage = time.Millisecond
)

var resource = storagemigrationv1beta1.Resource("storageversionmigrations")

// byResource finds migrations by the resource that they migrate.
var byResource = cache.NewIndex("migratedResource", func(object any) ([]string, error) {
	if m, ok := object.(*migration); ok {
		return []string{m.Spec.Resource.String()}, nil
	}
	return nil, nil
})

// Clients are what the controller asks with.
type Clients struct {
	// Kubernetes is for migrations and discovery.
	Kubernetes kubernetes.Interface
	// Metadata is for the objects that are migrated.
	Metadata metadata.Interface
	// Definitions is for the status of custom resource definitions.
	Definitions apiextensionsclient.CustomResourceDefinitionInterface
}

// Options are the settings of the controller.
type Options struct {
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// Controller carries out migrations. Each of its loops does one part: whose turn
// it is, from which version on, and the objects. The keys are names of migrations.
type Controller struct {
	*runner.Group
	migrations  storagemigrationlisters.StorageVersionMigrationLister
	indexer     toolscache.Indexer
	client      kubernetes.Interface
	metadata    metadata.Interface
	definitions apiextensionsclient.CustomResourceDefinitionInterface
	clock       clock.PassiveClock
	places      places

	turns, versions, objects *consistency.Tracker[string]
}

// New returns the controller, which is not running yet.
func New(migrations storagemigrationinformers.StorageVersionMigrationInformer, clients Clients, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if err := cache.Ensure(migrations.Informer(), byResource); err != nil {
		return nil, err
	}
	tracker := func() *consistency.Tracker[string] {
		return consistency.NewTracker[string](map[schema.GroupResource]consistency.Store{resource: migrations.Informer().GetStore()})
	}
	c := &Controller{
		migrations: migrations.Lister(), indexer: migrations.Informer().GetIndexer(),
		client: clients.Kubernetes, metadata: clients.Metadata, definitions: clients.Definitions,
		clock: o.Clock, places: places{of: map[string]*place{}},
		turns: tracker(), versions: tracker(), objects: tracker(),
	}
	loop := func(name string, writes *consistency.Tracker[string], sync runner.Sync[string]) *runner.Runner[string] {
		return runner.New(runner.Options[string]{Name: name, Clock: o.Clock, Writes: writes}, sync)
	}
	turns := loop(turnQueue, c.turns, c.syncTurn)
	versions := loop(versionQueue, c.versions, c.syncVersion)
	objects := loop(name, c.objects, c.syncObjects)
	c.Group = runner.NewGroup(name, turns, versions, objects)
	return c, errors.Join(
		runner.Watch(turns, migrations.Informer(), c.wakeTurns),
		runner.Watch(versions, migrations.Informer(), wakeIf(wantsVersion)),
		runner.Watch(objects, migrations.Informer(), wakeIf(wantsObjects)))
}

// wakeTurns wakes the migration itself and, when it has ended, those that wait for it.
func (c *Controller) wakeTurns(change runner.Change[migration], wake runner.Wake[string]) {
	wake.Add(change.Now().Name)
	if change.New != nil && (!finished(change.New) || running(change.New)) {
		return
	}
	peers, err := cache.Lookup[migration](c.indexer, byResource, change.Now().Spec.Resource.String())
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

// get returns a migration, nil if it is gone.
func (c *Controller) get(name string, writes *consistency.Tracker[string]) (*migration, error) {
	m, err := c.migrations.Get(name)
	if apierrors.IsNotFound(err) {
		writes.Forget(name)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get migration %s: %w", name, err)
	}
	return m, nil
}

// syncTurn starts a migration when it is its turn, and closes it when it is done.
func (c *Controller) syncTurn(ctx context.Context, name string) runner.Result {
	m, err := c.get(name, c.turns)
	if m == nil || err != nil {
		return runner.Done(err)
	}
	peers, err := cache.Lookup[migration](c.indexer, byResource, m.Spec.Resource.String())
	if err != nil {
		return runner.Done(err)
	}
	do, now := turn(m, peers), c.clock.Now()
	switch do.Step {
	case start:
		if err = c.writeReport(ctx, m, func(d *definition) *report { return beginning(d, m, now) }); err == nil {
			err = c.writeStatus(ctx, started(m, now), c.turns)
		}
	case finish:
		if err = c.writeReport(ctx, m, func(d *definition) *report { return ending(d, m, now) }); err == nil {
			err = c.writeStatus(ctx, completed(m, now), c.turns)
		}
	case nothing:
	}
	return runner.Done(err).Because(do)
}

// syncVersion writes down from which version on objects need no migration.
func (c *Controller) syncVersion(ctx context.Context, name string) runner.Result {
	m, err := c.get(name, c.versions)
	if m == nil || err != nil || !wantsVersion(m) {
		return runner.Done(err)
	}
	found, err := c.discover(m)
	if err != nil {
		return runner.Done(err)
	}
	if found == nil {
		return c.notFound(ctx, m, c.versions)
	}
	if why := unable(*found); why != "" {
		return runner.Done(c.writeStatus(ctx, failure(m, c.clock.Now(), why), c.versions)).Because(plan{Why: why})
	}
	version, err := c.presentVersion(ctx, *found)
	if err != nil {
		return runner.Done(err)
	}
	m = m.DeepCopy()
	m.Status.ResourceVersion = version
	return runner.Done(c.writeStatus(ctx, m, c.versions)).Because(plan{Why: "objects older than " + version + " are migrated"})
}

// notFound fails a migration whose resource does not come.
func (c *Controller) notFound(ctx context.Context, m *migration, writes *consistency.Tracker[string]) runner.Result {
	giveUp, again := missing(m, c.clock.Now())
	if !giveUp {
		return runner.Done().LookAgain(again).Because(plan{Why: messageUnknown})
	}
	return runner.Done(c.writeStatus(ctx, failure(m, c.clock.Now(), messageUnknown), writes)).Because(plan{Why: messageUnknown})
}

// syncObjects migrates a page of objects.
func (c *Controller) syncObjects(ctx context.Context, name string) runner.Result {
	m, err := c.get(name, c.objects)
	if m == nil || err != nil || !wantsObjects(m) {
		c.places.forget(name)
		return runner.Done(err)
	}
	at := c.places.get(m)
	if at == nil {
		found, err := c.discover(m)
		if err != nil {
			return runner.Done(err)
		}
		if found == nil {
			return c.notFound(ctx, m, c.objects)
		}
		at = c.places.set(m, *found)
	}
	done, err := c.migratePage(ctx, m, at)
	because := plan{Why: fmt.Sprintf("%d objects were migrated", at.migrated)}
	switch {
	case errors.Is(err, errRefused):
		c.places.forget(name)
		return runner.Done(c.writeStatus(ctx, failure(m, c.clock.Now(), refusal(err)), c.objects)).Because(because)
	case apierrors.IsNotFound(err):
		c.places.forget(name) // the resource may be gone, or served in another version
		return runner.Done(err).Because(because)
	case err != nil || !done:
		return runner.Done(err).LookAgain(nextPage).Because(because)
	}
	c.places.forget(name)
	return runner.Done(c.writeStatus(ctx, success(m, c.clock.Now()), c.objects)).Because(because)
}
