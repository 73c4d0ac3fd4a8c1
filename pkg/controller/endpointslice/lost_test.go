package endpointslice

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// The answers to creates get lost: the first of them with, the second without a slice.
func TestALostAnswerMakesNoSecondSlice(t *testing.T) {
	for name, made := range map[string]bool{"it was carried out": true, "it was not": false} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, Options{}, service(), node("n", "a"), pod(1, "n"))
			var there []metav1.Object
			s.LookLive(fixture.LiveOf(func(schema.GroupResource, string) ([]metav1.Object, error) { return there, nil }))
			lose := true
			s.client.PrependReactor("create", "endpointslices", func(a clienttesting.Action) (bool, runtime.Object, error) {
				slice := a.(clienttesting.CreateAction).GetObject().(*discoveryv1.EndpointSlice).DeepCopy()
				if slice.Name != "" || slice.GenerateName != "web-" {
					t.Errorf("created as %q, generated from %q", slice.Name, slice.GenerateName)
				}
				slice.Name = fmt.Sprint(slice.GenerateName, s.version)
				slice.UID, slice.Generation = types.UID(slice.Name), 1
				s.version++
				slice.ResourceVersion = fmt.Sprint(s.version)
				if made || !lose {
					there = append(there, slice)
				}
				if lose {
					return true, nil, errors.New("http2: stream closed")
				}
				return true, slice, nil
			})
			if err := s.sync(context.Background(), web).Err(); err == nil {
				t.Fatal("a lost answer is no success")
			}
			if held := fixture.Held(t.Context(), s.writes, web); held != made {
				t.Fatalf("held after the live look: %t", held)
			}
			lose = false
			for _, slice := range there {
				s.cache(t, slice.(*discoveryv1.EndpointSlice))
			}
			if fixture.Held(t.Context(), s.writes, web) {
				t.Fatal("held although the cache shows the slice")
			}
			if err := s.sync(context.Background(), web).Err(); err != nil || len(there) != 1 {
				t.Errorf("%v, %d slices", err, len(there))
			}
		})
	}
}

func TestAnEndpointThatLeavesDoesNotWait(t *testing.T) {
	s := newShell(t, Options{}, service(), node("n", "a"), pod(1, "n"))
	s.settle(t)
	s.spacing.Done(web, s.clock.Now().Add(-time.Second), nil) // as if that had taken a second

	s.cache(t, pod(2, "n"))
	s.onPod(runner.Change[corev1.Pod]{New: pod(2, "n")}, s)
	if result := s.sync(context.Background(), web); result.Err() != nil || result.After() != 500*time.Millisecond || len(s.written) != 0 {
		t.Errorf("a pod that joins: %v, again in %v, wrote %d", result.Err(), result.After(), len(s.written))
	}
	s.cache(t, pod(1, "n", unready))
	s.onPod(runner.Change[corev1.Pod]{Old: pod(1, "n"), New: pod(1, "n", unready)}, s)
	if result := s.sync(context.Background(), web); result.Err() != nil || result.After() != 0 || len(s.written) != 1 {
		t.Errorf("a pod that leaves: %v, again in %v, wrote %d", result.Err(), result.After(), len(s.written))
	}

	s.settle(t)
	s.spacing.Done(web, s.clock.Now().Add(-time.Second), nil)
	s.onService(runner.Change[corev1.Service]{Old: service()}, s)
	if result := s.sync(context.Background(), web); result.Err() != nil || result.After() != 0 {
		t.Errorf("a Service that changes: %v, again in %v", result.Err(), result.After())
	}
}

// The second controller has never seen the slice, so no event says that it is gone.
func TestASliceThatWentWhileNobodyLookedIsMadeAgain(t *testing.T) {
	there := []runtime.Object{service(), node("n", "a"), pod(1, "n")}
	before := newShell(t, Options{}, there...).settle(t)
	if len(before) != 1 {
		t.Fatalf("wrote %v", before)
	}
	s := newShell(t, Options{}, there...)
	s.onService(runner.Change[corev1.Service]{New: service(), Initial: true}, s)
	if s.Len() != 1 {
		t.Fatalf("%d keys are woken at the start", s.Len())
	}
	again := s.settle(t)
	if len(again) != 1 || len(again[0].Endpoints) != 1 || again[0].Endpoints[0].Addresses[0] != before[0].Endpoints[0].Addresses[0] {
		t.Errorf("wrote %v", again)
	}
	if more := s.settle(t); len(more) != 0 {
		t.Errorf("then wrote %v", more)
	}
}
