package shadow

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

const window = 30 * time.Second

var errBroken = errors.New("broken")

// world is a ledger with a clock, and keys whose reconciles are played by hand.
type world struct {
	*Ledger
	t       *testing.T
	clock   *clocktesting.FakeClock
	running bool
	ending  map[string]bool
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, clock: clocktesting.NewFakeClock(noon), running: true, ending: map[string]bool{}}
	w.Ledger = New(Options{
		Window: window, Clock: w.clock, Running: func(string) bool { return w.running },
		Ending: func(namespace string) bool { return w.ending[namespace] }, Refused: func() int64 { return 0 },
		Maker: func(made Written) string {
			if made.Kind == "Node" {
				return ""
			}
			return "maker"
		},
	})
	return w
}

// plans is a reconcile of the key that would carry out these steps.
func (w *world) plans(steps ...act.Step) runner.Result {
	return w.Around(w.t.Context(), runner.Reconciling{Loop: "loop", Key: "ns/web"}, func(ctx context.Context) runner.Result {
		for _, step := range steps {
			w.Take(ctx, "maker", step)
		}
		if len(steps) > 0 {
			return runner.Done(act.ErrShadowed)
		}
		return runner.Done()
	})
}

// comes to totals, in the order agreed, overtaken, extra, missed, open.
func (w *world) comesTo(want ...int) {
	w.t.Helper()
	got := w.Report()
	if have := [5]int{got.Agreed, got.Overtaken, got.Extra, got.Missed, got.Open}; have != [5]int(want) {
		w.t.Errorf("agreed, overtaken, extra, missed, open are %v, want %v", have, want)
	}
}

func pod(name, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: version}}
}

func generated(ownerVersion string) act.Create {
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "owner", ResourceVersion: ownerVersion}}
	yes := true
	return act.Create{Owner: owner, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", GenerateName: "web-",
		OwnerReferences: []metav1.OwnerReference{{Kind: "ConfigMap", Name: "web", UID: "owner", Controller: &yes}}}}}
}

func labelled(version, value string) act.Patch {
	return act.Patch{Of: pod("a", version), Data: []byte(`{"metadata":{"labels":{"a":"` + value + `"}}}`)}
}

func reported(version, message string, at time.Time) act.Status {
	return act.Status{Of: pod("a", version), Set: func(o client.Object) {
		o.(*corev1.Pod).Status.Conditions = []corev1.PodCondition{{Type: "Ready", Message: message, LastTransitionTime: metav1.NewTime(at)}}
	}}
}

func TestAWishThatTheKeyHasNoMoreIsAgreed(t *testing.T) {
	w := newWorld(t)
	if got := w.plans(act.Delete{Of: pod("a", "1")}); got.Err() != nil || got.After() != window+afterWindow {
		t.Errorf("came to %v, and looks again after %s", got.Err(), got.After())
	}
	w.comesTo(0, 0, 0, 0, 1)
	w.clock.Step(window - time.Second)
	if got := w.plans(); got.After() != 0 {
		t.Errorf("looks again after %s", got.After())
	}
	w.comesTo(0, 0, 0, 0, 1)
	w.clock.Step(settled)
	w.comesTo(1, 0, 0, 0, 0)
	if got := w.Report(); *got.Agreement != 1 || len(got.Differences) != 0 {
		t.Errorf("reports %+v", got)
	}
}

