package endpoints

//lint:file-ignore SA1019 the old API is what this controller keeps

import (
	"context"
	"io"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// TestALostCreationIsCleanedUp holds that what was made although nobody heard of it is looked
// at when it appears without its Service, and that what others make is never.
func TestALostCreationIsCleanedUp(t *testing.T) {
	for name, tc := range map[string]struct {
		answer error
		later  time.Duration
		woken  []string
	}{
		"the answer was lost":              {io.ErrUnexpectedEOF, time.Second, []string{"shop/web"}},
		"it is too late for that creation": {io.ErrUnexpectedEOF, 2 * time.Minute, nil},
		"it was answered":                  {nil, time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, Options{}, service(), pod(1))
			s.client.PrependReactor("create", "endpoints", func(clienttesting.Action) (bool, runtime.Object, error) { return true, settled(), tc.answer })
			if err := s.Reconcile(context.Background(), web).Err(); (err != nil) != (tc.answer != nil) {
				t.Fatal(err)
			}
			if err := s.core.Services().Informer().GetIndexer().Delete(service()); err != nil {
				t.Fatal(err)
			}
			s.clock.Step(tc.later)
			var first, second woken
			s.onEndpoints(runner.Change[corev1.Endpoints]{New: settled(pod(1))}, &first)
			s.onEndpoints(runner.Change[corev1.Endpoints]{New: settled(pod(1))}, &second)
			if !slices.Equal(first, tc.woken) || len(second) > 0 {
				t.Errorf("what appears wakes %v, and one after it %v", first, second)
			}
		})
	}
}
