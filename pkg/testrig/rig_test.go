package testrig

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestARig(t *testing.T) {
	r := New(fake.NewClientset(), time.Unix(0, 0))
	cached := r.In.Core().V1().ConfigMaps()
	r.Cache(t, configMap("a"), configMap("b"))
	if got := cached.Informer().GetStore().ListKeys(); len(got) != 2 {
		t.Errorf("cached %v", got)
	}
	maps, broken := r.Client.CoreV1().ConfigMaps("ns"), errors.New("broken")
	r.Fail("create", "configmaps", broken)
	for range 2 {
		if _, err := maps.Create(t.Context(), configMap("c"), metav1.CreateOptions{}); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	}
	_, _ = r.Client.CoreV1().Pods("ns").UpdateStatus(t.Context(), &corev1.Pod{}, metav1.UpdateOptions{})
	_, _ = maps.Create(t.Context(), configMap("c"), metav1.CreateOptions{})
	if got, want := r.Requests(), "2 create configmaps, update pods/status, create configmaps"; got != want {
		t.Errorf("did %s, want %s", got, want)
	}
	r.Events.Event(configMap("a"), "Normal", "One", "first")
	r.Events.Event(configMap("a"), "Warning", "Two", "second")
	if got := r.Told(); got != "Normal One first; Warning Two second" || r.Told() != "" {
		t.Errorf("told %s", got)
	}
}
