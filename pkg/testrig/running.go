// Package testrig is what tests of controllers on client-go's fakes have in common.
package testrig

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	ktesting "k8s.io/client-go/testing"
)

// Fake is one of client-go's fake clients.
type Fake interface {
	PrependWatchReactor(resource string, reaction ktesting.WatchReactionFunc)
	Tracker() ktesting.ObjectTracker
}

// Isolate has the watches of a fake hand out copies. By itself it hands out its
// own object when that was made between an informer's list and its watch, and an
// informer that trims what it is given would trim the object on the server.
func Isolate(client Fake) { isolate(client, func() {}) }

func isolate(client Fake, watches func()) {
	client.PrependWatchReactor("*", func(action ktesting.Action) (bool, watch.Interface, error) {
		var options metav1.ListOptions
		if a, ok := action.(ktesting.WatchActionImpl); ok {
			options = a.ListOptions
		}
		w, err := client.Tracker().Watch(action.GetResource(), action.GetNamespace(), options)
		if err != nil {
			return true, nil, err
		}
		watches()
		return true, watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
			e.Object = e.Object.DeepCopyObject()
			return e, true
		}), nil
	})
}

// Run runs a controller and its caches on an isolated fake to the end of the test.
// It returns when all caches watch: a fake tells nobody of what is deleted between
// an informer's list and its watch.
func Run(t testing.TB, client Fake, run func(context.Context), caches ...informers.SharedInformerFactory) {
	t.Helper()
	var watching atomic.Int32
	isolate(client, func() { watching.Add(1) })
	ctx, cancel := context.WithCancel(context.Background())
	for _, c := range caches {
		c.Start(ctx.Done())
	}
	all := 0
	for _, c := range caches {
		all += len(c.WaitForCacheSync(ctx.Done()))
	}
	Eventually(t, "all caches watch", func() bool { return int(watching.Load()) >= all })
	ended := make(chan struct{})
	go func() { defer close(ended); run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		for _, c := range caches {
			c.Shutdown()
		}
	})
}

// Eventually fails the test unless something becomes true.
func Eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(context.Background(), 5*time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		t.Fatalf("waited in vain: %s", what)
	}
}
