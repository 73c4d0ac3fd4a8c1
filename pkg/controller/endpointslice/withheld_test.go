package endpointslice

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/endpointslice/metrics"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// brake lets nothing be deleted for a second.
func brake(s *shell) {
	quiet := func(act.DeleteRate) {}
	s.limits.Brake = act.NewBrake(s.clock, []act.DeleteRate{{PerMinute: 60}}, quiet, quiet)
}

func pause(s *shell) { s.limits.Pause(func(string, string) string { return "maintenance" }) }

func synced(t *testing.T, how string) float64 {
	t.Helper()
	n, err := testutil.GetCounterMetricValue(metrics.EndpointSliceSyncs.WithLabelValues(how))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestAWriteThatIsWithheldIsNoFailure has a Service made again, so that a slice is created
// and an older one deleted.
func TestAWriteThatIsWithheldIsNoFailure(t *testing.T) {
	for name, tc := range map[string]struct {
		withhold func(*shell)
		also     []runtime.Object
		written  int
		until    time.Duration
		failed   bool // something else did
	}{
		"a deletion above the rate":   {brake, nil, 1, time.Second, false},
		"all of it, by a pause":       {pause, nil, 0, 0, false},
		"beside something that fails": {brake, []runtime.Object{pod(2, "gone")}, 1, time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, Options{}, service(), node("n", "a"), pod(1, "n"))
			s.settle(t)
			for _, object := range append(tc.also, service(recreated)) {
				s.cache(t, object)
			}
			tc.withhold(s)
			failures, successes := synced(t, "error"), synced(t, "success")
			result := s.sync(t.Context(), web)
			err := result.Err()
			held := consistency.WasWithheld(err)
			if err == nil || (held == nil) != tc.failed || held != nil && tc.until > 0 && !held.Until.Equal(s.clock.Now().Add(tc.until)) {
				t.Errorf("ended with %v, withheld %+v", err, held)
			}
			if result.After() != tc.until {
				t.Errorf("looks again after %v", result.After())
			}
			if counted := synced(t, "error") - failures; (counted == 1) != tc.failed || synced(t, "success") != successes {
				t.Errorf("counted %v failures", counted)
			}
			if said := strings.Join(s.said(), ", "); strings.Contains(said, "FailedToUpdateEndpointSlices") != tc.failed || !tc.failed && said != "" {
				t.Errorf("said %s", said)
			}
			if len(s.written) != tc.written || len(s.deleted) != 0 {
				t.Errorf("wrote %d, deleted %d", len(s.written), len(s.deleted))
			}
			s.settleHeld(t)
		})
	}
}

// A write that a stop cuts short is no failure of the Service.
func TestAStopTellsNothing(t *testing.T) {
	for _, stopped := range []bool{true, false} {
		s := newShell(t, Options{}, service(), node("n", "a"), pod(1, "n"))
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		s.client.PrependReactor("create", "endpointslices", func(clienttesting.Action) (bool, runtime.Object, error) {
			if stopped {
				stop()
			}
			return true, nil, errors.New("cut short")
		})
		failures := synced(t, "error")
		err := s.sync(ctx, web).Err()
		if said := s.said(); err == nil || (len(said) == 0) != stopped || (synced(t, "error") == failures) != stopped {
			t.Errorf("stopped %t: ended with %v, said %q", stopped, err, said)
		}
	}
}

// settleHeld has what was withheld done when its turn has come.
func (s *shell) settleHeld(t *testing.T) {
	t.Helper()
	for _, slice := range s.written {
		s.cache(t, slice)
	}
	if err := s.factory.Core().V1().Pods().Informer().GetIndexer().Delete(pod(2, "gone")); err != nil {
		t.Fatal(err)
	}
	s.limits.Pause(nil)
	s.clock.Step(2 * time.Second)
	if s.settle(t); len(s.deleted) != 1 {
		t.Errorf("deleted %v", s.deleted)
	}
}
