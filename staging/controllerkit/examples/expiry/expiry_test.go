package main

import (
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func configMap(expiry string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "greeting", UID: "1", ResourceVersion: "1", Annotations: map[string]string{expires: expiry},
	}}
}

func TestPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		expiry, why string
		deletes     bool
		again       time.Duration
		terminal    bool
	}{
		"without a time it stays":   {"", "it never expires", false, 0, false},
		"it stays until its time":   {"2026-01-01T12:00:05Z", "it expires in 5s", false, 5 * time.Second, false},
		"it goes at its time":       {"2026-01-01T12:00:00Z", "it has expired", true, 0, false},
		"a word is no time":         {"soon", "its time cannot be read", false, 0, true},
		"a time long ago is a time": {"2001-01-01T00:00:00+02:00", "it has expired", true, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(configMap(tc.expiry), noon)
			if p.Why != tc.why || (len(p.Stages) == 1) != tc.deletes || p.RequeueAfter != tc.again || (p.Terminal != nil) != tc.terminal {
				t.Errorf("got %+v", p)
			}
		})
	}
}

func TestItDeletesWhatHasExpired(t *testing.T) {
	m := configMap("2026-01-01T12:00:00Z")
	server := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(m).Build()
	configMaps := informers.NewSharedInformerFactory(kubefake.NewClientset(), 0).Core().V1().ConfigMaps().Informer()
	c, err := New(configMaps, reconcile.Hand{Client: server, Events: record.NewFakeRecorder(1), Clock: clocktesting.NewFakeClock(noon)})
	if err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(m)
	live := &corev1.ConfigMap{}
	if err := server.Get(t.Context(), key, live); err != nil {
		t.Fatal(err)
	}
	if err := configMaps.GetStore().Add(live); err != nil {
		t.Fatal(err)
	}
	if err := c.Reconcile(t.Context(), key).Err(); err != nil {
		t.Fatal(err)
	}
	if err := server.Get(t.Context(), key, live); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestTheReadmeShowsThisController holds that the code of the README is the code above.
func TestTheReadmeShowsThisController(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("expiry.go")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(readme), "```go\n")
	shown, _, _ = strings.Cut(shown, "```")
	if _, body, found := strings.Cut(string(code), ")\n\n"); !found || shown != body {
		t.Errorf("the README shows\n%s", shown)
	}
}
