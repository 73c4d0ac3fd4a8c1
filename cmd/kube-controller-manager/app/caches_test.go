package app

import (
	"context"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/monitor"
)

// TestEverySharedCacheIsListed asks for all caches that there are.
func TestEverySharedCacheIsListed(t *testing.T) {
	caches := listed(informers.NewSharedInformerFactory(fake.NewClientset(), 0))
	factory := reflect.TypeFor[informers.SharedInformerFactory]()
	asked := 0
	for i := range factory.NumMethod() {
		method := factory.Method(i)
		if method.Type.NumIn() > 0 || method.Type.NumOut() != 1 || !strings.HasSuffix(method.Type.Out(0).String(), ".Interface") {
			continue
		}
		group := reflect.ValueOf(caches).MethodByName(method.Name).Call(nil)[0]
		for v := range group.NumMethod() {
			version := group.Method(v).Call(nil)[0]
			for k := range version.NumMethod() {
				informer := version.Method(k).Call(nil)[0].MethodByName("Informer").Call(nil)[0].Interface().(toolscache.SharedIndexInformer)
				if asked++; !caches.known[informer] {
					t.Errorf("a cache of %s %s is not listed", method.Name, version.Type())
				}
			}
		}
	}
	if asked < 50 || len(caches.all()) != asked {
		t.Errorf("%d caches were asked for and %d are listed", asked, len(caches.all()))
	}
	generic := listed(informers.NewSharedInformerFactory(fake.NewClientset(), 0))
	if _, err := generic.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}); err != nil || len(generic.all()) != 1 {
		t.Errorf("of a generic cache: %v, %d are listed", err, len(generic.all()))
	}
}

// TestMonitorsHearWhatASharedCacheCannotRead has Secrets refused after they
// were listed.
func TestMonitorsHearWhatASharedCacheCannotRead(t *testing.T) {
	var refused atomic.Bool
	cluster := newEmptyCluster(t, func(req *http.Request) int {
		if refused.Load() && req.URL.Path == "/api/v1/secrets" {
			return http.StatusForbidden
		}
		return 0
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	cc, err := newControllerContext(ctx, cluster.leader(t), t.Name(), nil)
	defer cc.close()
	if err != nil {
		t.Fatal(err)
	}
	secrets := schema.GroupResource{Resource: "secrets"}
	followed := cc.Monitors().Follow(monitor.Interest{
		Name: "test", Wants: func(r monitor.Resource) bool { return r.GroupResource() == secrets },
		Changed: func(monitor.Resource, metav1.Object, metav1.Object, bool) {},
	})
	cc.Informers.Core().V1().Secrets().Informer()
	cc.startCaches(ctx)
	is := func(failing bool) func() bool {
		return func() bool {
			state, known := followed.State(secrets)
			return known && state.Listed && (state.Err != nil) == failing
		}
	}
	eventually(t, "the first list", is(false))
	refused.Store(true)
	cluster.CloseClientConnections()
	eventually(t, "what cannot be read any more is reported", is(true))
	refused.Store(false)
	eventually(t, "it is reported as read again, at the same version", is(false))
}