func TestAWishThatTheKeyHasStillAtTheEndIsExtra(t *testing.T) {
	w := newWorld(t)
	w.plans(act.Delete{Of: pod("a", "1")})
	w.clock.Step(10 * time.Second)
	if got := w.plans(act.Delete{Of: pod("a", "2")}); got.After() != 20*time.Second+afterWindow {
		t.Errorf("looks again after %s", got.After())
	}
	w.clock.Step(20 * time.Second)
	for range 3 { // it is counted once, and not looked at again by itself before a whole window
		if got := w.plans(act.Delete{Of: pod("a", "2")}); got.Err() != nil || got.After() != window {
			t.Errorf("came to %v, and looks again after %s", got.Err(), got.After())
		}
		w.comesTo(0, 0, 1, 0, 0)
	}
	got := w.Report()
	want := Difference{Controller: "maker", Result: extra, What: "delete Pod", Count: 1, Open: 1, Object: "ns/a", Key: "ns/web", First: noon.Add(window), Last: noon.Add(window)}
	if *got.Agreement != 0 || len(got.Differences) != 1 || got.Differences[0] != want {
		t.Errorf("reports %+v", got)
	}
	w.plans()
	w.clock.Step(settled)
	w.comesTo(0, 0, 1, 0, 0)
	if d := w.Report().Differences[0]; d.Open != 0 || d.Count != 1 {
		t.Errorf("once it is done, reports %+v", d)
	}
}

// TestWhatCountsAsTheSameWish plays two plans, the second one 20 s after the first, with
// one without wishes before it or not, and a third one like the second 15 s later.
func TestWhatCountsAsTheSameWish(t *testing.T) {
	for name, tc := range map[string]struct {
		first, second act.Step
		without       bool
		extra         bool
	}{
		"the same patch":                                         {labelled("1", "x"), labelled("1", "x"), false, true},
		"the same patch of a newer version":                      {labelled("1", "x"), labelled("2", "x"), false, true},
		"another patch of the version":                           {labelled("1", "x"), labelled("1", "y"), false, true},
		"another patch of a newer version":                       {labelled("1", "x"), labelled("2", "y"), false, false},
		"a status that differs in times":                         {reported("1", "m", noon), reported("2", "m", noon.Add(time.Hour)), false, true},
		"another status":                                         {reported("1", "m", noon), reported("2", "n", noon), false, false},
		"the patch is put off and comes back":                    {labelled("1", "x"), labelled("1", "x"), true, true},
		"the patch comes back for a newer version":               {labelled("1", "x"), labelled("2", "x"), true, false},
		"a deletion comes back":                                  {act.Delete{Of: pod("a", "1")}, act.Delete{Of: pod("a", "2")}, true, true},
		"another pod is deleted":                                 {act.Delete{Of: pod("a", "1")}, act.Delete{Of: pod("b", "1")}, false, false},
		"a pod with a generated name":                            {generated("1"), generated("1"), false, true},
		"a pod with a generated name, of an owner that changed":  {generated("1"), generated("2"), false, false},
		"a pod by its name":                                      {act.Create{Object: pod("a", "")}, act.Create{Object: pod("a", "")}, false, true},
		"a pod by its name, which was there between":             {act.Create{Object: pod("a", "")}, act.Create{Object: pod("a", "")}, true, false},
		"a pod that is made and one that is deleted are not one": {act.Create{Object: pod("a", "")}, act.Delete{Of: pod("a", "1")}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.plans(tc.first)
			w.clock.Step(19 * time.Second)
			if tc.without {
				w.plans()
			}
			w.clock.Step(time.Second)
			w.plans(tc.second)
			w.clock.Step(15 * time.Second)
			w.plans(tc.second)
			if got := w.Report().Extra == 1; got != tc.extra {
				t.Errorf("extra: %t; %+v", got, w.Report().Totals)
			}
		})
	}
}

func TestWishesAreCountedOneByOne(t *testing.T) {
	w := newWorld(t)
	w.plans(generated("1"), generated("1"), generated("1"))
	w.comesTo(0, 0, 0, 0, 3)
	w.plans(generated("1"))
	w.clock.Step(settled)
	w.comesTo(2, 0, 0, 0, 1)
	w.plans(labelled("1", "x"))
	w.plans(labelled("2", "y"))
	w.clock.Step(settled)
	w.comesTo(3, 1, 0, 0, 1)
}

