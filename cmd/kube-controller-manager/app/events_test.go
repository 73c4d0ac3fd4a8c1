package app

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestFlushWaitsForTheEventsRecordedBeforeIt(t *testing.T) {
	client := fake.NewClientset()
	slow := make(chan struct{}, 1)
	client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		slow <- <-slow
		return false, nil, nil
	})
	client.PrependReactor("patch", "events", func(a clienttesting.Action) (bool, runtime.Object, error) {
		t.Errorf("event %s is patched", a.(clienttesting.PatchAction).GetName())
		return true, nil, errors.New("an event is patched")
	})
	events := newEvents(t.Context(), client.CoreV1(), "test-controller")
	defer events.shutdown()
	const many = 20
	for i := range 2 * many { // a term ends with a flush, and the process with another
		pod := &corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: fmt.Sprintf("pod-%d", i)}
		events.recorder.Event(pod, corev1.EventTypeNormal, "Tested", "an event")
		if i == many-1 {
			go func() { slow <- struct{}{} }()
			events.flush(deadline)
			<-slow
		}
	}
	go func() { slow <- struct{}{} }()
	events.flush(deadline)
	list, err := client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 2*many {
		t.Errorf("%d of %d events are written", len(list.Items), 2*many)
	}
	for _, e := range list.Items {
		if e.Reason != "Tested" || e.Source.Component != "test-controller" {
			t.Errorf("unexpected event %s from %s", e.Reason, e.Source.Component)
		}
	}
}

func TestFlushGivesUpAfterItsTimeout(t *testing.T) {
	client := fake.NewClientset()
	client.PrependReactor("create", "events", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("the server is away")
	})
	events := newEvents(t.Context(), client.CoreV1(), "test-controller")
	defer events.shutdown()
	events.recorder.Event(&corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "pod"}, corev1.EventTypeNormal, "Tested", "an event")
	done := make(chan struct{})
	go func() { events.flush(time.Millisecond); close(done) }()
	select {
	case <-done:
	case <-time.After(deadline):
		t.Fatal("flush hangs")
	}
}
