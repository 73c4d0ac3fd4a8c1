package testrig

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// Rig is what a controller works with under test: an API server that fails as
// told, caches that are filled by hand, and a record of its events.
type Rig struct {
	Client *fake.Clientset
	In     informers.SharedInformerFactory
	Events *record.FakeRecorder
	Clock  *clocktesting.FakeClock
}

// New returns a rig with this API server, at that time.
func New(client *fake.Clientset, now time.Time) *Rig {
	return &Rig{client, informers.NewSharedInformerFactory(client, 0), record.NewFakeRecorder(10000), clocktesting.NewFakeClock(now)}
}

// Hand writes to the rig's API server and tells its recorder.
func (r *Rig) Hand() reconcile.Hand {
	hand := Hand(r.Client, r.Events)
	hand.Clock = r.Clock
	return hand
}

// Hand writes to a fake API server.
func Hand(client Invoker, events act.EventRecorder) reconcile.Hand {
	return reconcile.Hand{Client: Client(client), Events: events}
}

// Cache puts objects into the caches of their kinds.
func (r *Rig) Cache(t testing.TB, objects ...runtime.Object) {
	t.Helper()
	for _, object := range objects {
		kinds, _, err := scheme.Scheme.ObjectKinds(object)
		if err != nil {
			t.Fatal(err)
		}
		resource, _ := meta.UnsafeGuessKindToResource(kinds[0])
		informer, err := r.In.ForResource(resource)
		if err != nil {
			t.Fatal(err)
		}
		if err := informer.Informer().GetStore().Add(object); err != nil {
			t.Fatal(err)
		}
	}
}

// Fail makes requests of this kind fail.
func (r *Rig) Fail(verb, resource string, err error) {
	r.Client.PrependReactor(verb, resource, func(ktesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}

// Requests lists the requests that were made, several of a kind in a row as one.
func (r *Rig) Requests() string {
	var did []string
	last, times := "", 0
	for _, a := range r.Client.Actions() {
		one := strings.TrimSuffix(a.GetVerb()+" "+a.GetResource().Resource+"/"+a.GetSubresource(), "/")
		if one == last {
			times++
			did[len(did)-1] = fmt.Sprintf("%d %s", times, one)
			continue
		}
		did, last, times = append(did, one), one, 1
	}
	return strings.Join(did, ", ")
}

// Told lists the events since it was asked last.
func (r *Rig) Told() string {
	var told []string
	for len(r.Events.Events) > 0 {
		told = append(told, <-r.Events.Events)
	}
	return strings.Join(told, "; ")
}
