package cache

import (
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	toolscache "k8s.io/client-go/tools/cache"
)

// seen are the names of the Nodes that a handler was told of, with what became of them.
type seen struct {
	mu     sync.Mutex
	events []string
}

func (s *seen) note(what string, o any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, what+" "+o.(*corev1.Node).Name)
}

func (s *seen) handler() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { s.note("add", o) },
		UpdateFunc: func(_, o any) { s.note("update", o) },
		DeleteFunc: func(o any) { s.note("delete", o) },
	}
}

func (s *seen) wait(t *testing.T, want ...string) {
	t.Helper()
	end := time.Now().Add(20 * time.Second)
	for tick := time.Tick(5 * time.Millisecond); ; <-tick {
		s.mu.Lock()
		got := slices.Clone(s.events)
		s.mu.Unlock()
		if slices.Equal(got, want) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("saw %q, want %q", got, want)
		}
	}
}

// TestHandlersAreCalledOneAfterTheOther has a handler that is slow: the next one hears of the
// same object after it.
func TestHandlersAreCalledOneAfterTheOther(t *testing.T) {
	f := NewFactory(fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}), 0)
	var second, apart seen
	began, release := make(chan struct{}), make(chan struct{})
	letGo := sync.OnceFunc(func() { close(release) })
	slow := toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) { close(began); <-release }}
	for _, handler := range []toolscache.ResourceEventHandler{slow, second.handler()} {
		if _, err := f.Core().V1().Nodes().Informer().AddEventHandler(handler); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Core().V1().Nodes().Informer().(*shared).AddSlowHandler(apart.handler()); err != nil {
		t.Fatal(err)
	}
	f.StartWithContext(t.Context())
	t.Cleanup(f.Shutdown)
	t.Cleanup(letGo)
	<-began
	apart.wait(t, "add a") // one with a goroutine of its own has it by now
	second.wait(t)
	letGo()
	second.wait(t, "add a")
}

func TestHandlersShareOneListener(t *testing.T) {
	node := func(name string) *corev1.Node { return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	client := fake.NewClientset(node("a"))
	f := NewFactory(client, 0)
	var first, second, late seen
	add := func(s *seen) toolscache.ResourceEventHandlerRegistration {
		t.Helper()
		added, err := f.Core().V1().Nodes().Informer().AddEventHandler(s.handler())
		if err != nil {
			t.Fatal(err)
		}
		return added
	}
	one, two := add(&first), add(&second)
	if one.HasSynced() || two.HasSynced() {
		t.Error("synced before the start")
	}
	f.StartWithContext(t.Context())
	t.Cleanup(f.Shutdown)
	first.wait(t, "add a")
	second.wait(t, "add a")
	if !toolscache.WaitForCacheSync(t.Context().Done(), one.HasSynced, two.HasSynced) {
		t.Fatal("never synced")
	}

	three := add(&late)
	late.wait(t, "add a") // what it missed
	if !toolscache.WaitForCacheSync(t.Context().Done(), three.HasSynced) {
		t.Fatal("the late one never synced")
	}

	informer := f.Core().V1().Nodes().Informer()
	if err := informer.RemoveEventHandler(one); err != nil {
		t.Fatal(err)
	}
	nodes := client.CoreV1().Nodes()
	if _, err := nodes.Create(t.Context(), node("b"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	second.wait(t, "add a", "add b")
	late.wait(t, "add a", "add b")
	if err := informer.RemoveEventHandler(three); err != nil {
		t.Fatal(err)
	}
	if _, err := nodes.Update(t.Context(), node("b"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := nodes.Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	second.wait(t, "add a", "add b", "update b", "delete b")
	first.wait(t, "add a")
	late.wait(t, "add a", "add b")
}
