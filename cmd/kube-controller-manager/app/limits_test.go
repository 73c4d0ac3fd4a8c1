package app

import (
	"context"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
)

// TestTermsShareWhatHoldsThemBack has the two terms of a leader migration. The second begins
// when the controllers of the first run.
func TestTermsShareWhatHoldsThemBack(t *testing.T) {
	p := newEmptyCluster(t, func(*http.Request) int { return 0 }).leader(t)
	p.PauseConfigMap = types.NamespacedName{Namespace: "kube-system", Name: "kcm-pause"}
	p.MaxDeletesPerMinute = []act.DeleteRate{{PerMinute: 60}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	first, err := newControllerContext(ctx, p, t.Name()+"-main", nil)
	defer first.close()
	if err != nil {
		t.Fatal(err)
	}
	p.debug.Set(names.JobController, debug.Started, "")
	second, err := newControllerContext(ctx, p, t.Name()+"-migrated", nil)
	defer second.close()
	if err != nil {
		t.Fatal(err)
	}
	if first.limits == nil || first.limits.Brake == nil || first.limits != second.limits {
		t.Error("each term deletes at the rate of its own")
	}
	if job, _ := p.debug.Find(names.JobController); job.State != debug.Started {
		t.Errorf("a controller that runs is shown as %s", job.State)
	}
	stop()
	first.term.wait(deadline)
	second.term.wait(deadline)
}

// drained is a loop that keeps the limit of its drain.
type drained struct {
	pretendLoop
	limit time.Duration
}

func (d *drained) LimitDrain(limit time.Duration) { d.limit = limit }

func TestALoopIsCutBeforeTheProcessGivesUp(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{0: time.Nanosecond, 100 * time.Millisecond: 100 * time.Millisecond, time.Minute: workGrace} {
		cc := testContext(t)
		cc.term, cc.name = newRunning(timeout), names.JobController
		ctx, stop := context.WithCancel(t.Context())
		loop := &drained{}
		cc.Go(ctx, loop)
		stop()
		cc.term.wait(deadline)
		if loop.limit != want {
			t.Errorf("with --controller-shutdown-timeout=%s a loop may go on for %s, want %s", timeout, loop.limit, want)
		}
	}
}