func TestWhatIsNotCompared(t *testing.T) {
	w := newWorld(t)
	call := act.Call{Of: pod("a", "1"), What: "attach"}
	if got := w.plans(call); got.Err() != nil || got.After() != window {
		t.Errorf("came to %v, and looks again after %s", got.Err(), got.After())
	}
	w.plans(act.Ask{Question: pod("a", "")})
	w.ending["ns"] = true
	w.plans(act.Create{Object: pod("a", "")})
	w.Take(t.Context(), "maker", act.Delete{Of: pod("a", "1")})
	w.comesTo(0, 0, 0, 0, 0)
	if got := w.Report(); got.Aside != 4 || got.Agreement != nil {
		t.Errorf("reports %+v", got)
	}
}

func TestAReconcileThatCouldNotLookSettlesNothing(t *testing.T) {
	w := newWorld(t)
	w.plans(act.Delete{Of: pod("a", "1")})
	broken := w.Around(t.Context(), runner.Reconciling{Loop: "loop", Key: "ns/web"}, func(context.Context) runner.Result { return runner.Done(errBroken) })
	if !errors.Is(broken.Err(), errBroken) {
		t.Errorf("came to %v", broken.Err())
	}
	w.clock.Step(settled)
	w.comesTo(0, 0, 0, 0, 1)
	w.stillFails()
	other := w.Around(t.Context(), runner.Reconciling{Loop: "loop", Key: "ns/other"}, func(context.Context) runner.Result { return runner.Done().RequeueAfter(time.Second) })
	if other.After() != time.Second {
		t.Errorf("looks again after %s", other.After())
	}
	w.clock.Step(settled)
	w.comesTo(0, 0, 0, 0, 1)
	gone := w.Around(t.Context(), runner.Reconciling{Loop: "loop", Key: "ns/web"}, func(context.Context) runner.Result { return runner.Done(act.ErrShadowed).RequeueAfter(time.Second) })
	if gone.Err() != nil || gone.After() != time.Second {
		t.Errorf("came to %v, and looks again after %s", gone.Err(), gone.After())
	}
	w.clock.Step(settled)
	w.comesTo(1, 0, 0, 0, 0)
}

// stillFails plays another ledger, whose key fails for two windows.
func (w *world) stillFails() {
	w.t.Helper()
	other := newWorld(w.t)
	other.plans(act.Delete{Of: pod("a", "1")})
	other.clock.Step(2*window - 1)
	other.comesTo(0, 0, 0, 0, 1)
	other.clock.Step(1)
	other.comesTo(0, 1, 0, 0, 0)
}

func TestWhatIsDueIsCountedWithoutAReconcile(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { w.Run(ctx); close(ended) }()
	w.plans(act.Delete{Of: pod("a", "1")})
	w.plans()
	for !w.clock.HasWaiters() {
	}
	w.clock.Step(settled)
	for deadline := time.Now().Add(10 * time.Second); ; {
		w.mu.Lock()
		done := w.total("maker").Agreed == 1
		w.mu.Unlock()
		if done {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it is not counted")
		}
	}
	cancel()
	<-ended
}

func TestTheReportNamesNoContent(t *testing.T) {
	w := newWorld(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "token"}, Data: map[string][]byte{"token": []byte("MARKED")}}
	w.plans(act.Update{Object: secret}, act.Patch{Of: secret, Data: []byte(`{"stringData":{"token":"MARKED"}}`)})
	w.clock.Step(window)
	w.plans(act.Update{Object: secret}, act.Patch{Of: secret, Data: []byte(`{"stringData":{"token":"MARKED"}}`)})
	answer := httptest.NewRecorder()
	w.ServeHTTP(answer, httptest.NewRequest("GET", "/debug/shadow", nil))
	body := answer.Body.String()
	if strings.Contains(body, "MARKED") || strings.Contains(body, "TUFSS0VE") || !strings.Contains(body, "ns/token") {
		t.Error(body)
	}
	var report Report
	if err := json.Unmarshal([]byte(body), &report); err != nil || report.Version != 1 || report.Window != "30s" || len(report.Controllers) != 1 {
		t.Errorf("%v: %s", err, body)
	}
}
