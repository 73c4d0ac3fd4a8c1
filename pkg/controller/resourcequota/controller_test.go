package resourcequota

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/metadata"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/monitor"
	"github.com/kube-kcm/kube-controller-manager/pkg/quota"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// cluster is a fake API server that also serves widgets, which cannot be listed
// while it says so.
type cluster struct {
	t      *testing.T
	client *fake.Clientset
	events *record.FakeRecorder
	c      *Controller
}

func serving(group, name, kind string) (*metav1.APIGroup, *metav1.APIResourceList) {
	version := strings.TrimPrefix(group+"/v1", "/")
	g := metav1.GroupVersionForDiscovery{GroupVersion: version, Version: "v1"}
	return &metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{g}, PreferredVersion: g},
		&metav1.APIResourceList{GroupVersion: version, APIResources: []metav1.APIResource{
			{Name: name, Kind: kind, Namespaced: true, Verbs: []string{"create", "delete", "list", "watch"}}}}
}

// start runs the controller on a cluster with these objects.
func start(t *testing.T, broken error, objects ...runtime.Object) *cluster {
	t.Helper()
	cl := &cluster{t: t, client: fake.NewClientset(objects...), events: record.NewFakeRecorder(20)}
	shared := informers.NewSharedInformerFactory(cl.client, 0)
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	meta := metadatafake.NewSimpleMetadataClient(scheme)
	if broken != nil {
		meta.PrependReactor("list", "widgets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, broken })
		meta.PrependWatchReactor("widgets", clienttesting.DefaultWatchReactor(nil, broken))
	}
	set := monitor.New(monitor.Options{
		Discover: func() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
			core, pods := serving("", "pods", "Pod")
			own, widgets := serving("example.com", "widgets", "Widget")
			return []*metav1.APIGroup{core, own}, []*metav1.APIResourceList{pods, widgets}, nil
		},
		Metadata: metadata.Interface(meta),
		Whole: func(r monitor.Resource) (cache.SharedIndexInformer, bool) {
			return shared.Core().V1().Pods().Informer(), r.GroupResource() == quota.Pods
		},
	})
	var err error
	cl.c, err = New(Informers{Quotas: shared.Core().V1().ResourceQuotas(), Pods: shared.Core().V1().Pods()}, set, fixture.Hand(cl.client, cl.events),
		Options{Workers: 2, SyncPeriod: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	shared.Start(ctx.Done())
	ended := make(chan struct{}, 2)
	go func() { set.Run(ctx); ended <- struct{}{} }()
	go func() { cl.c.Run(ctx); ended <- struct{}{} }()
	t.Cleanup(func() {
		cancel()
		<-ended
		<-ended
		shared.Shutdown()
	})
	return cl
}

// uses waits until the quota's usage is this one.
func (cl *cluster) uses(what, want string) {
	cl.t.Helper()
	var last corev1.ResourceQuotaStatus
	err := wait.PollUntilContextTimeout(cl.t.Context(), 5*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		q, err := cl.client.CoreV1().ResourceQuotas("ns").Get(ctx, "q", metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		last = q.Status
		return quota.Same(last.Used, list(want)) && quota.Same(last.Hard, q.Spec.Hard), nil
	})
	if err != nil {
		cl.t.Fatalf("%s: the status is %v, want used %s", what, last, want)
	}
}

func standing(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: list("cpu=100m")}}}}}
}

