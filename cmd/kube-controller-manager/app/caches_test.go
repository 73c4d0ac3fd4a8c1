package app

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/informers/monitor"
)

// TestMonitorsHearWhatASharedCacheCannotRead has Secrets refused after they
// were listed, to all but a single controller.
func TestMonitorsHearWhatASharedCacheCannotRead(t *testing.T) {
	const one = "of=one"
	var refused atomic.Bool
	cluster := newEmptyCluster(t, func(req *http.Request) int {
		if refused.Load() && req.URL.Path == "/api/v1/secrets" && req.URL.Query().Get("labelSelector") != one {
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
	var single kubernetes.Interface
	cc.narrowed(func(client kubernetes.Interface, resync time.Duration) *cache.Factory {
		single = client
		return cache.NewFactory(client, resync)
	})
	if _, err := single.CoreV1().Secrets("").List(ctx, metav1.ListOptions{LabelSelector: one}); err != nil {
		t.Fatal(err)
	}
	if !is(true)() {
		t.Error("what a single controller has read counts as a read of the shared cache")
	}
	refused.Store(false)
	eventually(t, "it is reported as read again, at the same version", is(false))
}
