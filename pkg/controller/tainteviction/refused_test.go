package tainteviction

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// look makes the live reads find these pods.
func (r *rig) look(live ...metav1.Object) {
	r.LookLive(fixture.LiveOf(func(schema.GroupResource, string) ([]metav1.Object, error) { return live, nil }))
}

func TestARefusedDeletionIsNoDeletion(t *testing.T) {
	other := pod()
	other.UID = "other"
	for name, tc := range map[string]struct {
		live  []metav1.Object
		tried bool // again
	}{
		"the pod is there":               {[]metav1.Object{pod()}, true},
		"the pod is gone":                {nil, false},
		"another pod has taken its name": {[]metav1.Object{other}, false},
	} {
		for verb, refusal := range map[string]error{
			"patch with 409":  apierrors.NewConflict(corev1.Resource("pods"), "p", errors.New("a webhook says no")),
			"patch with 404":  apierrors.NewNotFound(corev1.Resource("pods"), "p"),
			"delete with 409": apierrors.NewConflict(corev1.Resource("pods"), "p", errors.New("a webhook says no")),
			"delete with 404": apierrors.NewNotFound(corev1.Resource("pods"), "p"),
		} {
			t.Run(name+", "+verb, func(t *testing.T) {
				r := newRig(t, node(taint("a")), pod())
				r.look(tc.live...)
				left := 2
				r.client.PrependReactor(verb[:len(verb)-len(" with 409")], "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					left--
					return left >= 0, nil, refusal
				})
				tries := 1
				for r.podRunner.Reconcile(context.Background(), key).Err() != nil && tries < 10 {
					tries++
				}
				if want := map[bool]int{true: 3, false: 1}[tc.tried]; tries != want {
					t.Errorf("%d tries, want %d", tries, want)
				}
				if len(r.booked) != 0 {
					t.Error("the appointment is still there")
				}
				if behind := r.podRunner.Behind(key); tc.tried && (len(behind) != 1 || behind[0].Deletes != 1) {
					t.Errorf("the deletion was not booked: %v", behind)
				}
			})
		}
	}
}

func TestALookThatFailsIsTriedAgain(t *testing.T) {
	r := newRig(t, node(taint("a")), pod())
	r.LookLive(fixture.Unreachable)
	r.client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewConflict(corev1.Resource("pods"), "p", errors.New("no"))
	})
	if err := r.podRunner.Reconcile(context.Background(), key).Err(); !errors.Is(err, fixture.ErrAway) {
		t.Errorf("got %v", err)
	}
}

// The API server holds every deletion until all that are due are there.
func TestEvictionsThatAreDueTogetherGoTogether(t *testing.T) {
	const count = 60
	var deleting atomic.Int32
	all := make(chan struct{})
	release := sync.OnceFunc(func() { close(all) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if req.Method == http.MethodDelete {
			if deleting.Add(1) == count {
				release()
			}
			<-all
		}
		_ = json.NewEncoder(w).Encode(&corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}})
	}))
	t.Cleanup(server.Close)
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	writer, err := client.New(&rest.Config{Host: server.URL, QPS: -1}, client.Options{Scheme: scheme.Scheme, Mapper: mapper})
	if err != nil {
		t.Fatal(err)
	}

	objects := []runtime.Object{node(taint("a"))}
	for i := range count {
		p := pod(tolerateFor("a", 5))
		p.Name, p.UID = fmt.Sprintf("p%d", i), types.UID(fmt.Sprintf("uid-%d", i))
		objects = append(objects, p)
	}
	watched := fake.NewClientset(objects...)
	shared := informers.NewSharedInformerFactory(watched, 0)
	clock := testclock.NewFakeClock(noon)
	hand := reconcile.Hand{Client: writer, Events: &record.FakeRecorder{}, Clock: clock}
	c, err := New(shared.Core().V1().Nodes(), shared.Core().V1().Pods(), hand, Options{})
	if err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, watched, c.Run, shared)
	t.Cleanup(release)
	fixture.Eventually(t, "all pods wait", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.booked) == count
	})
	clock.Step(5 * time.Second)
	fixture.Eventually(t, "all are being deleted at once", func() bool {
		clock.Step(time.Second) // a timer that was set after the step waits for another five
		return deleting.Load() == count
	})
	fixture.Eventually(t, "all are deleted", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.booked) == 0
	})
}