func TestUsageFollowsPods(t *testing.T) {
	cl := start(t, nil, limits("pods=5 requests.cpu=1 count/widgets.example.com=3", "", ""), standing("a"), standing("b"))
	pods := cl.client.CoreV1().Pods("ns")
	cl.uses("at first", "pods=2 requests.cpu=200m count/widgets.example.com=0")
	if _, err := pods.Create(t.Context(), standing("c"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cl.uses("one more", "pods=3 requests.cpu=300m count/widgets.example.com=0")
	over := standing("a")
	over.Status.Phase = corev1.PodSucceeded
	if _, err := pods.UpdateStatus(t.Context(), over, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	cl.uses("one has ended", "pods=2 requests.cpu=200m count/widgets.example.com=0")
	for _, name := range []string{"a", "b", "c"} {
		if err := pods.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	cl.uses("all are gone", "pods=0 requests.cpu=0 count/widgets.example.com=0")
}

func TestAKindThatCannotBeReadFreezesItsNumbersAlone(t *testing.T) {
	cl := start(t, errors.New("webhook"), limits("pods=5 count/widgets.example.com=3", "pods=5", "pods=4 count/widgets.example.com=2"), standing("a"))
	cl.uses("pods are counted", "pods=1 count/widgets.example.com=2")
	select {
	case event := <-cl.events.Events:
		if want := "Warning UsageFrozen Usage of count/widgets.example.com is not updated because widgets.example.com cannot be read: "; !strings.HasPrefix(event, want) {
			t.Errorf("got %q, want %q", event, want)
		}
	case <-time.After(30 * time.Second):
		t.Error("no event")
	}
}

func TestErrorsOfWrites(t *testing.T) {
	resource := corev1.Resource("resourcequotas")
	for name, tc := range map[string]struct {
		err  error
		fail bool
		wait time.Duration
	}{
		"a conflict is a charge meanwhile, and looked at again": {apierrors.NewConflict(resource, "q", errors.New("changed")), false, soon},
		"a quota that is gone needs no status":                  {apierrors.NewNotFound(resource, "q"), false, 0},
		"anything else is retried":                              {apierrors.NewInternalError(errors.New("x")), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			rig := fixture.New(fake.NewClientset(), noon)
			rig.Fail("update", "resourcequotas", tc.err)
			core := rig.In.Core().V1()
			c, err := New(Informers{Quotas: core.ResourceQuotas(), Pods: core.Pods()}, monitor.New(monitor.Options{}), rig.Hand(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			c.LookLive(fixture.Live(rig.Client))
			q := limits("pods=1", "", "")
			rig.Cache(t, q)
			c.notes.follow(key("q"), q, noon)
			for _, queue := range []*reconcile.Controller[types.NamespacedName]{c.primary, c.priority} {
				result := queue.Reconcile(t.Context(), key("q"))
				if (result.Err() != nil) != tc.fail || result.After() != tc.wait {
					t.Errorf("got %v and %v", result.After(), result.Err())
				}
				tc.wait *= 2
			}
			if got := rig.Requests(); got != "2 update resourcequotas/status" {
				t.Errorf("asked for %s", got)
			}
		})
	}
}

func TestClassesThatOfferAResource(t *testing.T) {
	rig := fixture.New(fake.NewClientset(), noon)
	core := rig.In.Core().V1()
	c, err := New(Informers{Quotas: core.ResourceQuotas(), Pods: core.Pods(), DeviceClasses: rig.In.Resource().V1().DeviceClasses()},
		monitor.New(monitor.Options{}), rig.Hand(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	class := func(name string, offers *string) *resourceapi.DeviceClass {
		return &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourceapi.DeviceClassSpec{ExtendedResourceName: offers}}
	}
	rig.Cache(t, class("plain", nil), class("gpu", new("example.com/gpu")))
	for name, want := range map[string]string{"gpu": "example.com/gpu", "plain": "", "none": ""} {
		if got := c.extendedResource(name); got != want {
			t.Errorf("class %s offers %q", name, got)
		}
	}
	if !c.isOffered("example.com/gpu") || c.isOffered("example.com/disk") {
		t.Error("the classes offer gpu alone")
	}
}

// woken are the changes that a rule has queued.
type woken []change

func (w *woken) Add(c change)                       { *w = append(*w, c) }
func (w *woken) AddAfter(c change, _ time.Duration) { w.Add(c) }

func TestWhomAClassWakes(t *testing.T) {
	plain, gpu := &resourceapi.DeviceClass{}, &resourceapi.DeviceClass{Spec: resourceapi.DeviceClassSpec{ExtendedResourceName: new("example.com/gpu")}}
	for name, tc := range map[string]struct {
		change runner.Change[resourceapi.DeviceClass]
		want   int
	}{
		"it begins to offer a resource": {runner.Change[resourceapi.DeviceClass]{Old: plain, New: gpu}, 2},
		"it is new":                     {runner.Change[resourceapi.DeviceClass]{New: gpu}, 2},
		"it offers what it did":         {runner.Change[resourceapi.DeviceClass]{Old: gpu, New: gpu}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			rig := fixture.New(fake.NewClientset(), noon)
			core := rig.In.Core().V1()
			c, err := New(Informers{Quotas: core.ResourceQuotas(), Pods: core.Pods()}, monitor.New(monitor.Options{}), rig.Hand(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			// No class offered the resource that the first one limits: no claim counted.
			c.ledger.register(types.NamespacedName{Namespace: "ns", Name: "extended"}, reader{counts: map[schema.GroupResource]bool{quota.Pods: true}})
			c.ledger.register(types.NamespacedName{Namespace: "ns", Name: "devices"}, reader{counts: map[schema.GroupResource]bool{quota.DeviceClaims: true}})
			var w woken
			c.classChanged(tc.change, &w)
			for _, ch := range w {
				c.wake(t.Context(), ch)
			}
			if got := c.primary.Len(); got != tc.want {
				t.Errorf("%d quotas are woken, want %d", got, tc.want)
			}
		})
	}
}

func TestTheQueueOfAQuotaIsHeldBackAfterAWriteThatFailed(t *testing.T) {
	rig := fixture.New(fake.NewClientset(), noon)
	core := rig.In.Core().V1()
	c, err := New(Informers{Quotas: core.ResourceQuotas(), Pods: core.Pods()}, monitor.New(monitor.Options{}), rig.Hand(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		o    outcome
		want time.Duration
	}{
		"failed":      {outcome{failed: true, began: ago(time.Second)}, longestPace},
		"not written": {outcome{began: ago(time.Second)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.take(key(name), tc.o)
			if wait := c.pacer.Wait(key(name)); wait != tc.want {
				t.Errorf("waits %v", wait)
			}
		})
	}
}

// A quota whose usage changes all the time is reconciled whenever it is due, for a minute.
func TestWhatShareOfTheTimeGoesToABusyQuota(t *testing.T) {
	for name, tc := range map[string]struct {
		took   time.Duration
		writes int
	}{
		"a fifth":                     {5 * time.Millisecond, 2400},
		"a fifth, at the longest":     {longestPace / writeShare, 320},
		"more when a write is slower": {100 * time.Millisecond, 240},
	} {
		t.Run(name, func(t *testing.T) {
			rig := fixture.New(fake.NewClientset(), noon)
			rig.Client.PrependReactor("update", "resourcequotas", func(clienttesting.Action) (bool, runtime.Object, error) {
				rig.Clock.Step(tc.took)
				return true, limits("pods=1", "", ""), nil
			})
			core := rig.In.Core().V1()
			c, err := New(Informers{Quotas: core.ResourceQuotas(), Pods: core.Pods()}, monitor.New(monitor.Options{}), rig.Hand(), Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i := 1; rig.Clock.Since(noon) < time.Minute; i++ {
				q := limits("pods=1", "", "")
				q.ResourceVersion = strconv.Itoa(i)
				rig.Cache(t, q)
				c.notes.follow(key("q"), q, rig.Clock.Now())
				if err := c.primary.Reconcile(t.Context(), key("q")).Err(); err != nil {
					t.Fatal(err)
				}
				if writes := len(rig.Client.Actions()); writes != i {
					t.Fatalf("%d writes in %d reconciles", writes, i)
				}
				rig.Clock.Step(c.pacer.Wait(key("q")))
			}
			if writes := len(rig.Client.Actions()); writes != tc.writes {
				t.Errorf("%d writes, which took %v of a minute", writes, time.Duration(writes)*tc.took)
			}
		})
	}
}

func TestTheSameConflictIsLookedAtEverLater(t *testing.T) {
	n := newNotes(patience{})
	conflicted := func(number int) time.Duration {
		n.follow(key("q"), version(number, "pods=0"), noon)
		p := plan(observed{known: n.known(key("q"), nil, nil, noon), usage: usage{used: list("pods=1")}}, noon)
		status := p.Status(nil).(act.Status)
		n.take(key("q"), p.Note(act.Results{{Step: status, Became: act.Overtaken}}).(outcome), noon)
		return status.OnConflict
	}
	var waits []time.Duration
	for _, number := range []int{1, 1, 1, 2, 2} {
		waits = append(waits, conflicted(number))
	}
	if want := []time.Duration{soon, 2 * soon, 4 * soon, soon, 2 * soon}; !slices.Equal(waits, want) {
		t.Errorf("got %v, want %v", waits, want)
	}
	for range 50 {
		if wait := conflicted(3); wait < soon || wait > 32*soon {
			t.Fatalf("it waits %v", wait)
		}
	}
}
