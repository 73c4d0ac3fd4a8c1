package act

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
)

var (
	noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	web  = types.NamespacedName{Namespace: "ns", Name: "web"}
	pods = schema.GroupResource{Resource: "pods"}
)

// rig is an actor on a fake API server whose answers the test sets.
type rig struct {
	*Actor[types.NamespacedName]
	t      *testing.T
	client client.WithWatch
	clock  *clocktesting.FakeClock
	writes *consistency.Tracker[types.NamespacedName]
	cached cache.Store // of pods
	// answers are what requests get in place of what they ask for, by verb or by verb and name.
	answers map[string]error
	after   func(verb string) // a request was carried out

	mu       sync.Mutex
	requests []string
	told     []string
}

// newRig returns a rig; change adapts the options before the actor is made.
func newRig(t *testing.T, change func(*Options[types.NamespacedName]), objects ...client.Object) *rig {
	t.Helper()
	r := &rig{t: t, clock: clocktesting.NewFakeClock(noon), answers: map[string]error{}, after: func(string) {}}
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	r.cached = store
	r.writes = consistency.NewTracker[types.NamespacedName](map[schema.GroupResource]consistency.Store{pods: versioned{store}})
	r.writes.SetClock(r.clock)
	for _, o := range objects {
		if _, is := o.(*corev1.Pod); is {
			if err := store.Add(o); err != nil {
				t.Fatal(err)
			}
		}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	r.client = fake.NewClientBuilder().WithScheme(scheme.Scheme).WithRESTMapper(mapper).WithObjects(objects...).
		WithStatusSubresource(&corev1.Pod{}).WithInterceptorFuncs(r.funcs()).Build()
	r.writes.LookLive(r.list)
	o := Options[types.NamespacedName]{Name: "test", Client: r.client, Events: r, Writes: r.writes, Clock: r.clock}
	if change != nil {
		change(&o)
	}
	r.Actor = New(o)
	return r
}

// versioned is a store that has seen no write of the test yet.
type versioned struct{ cache.Store }

func (versioned) LastStoreSyncResourceVersion() string { return "0" }

// ask notes a request, and returns what it is answered in place of being carried out.
func (r *rig) ask(verb string, o client.Object) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, strings.TrimSpace(verb+" "+o.GetName()))
	if err := r.answers[verb+" "+o.GetName()]; err != nil {
		return err
	}
	return r.answers[verb]
}

func (r *rig) funcs() interceptor.Funcs {
	done := func(verb string, err error) error {
		r.after(verb)
		return err
	}
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := r.ask("get", &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: key.Name}}); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if err := r.ask("create", o); err != nil {
				return err
			}
			return done("create", c.Create(ctx, o, opts...))
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			if err := r.ask("update", o); err != nil {
				return err
			}
			return done("update", c.Update(ctx, o, opts...))
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if err := r.ask("delete", o); err != nil {
				return err
			}
			return done("delete", c.Delete(ctx, o, opts...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := r.ask("patch", o); err != nil {
				return err
			}
			return done("patch", c.Patch(ctx, o, p, opts...))
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, name string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if err := r.ask("update/"+name, o); err != nil {
				return err
			}
			return done("update/"+name, c.SubResource(name).Update(ctx, o, opts...))
		},
	}
}

// list reads live for the tracker.
func (r *rig) list(ctx context.Context, _ schema.GroupResource, namespace string, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	all := &corev1.PodList{}
	if err := r.client.List(ctx, all, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	list := &metav1.PartialObjectMetadataList{}
	for i := range all.Items {
		list.Items = append(list.Items, *meta.AsPartialObjectMetadata(&all.Items[i]))
	}
	return list, nil
}

// Event notes an event.
func (r *rig) Event(_ runtime.Object, kind, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, fmt.Sprintf("%s %s %s", kind, reason, message))
}

// did returns the requests since it was asked last.
func (r *rig) did() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := strings.Join(r.requests, ", ")
	r.requests = nil
	return all
}

// stored is the pod of this name on the server, nil if there is none.
func (r *rig) stored(name string) *corev1.Pod {
	r.t.Helper()
	pod := &corev1.Pod{}
	if err := r.client.Get(context.Background(), types.NamespacedName{Namespace: "ns", Name: name}, pod); err != nil {
		return nil
	}
	return pod
}

// outcomes lists what became of the steps of the plans that were carried out.
func outcomes(results Results) string {
	var all []string
	for _, result := range results {
		all = append(all, string(result.Became))
	}
	return strings.Join(all, ", ")
}

// observing returns a plan with stages, whose results it hands out.
func observing(into *Results, stages ...Stage) Plan {
	return Plan{Why: "a test", Stages: stages, Status: func(r Results) Step {
		*into = r
		return nil
	}}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "web"}}}
}

func owner() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "owner"}}
}

var selector = labels.SelectorFromSet(labels.Set{"app": "web"})

func create(name string) Create {
	p := pod(name)
	p.UID = ""
	return Create{Object: p, Owner: owner(), Siblings: selector, Events: Events{On: owner(),
		DoneReason: "Made", Done: "Made %v", FailedReason: "NotMade", Failed: "Not made: %v"}}
}

func paced(c *clocktesting.FakeClock) *pace.Pacer[types.NamespacedName] {
	return pace.New[types.NamespacedName](c, 20, 2*time.Second)
}
