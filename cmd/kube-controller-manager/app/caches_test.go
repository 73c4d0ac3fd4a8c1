package app

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/monitor"
)

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
