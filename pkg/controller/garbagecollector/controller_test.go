package garbagecollector

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/metrics/testutil"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/monitor"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// cluster is an API server that serves things of group g in one version.
type cluster struct {
	client   *fake.FakeMetadataClient
	monitors *monitor.Set
	*Controller

	mu      sync.Mutex
	version string
}

func thing(version, name string, refs ...metav1.OwnerReference) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "g/" + version, Kind: "Thing"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name, UID: types.UID(name), ResourceVersion: "1", OwnerReferences: refs},
	}
}

func (c *cluster) discover() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	preferred := metav1.GroupVersionForDiscovery{GroupVersion: "g/" + c.version, Version: c.version}
	return []*metav1.APIGroup{{Name: "g", Versions: []metav1.GroupVersionForDiscovery{preferred}, PreferredVersion: preferred}},
		[]*metav1.APIResourceList{{GroupVersion: preferred.GroupVersion, APIResources: []metav1.APIResource{
			{Name: "things", Kind: "Thing", Namespaced: true, Verbs: metav1.Verbs{"list", "watch", "delete"}}}}}, nil
}

func (c *cluster) serve(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version = version
}

func (c *cluster) asked(verb, name string) bool {
	for _, action := range c.client.Actions() {
		named, ok := action.(interface{ GetName() string })
		if ok && action.GetVerb() == verb && named.GetName() == name {
			return true
		}
	}
	return false
}

func newCluster(t *testing.T, objects ...runtime.Object) *cluster {
	t.Helper()
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := &cluster{client: fake.NewSimpleMetadataClient(scheme, objects...), version: "v1"}
	kinds := meta.NewDefaultRESTMapper(nil)
	for _, version := range []string{"v1", "v2"} {
		kinds.Add(schema.GroupVersionKind{Group: "g", Version: version, Kind: "Thing"}, meta.RESTScopeNamespace)
	}
	c.monitors = monitor.New(monitor.Options{Discover: c.discover, Metadata: c.client, Period: 50 * time.Millisecond,
		Whole: func(monitor.Resource) (cache.SharedIndexInformer, bool) { return nil, false }})
	c.Controller = New(c.monitors, kinds, reconcile.Hand{Client: clientOf{requests: things{c.client}, mapper: act.Resources(kinds)}, Events: record.NewFakeRecorder(100)}, Options{})
	return c
}

// things are written to a fake of client-go.
type things struct{ fake *fake.FakeMetadataClient }

func (t things) at(at location) metadata.ResourceInterface {
	return t.fake.Resource(at.resource).Namespace(at.namespace)
}

func (t things) get(ctx context.Context, at location) (*metav1.PartialObjectMetadata, error) {
	return t.at(at).Get(ctx, at.name, metav1.GetOptions{})
}

func (t things) delete(ctx context.Context, at location, o metav1.DeleteOptions) error {
	return t.at(at).Delete(ctx, at.name, o)
}

func (t things) patch(ctx context.Context, at location, form types.PatchType, body []byte) (*metav1.PartialObjectMetadata, error) {
	return t.at(at).Patch(ctx, at.name, form, body, metav1.PatchOptions{})
}

// run starts it until the test ends.
func (c *cluster) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { c.monitors.Run(ctx) })
	running.Go(func() { c.Controller.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func TestWhatAnotherVersionDoesNotListIsAskedFor(t *testing.T) {
	owner := thing("v2", "owner")
	of := metav1.OwnerReference{APIVersion: "g/v2", Kind: "Thing", Name: "owner", UID: "owner"}
	c := newCluster(t, thing("v1", "owner"), thing("v1", "child", of), thing("v2", "child", of))
	c.client.PrependReactor("get", "things", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.(clienttesting.GetAction).GetName() == "owner", owner, nil
	})
	c.run(t)
	fixture.Eventually(t, "both are seen", func() bool {
		objects, _ := c.graph.count()
		return objects == 2
	})
	c.client.ClearActions()
	c.serve("v2")
	fixture.Eventually(t, "the owner is asked for", func() bool { return c.asked("get", "owner") || c.asked("delete", "child") })
	fixture.Eventually(t, "the look is over", func() bool { return c.graph.looksAt("owner") > 0 || c.asked("delete", "child") })
	if c.asked("delete", "child") {
		t.Error("the child is deleted, and its owner is there")
	}
}

// looksAt is how often an owner that is only heard of was found to exist.
func (g *graph) looksAt(uid types.UID) uint8 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := g.nodes[uid]; n != nil {
		return n.looks
	}
	return 0
}

func TestHeldOwnersGoOnWhenAllIsRead(t *testing.T) {
	now := metav1.Now()
	owner := thing("v1", "owner")
	owner.DeletionTimestamp, owner.Finalizers = &now, []string{metav1.FinalizerOrphanDependents}
	c := newCluster(t, owner)
	var mu sync.Mutex
	unread := errors.New("a kind cannot be read")
	c.collector.unread = func() error {
		mu.Lock()
		defer mu.Unlock()
		return unread
	}
	c.run(t)
	fixture.Eventually(t, "the owner is held", func() bool { return c.page().Held == 1 })
	if c.asked("patch", "owner") {
		t.Error("its finalizer is taken off")
	}
	mu.Lock()
	unread = nil
	mu.Unlock()
	fixture.Eventually(t, "it goes on", func() bool { return c.page().Held == 0 && c.asked("patch", "owner") })
}

func TestAResourceThatCannotBeListedIsCountedOnce(t *testing.T) {
	counted := func() float64 {
		n, err := testutil.GetCounterMetricValue(syncErrors)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var tries atomic.Int32
	var well atomic.Bool
	c := newCluster(t, thing("v1", "owner"))
	c.client.PrependReactor("list", "things", func(clienttesting.Action) (bool, runtime.Object, error) {
		tries.Add(1)
		return !well.Load(), nil, errors.New("conversion webhook failed")
	})
	before := counted()
	c.run(t)
	fixture.Eventually(t, "it is counted, and tried again", func() bool { return counted() > before && tries.Load() > 1 })
	well.Store(true)
	fixture.Eventually(t, "it is listed", func() bool { objects, _ := c.graph.count(); return objects == 1 })
	c.servedChanged()
	if n := counted() - before; n != 1 {
		t.Errorf("counted %v times", n)
	}
}
