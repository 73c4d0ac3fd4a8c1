package app

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// TestTheBrakeHoldsWhoeverDeletes has a client delete that nobody else counts.
func TestTheBrakeHoldsWhoeverDeletes(t *testing.T) {
	cc, server := pausedTerm(t)
	cc.limits, cc.Clock = nil, clock.RealClock{}
	cc.process.MaxDeletesPerMinute = []act.DeleteRate{{PerMinute: 1}}
	events := record.NewFakeRecorder(10)
	cc.process.EventRecorder = events
	cc.addBrake()
	config, err := cc.configOf(row(names.JobController))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	pods := client.CoreV1().Pods("shop")
	before := heldSoFar(t)
	for what, do := range map[string]func(context.Context) error{
		"one": func(ctx context.Context) error { return pods.Delete(ctx, "a", metav1.DeleteOptions{}) },
		"all": func(ctx context.Context) error {
			return pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
		},
	} {
		w := consistency.WasWithheld(do(t.Context()))
		if w == nil || w.Until.IsZero() || server.all() != "" {
			t.Errorf("%s is deleted: %+v", what, w)
		}
	}
	if _, err := pods.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); err != nil || server.all() == "" {
		t.Errorf("nothing can be created: %v", err)
	}
	if held := heldSoFar(t) - before; held != 2 {
		t.Errorf("%v were counted", held)
	}
	if len(events.Events) != 1 {
		t.Errorf("%d events, want one", len(events.Events))
	} else if said := <-events.Events; !strings.HasPrefix(said, "Warning DeleteBrakeApplied Deletions begin to be held back: --max-deletes-per-minute allows 1 a minute (all)") {
		t.Errorf("the event says %s", said)
	}
}

// heldSoFar is how many deletions were held back by the rate for all.
func heldSoFar(t *testing.T) float64 {
	t.Helper()
	n, err := testutil.GetCounterMetricValue(deletesHeld.WithLabelValues("all"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
