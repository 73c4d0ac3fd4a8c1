package testrig

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: map[string]string{"k": "v"}}
}

func TestAWatchHandsOutCopies(t *testing.T) {
	client := fake.NewClientset()
	Isolate(client)
	maps := client.CoreV1().ConfigMaps("ns")
	if _, err := maps.Create(t.Context(), configMap("a"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	before := metav1.ListOptions{ResourceVersion: "1"} // when there was no object yet
	w, err := maps.Watch(t.Context(), before)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	(<-w.ResultChan()).Object.(*corev1.ConfigMap).Data["k"] = "trimmed"
	got, err := maps.Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || got.Data["k"] != "v" {
		t.Errorf("the server has %v, %v", got.Data, err)
	}
}

func TestRunEndsWithTheTest(t *testing.T) {
	client := fake.NewClientset(configMap("a"))
	shared := informers.NewSharedInformerFactory(client, 0)
	informer := shared.Core().V1().ConfigMaps().Informer()
	began, ended := make(chan struct{}), false
	t.Run("running", func(t *testing.T) {
		Run(t, client, func(ctx context.Context) { close(began); <-ctx.Done(); ended = true }, shared)
		<-began
		if !informer.HasSynced() {
			t.Error("the controller runs before its caches")
		}
		if _, err := client.CoreV1().ConfigMaps("ns").Create(t.Context(), configMap("b"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		Eventually(t, "the cache shows it", func() bool { return len(informer.GetStore().List()) == 2 })
	})
	if !ended || !informer.IsStopped() {
		t.Error("something runs after the test")
	}
}
