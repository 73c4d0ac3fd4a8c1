package namespace

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func ending(change func(*corev1.Namespace)) *corev1.Namespace {
	ns := &corev1.Namespace{}
	ns.Name, ns.UID = "team", "n-1"
	at := metav1.NewTime(noon.Add(-10 * time.Second))
	ns.DeletionTimestamp = &at
	ns.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
	ns.Status.Phase = corev1.NamespaceTerminating
	if change != nil {
		change(ns)
	}
	return ns
}

// place is a controller with a server of two halves: one typed, one of metadata.
type place struct {
	*Controller
	client     *fake.Clientset
	meta       *metadatafake.FakeMetadataClient
	clock      *testclock.FakeClock
	lists      []*metav1.APIResourceList
	incomplete error
	discovered int
	limits     *act.Limits
	// cached are the namespaces of the informer.
	cached cache.Store
}

func newPlace(t *testing.T, live *corev1.Namespace, content ...runtime.Object) *place {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	p := &place{
		client: fake.NewClientset(),
		meta:   metadatafake.NewSimpleMetadataClient(scheme, content...),
		clock:  testclock.NewFakeClock(noon),
		limits: &act.Limits{},
		lists: []*metav1.APIResourceList{
			{GroupVersion: "v1", APIResources: []metav1.APIResource{
				{Name: "pods", Namespaced: true, Verbs: metav1.Verbs{"delete", "deletecollection", "list"}},
				{Name: "configmaps", Namespaced: true, Verbs: metav1.Verbs{"delete", "deletecollection", "list"}},
			}},
			{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
				{Name: "widgets", Namespaced: true, Verbs: metav1.Verbs{"delete", "list"}},
			}},
		},
	}
	// The fake forgets collections, so deleting one is deleting what is in it and has no finalizer.
	p.meta.PrependReactor("delete-collection", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		gvr, ns := action.GetResource(), action.GetNamespace()
		tracker := p.meta.Tracker()
		list, err := tracker.List(gvr, schema.GroupVersionKind{Group: "fake-metadata-client-group", Version: "v1"}, ns)
		if err != nil {
			return true, nil, err
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return true, nil, err
		}
		for _, item := range items {
			o := item.(*metav1.PartialObjectMetadata)
			if len(o.Finalizers) == 0 {
				_ = tracker.Delete(gvr, ns, o.Name)
				continue
			}
			at := metav1.NewTime(noon)
			o = o.DeepCopy()
			o.DeletionTimestamp = &at
			_ = tracker.Update(gvr, o, ns)
		}
		return true, nil, nil
	})
	shared := informers.NewSharedInformerFactory(p.client, 0)
	hand := reconcile.Hand{Client: fixture.WithMetadata(fixture.Client(p.client), p.meta), Clock: p.clock, Limits: p.limits}
	c, err := New(shared.Core().V1().Namespaces(), hand, Options{Resync: 5 * time.Minute,
		Discover: func() ([]*metav1.APIResourceList, error) { p.discovered++; return p.lists, p.incomplete }})
	if err != nil {
		t.Fatal(err)
	}
	c.readers = 1 // so that requests have an order
	p.Controller = c
	p.cached = shared.Core().V1().Namespaces().Informer().GetStore()
	_ = p.cached.Add(ending(nil))
	if live != nil {
		_ = p.client.Tracker().Add(live)
	}
	return p
}

var kinds = map[string]schema.GroupVersionKind{
	"pods":       {Version: "v1", Kind: "Pod"},
	"configmaps": {Version: "v1", Kind: "ConfigMap"},
	"widgets":    {Group: "example.com", Version: "v1", Kind: "Widget"},
}

// add makes another namespace that is being deleted, live and cached.
func (p *place) add(name string) {
	ns := ending(func(ns *corev1.Namespace) { ns.Name, ns.UID = name, types.UID(name) })
	_ = p.client.Tracker().Add(ns)
	_ = p.cached.Add(ns)
}

func object(resource, name string, finalizers ...string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(kinds[resource])
	o.Namespace, o.Name, o.Finalizers = "team", name, finalizers
	return o
}

// sync reconciles a key, also one that caches are behind for.
func (p *place) sync(ctx context.Context, key string) runner.Result { return p.Reconcile(ctx, key) }

// look has all namespaces looked at.
func (p *place) look(ctx context.Context, first bool) runner.Result {
	if first {
		return p.sync(ctx, surveyKey)
	}
	return p.sync(ctx, probeKey)
}

// pass has the namespace looked at if need be, and works on it once.
func (p *place) pass(ctx context.Context) runner.Result {
	result := p.sync(ctx, "team")
	if _, known := p.waiting.find("team", "n-1", nil); known {
		return result
	}
	if result := p.sync(ctx, surveyKey); result.Err() != nil {
		return result
	}
	return p.sync(ctx, "team")
}

// requests are what both halves of the server were asked, in order within each.
func (p *place) requests() []string {
	var all []string
	for _, action := range append(p.client.Actions(), p.meta.Actions()...) {
		what := action.GetVerb() + " " + action.GetResource().Resource
		if sub := action.GetSubresource(); sub != "" {
			what += "/" + sub
		}
		all = append(all, what)
	}
	p.client.ClearActions()
	p.meta.ClearActions()
	return all
}

func (p *place) conditions(t *testing.T) string {
	t.Helper()
	live, err := p.client.CoreV1().Namespaces().Get(t.Context(), "team", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var bad []string
	for _, c := range live.Status.Conditions {
		if c.Status == corev1.ConditionTrue {
			bad = append(bad, fmt.Sprintf("%s: %s", c.Reason, c.Message))
		}
	}
	return strings.Join(bad, "\n")
}
