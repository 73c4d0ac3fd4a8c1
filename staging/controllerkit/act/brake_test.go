package act

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// braking notes what a brake says.
type braking struct {
	*Brake
	clock  *clocktesting.FakeClock
	begun  []string
	waited int
}

func newBraking(rates ...DeleteRate) *braking {
	b := &braking{clock: clocktesting.NewFakeClock(noon)}
	b.Brake = NewBrake(b.clock, rates, func(r DeleteRate) { b.begun = append(b.begun, r.String()) }, func(DeleteRate) { b.waited++ })
	return b
}

func perMinute(n int, resource string) DeleteRate {
	return DeleteRate{Resource: schema.ParseGroupResource(resource), PerMinute: n}
}

// TestNoMinuteHasMoreDeletions plays somebody who deletes as much as may be, in bursts,
// and restarts in between.
func TestNoMinuteHasMoreDeletions(t *testing.T) {
	for _, n := range []int{1, 2, 9, 10, 19, 20, 60, 600, 5000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			random := rand.New(rand.NewPCG(7, uint64(n)))
			b := newBraking(perMinute(n, ""))
			var deleted []time.Time
			for range 2000 {
				if random.IntN(200) == 0 { // another leader
					clock := b.clock
					b.Brake = NewBrake(clock, []DeleteRate{perMinute(n, "")}, func(DeleteRate) {}, func(DeleteRate) {})
				}
				taken, rest := b.Take(pods, 1+random.IntN(2*n))
				if w := consistency.WasWithheld(rest); w != nil && (w.Until.Before(b.clock.Now().Add(soonest)) || w.Until.After(b.clock.Now().Add(latest))) {
					t.Fatalf("the turn is in %s", w.Until.Sub(b.clock.Now()))
				}
				for range taken {
					deleted = append(deleted, b.clock.Now())
				}
				b.clock.Step(time.Duration(random.IntN(int(3 * time.Minute / time.Duration(max(n/10, 1))))))
			}
			most, from := 0, 0
			for to, at := range deleted {
				for at.Sub(deleted[from]) >= time.Minute {
					from++
				}
				most = max(most, to-from+1)
			}
			if most > n || most < min(n, 2) {
				t.Errorf("%d in a minute, of %d that may be", most, n)
			}
			span := deleted[len(deleted)-1].Sub(noon).Minutes()
			t.Logf("%d in the fullest minute, %.1f of %d in the mean", most, float64(len(deleted))/span, n)
		})
	}
}

func TestTheTightestRateCounts(t *testing.T) {
	sets := schema.GroupResource{Group: "apps", Resource: "replicasets"}
	b := newBraking(perMinute(100, ""), perMinute(20, "pods"), perMinute(20, "replicasets"), perMinute(10, "replicasets.apps"))
	b.clock.Step(time.Hour)
	for _, step := range []struct {
		resource schema.GroupResource
		most     int
		taken    int
		by       string
	}{
		{pods, 2, 2, ""},
		{pods, 1, 0, "20 a minute (pods)"},
		{sets, 5, 1, "10 a minute (replicasets.apps)"},
		{schema.GroupResource{Resource: "secrets"}, 3, 3, ""},
		{schema.GroupResource{Resource: "secrets"}, 100, 4, "100 a minute (all)"}, // 10 in all
		{schema.GroupResource{Group: "x", Resource: "pods"}, 1, 0, "100 a minute (all)"},
	} {
		taken, rest := b.Take(step.resource, step.most)
		if taken != step.taken || (rest == nil) != (step.by == "") || rest != nil && !strings.Contains(rest.Error(), step.by) {
			t.Errorf("%s, %d: took %d, %v; want %d, %s", step.resource, step.most, taken, rest, step.taken, step.by)
		}
	}
	if !newBraking(perMinute(1, "pods")).Brakes(pods) || newBraking(perMinute(1, "pods")).Brakes(sets) || (*Brake)(nil).Brakes(pods) {
		t.Error("it is not known what is braked")
	}
	if taken, rest := (*Brake)(nil).Take(pods, 7); taken != 7 || rest != nil {
		t.Errorf("without a brake %d are taken: %v", taken, rest)
	}
}

func TestABrakeSaysWhenItBegins(t *testing.T) {
	b := newBraking(perMinute(60, ""))
	for range 100 {
		_, _ = b.Take(pods, 1)
		b.clock.Step(500 * time.Millisecond)
	}
	if len(b.begun) != 1 || b.waited < 40 {
		t.Errorf("it began %v, and %d waited", b.begun, b.waited)
	}
	b.clock.Step(over)
	_, _ = b.Take(pods, 7)
	if len(b.begun) != 2 {
		t.Errorf("it began %v", b.begun)
	}
}

// TestKeysComeBackOneAfterTheOther has a thousand keys wait, which are not to come back
// together. Half of them have a turn, nine in a second; the others are spread at random over
// the last 30 seconds, some 16 in each.
func TestKeysComeBackOneAfterTheOther(t *testing.T) {
	b := newBraking(perMinute(600, ""))
	turns := map[time.Duration]int{}
	for range 1000 {
		_, rest := b.Take(pods, 1)
		turns[consistency.WasWithheld(rest).Until.Sub(noon).Truncate(time.Second)]++
	}
	for at, n := range turns {
		if n > 100 {
			t.Errorf("%d keys come back %s later", n, at)
		}
	}
	if len(turns) < 55 {
		t.Errorf("they come back within %d seconds", len(turns))
	}
}

func brakedRig(t *testing.T, change func(*Options[types.NamespacedName]), n int, names ...string) (*rig, *braking) {
	t.Helper()
	b := newBraking(perMinute(n, ""))
	r := newRig(t, func(o *Options[types.NamespacedName]) {
		o.Limits = &Limits{Brake: b.Brake}
		if change != nil {
			change(o)
		}
	})
	b.clock, b.Brake.clock = r.clock, r.clock
	for _, name := range names {
		if err := r.client.Create(t.Context(), pod(name)); err != nil {
			t.Fatal(err)
		}
	}
	r.did()
	return r, b
}

func TestDeletionsWaitForTheirTurn(t *testing.T) {
	r, b := brakedRig(t, nil, 60, "a", "b", "c")
	r.clock.Step(1100 * time.Millisecond) // one may go
	events := Events{On: owner(), FailedReason: "NotGone", Failed: "not gone: %v"}
	plan := Plan{Stages: []Stage{Each(Delete{Of: pod("a"), Events: events}, Delete{Of: pod("b"), Events: events}, Delete{Of: pod("c"), Events: events}, create("d"))},
		RequeueAfter: time.Hour}
	result := r.Do(t.Context(), web, plan)
	w := consistency.WasWithheld(result.Err())
	if w == nil || w.Until.Sub(r.clock.Now()) != soonest || result.After() != time.Hour {
		t.Errorf("ended with %v, look again after %s", result.Err(), result.After())
	}
	if did := r.did(); strings.Count(did, "delete") != 1 || !strings.Contains(did, "create d") {
		t.Errorf("did %s", did)
	}
	if len(r.told) != 1 || b.waited != 1 {
		t.Errorf("told %v, and %d keys had to wait", r.told, b.waited)
	}
	r.clock.Step(time.Minute)
	if result := r.Do(t.Context(), web, Plan{Stages: []Stage{Each(Delete{Of: pod("b")}, Delete{Of: pod("c")})}}); result.Err() != nil {
		t.Errorf("a minute later: %v", result.Err())
	}
}

// A finalizer that goes long before its pod would lose what the pod does in between.
func TestAPartWaitsForItsTurnAsAWhole(t *testing.T) {
	r, b := brakedRig(t, nil, 60, "a", "b")
	r.clock.Step(1100 * time.Millisecond) // one may go
	free := func(name string) Part {
		first := Patch{Of: pod(name), Type: types.MergePatchType, Data: []byte(`{"metadata":{"labels":{"free":"yes"}}}`)}
		return Part{Of: pod(name), Stages: Stages(first, Delete{Of: pod(name)})}
	}
	var results Results
	result := r.Do(t.Context(), web, observing(&results, EachInTurn(free("a"), free("b"))))
	if consistency.WasWithheld(result.Err()) == nil || outcomes(results) != "done, done, on hold" {
		t.Errorf("ended with %v: %s", result.Err(), outcomes(results))
	}
	if did := r.did(); strings.Contains(did, " b") || strings.Count(did, "delete") != 1 || b.waited != 1 {
		t.Errorf("did %s", did)
	}
	r.clock.Step(time.Minute)
	if result := r.Do(t.Context(), web, Plan{Stages: Stages(free("b"))}); result.Err() != nil || r.stored("b") != nil {
		t.Errorf("a minute later: %v", result.Err())
	}
}

func TestAPartWaitsForADeletionThatMayCome(t *testing.T) {
	r, _ := brakedRig(t, nil, 60, "a")
	fails := func(name string) Part {
		first := Patch{Of: pod(name), Type: types.MergePatchType, Data: []byte(`{"metadata":{"labels":{"failed":"yes"}}}`)}
		return Part{Of: pod(name), Stages: Stages(first), Deletes: pod(name), Last: func(Results) Step { return Delete{Of: pod(name)} }}
	}
	result := r.Do(t.Context(), web, Plan{Stages: Stages(fails("a"))})
	if did := r.did(); consistency.WasWithheld(result.Err()) == nil || did != "" {
		t.Errorf("ended with %v, did %s", result.Err(), did)
	}
	r.clock.Step(1100 * time.Millisecond) // one may go
	if result := r.Do(t.Context(), web, Plan{Stages: Stages(fails("a"))}); result.Err() != nil || r.stored("a") != nil {
		t.Errorf("a second later: %v", result.Err())
	}
}

// What waits in the foreground goes at once when it is deleted in the background.
func TestADeletionOfAllThatHastens(t *testing.T) {
	for name, tc := range map[string]struct {
		how       metav1.DeletionPropagation
		finalizer string
		want      bool
	}{
		"it waits for its dependents":      {metav1.DeletePropagationBackground, metav1.FinalizerDeleteDependents, true},
		"or to be parted from them":        {metav1.DeletePropagationBackground, metav1.FinalizerOrphanDependents, true},
		"it waits for somebody else":       {metav1.DeletePropagationBackground, "example.com/hold", false},
		"it is to wait for its dependents": {metav1.DeletePropagationForeground, metav1.FinalizerDeleteDependents, false},
		"nothing is said":                  {"", metav1.FinalizerDeleteDependents, false},
	} {
		of := pod("a")
		of.Finalizers = []string{tc.finalizer}
		if got := (DeleteAll{Propagation: tc.how}).hastens(of); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestATurnIsNotLostToAFailureBesides(t *testing.T) {
	r, _ := brakedRig(t, nil, 60, "a")
	result := r.Do(t.Context(), web, Plan{Stages: []Stage{EachInTurn(Delete{Of: pod("a")}, WaitFor{Of: pod("b"), Err: errors.New("not yet")})}})
	if result.Err() == nil || consistency.WasWithheld(result.Err()) != nil || result.After() <= 0 || result.After() > time.Minute {
		t.Errorf("ended with %v, look again after %s", result.Err(), result.After())
	}
}

func TestAnOptionalDeletionHoldsUpNothing(t *testing.T) {
	r, _ := brakedRig(t, nil, 60, "a")
	var results Results
	result := r.Do(t.Context(), web, observing(&results, InTurn(Delete{Of: pod("a"), Optional: true}, create("b"))))
	if result.Err() != nil || outcomes(results) != "left undone, done" {
		t.Errorf("ended with %v: %s", result.Err(), outcomes(results))
	}
}

func TestADeletionOfAllIsWeighed(t *testing.T) {
	for name, tc := range map[string]struct {
		free   time.Duration
		answer func(client.ObjectList) error // to the list that counts
		became Outcome
		did    string
	}{
		"as many as may go":        {time.Hour, andMore(2), Done, "[list 1, delete 3]"},
		"there are none":           {time.Hour, func(client.ObjectList) error { return nil }, Done, "[list 1, delete 1]"},
		"some have to wait":        {3 * time.Second, andMore(8), OnHold, "[list 1, list 500, list 500, delete c, delete d]"},
		"the rest is on its way":   {time.Hour, andMore(8), Done, "[list 1, list 500, list 500, delete c, delete d]"},
		"all have to wait":         {0, andMore(2), OnHold, "[list 1]"},
		"more than is said":        {time.Hour, func(l client.ObjectList) error { l.SetContinue("more"); return nil }, Done, "[list 1, list 500, list 500, delete c, delete d]"},
		"what cannot be counted":   {time.Hour, func(client.ObjectList) error { return forbidden }, Done, "[list 1, delete 0]"},
		"nor may it be deleted":    {0, func(client.ObjectList) error { return forbidden }, OnHold, "[list 1]"},
		"a count that fails":       {time.Hour, func(client.ObjectList) error { return apierrors.NewInternalError(errors.New("etcd")) }, Refused, "[list 1]"},
		"it is no failure to wait": {2 * time.Second, andMore(2), OnHold, "[list 1, list 500, list 500, delete c]"},
	} {
		t.Run(name, func(t *testing.T) {
			var did []string
			r, _ := brakedRig(t, func(o *Options[types.NamespacedName]) {
				o.Client = interceptor.NewClient(o.Client.(client.WithWatch), interceptor.Funcs{
					List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
						var options client.ListOptions
						did = append(did, fmt.Sprint("list ", options.ApplyOptions(opts).Limit))
						if options.Limit == somePage {
							return twoPages(list, options.Continue)
						}
						return tc.answer(list)
					},
					Delete: func(ctx context.Context, _ client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
						var options client.DeleteOptions
						did = append(did, "delete "+o.GetName())
						if p := options.ApplyOptions(opts).Preconditions; !Counted(ctx) || p == nil || *p.UID != uid {
							return fmt.Errorf("the last gate would count it once more, or it is deleted by name: %v", p)
						}
						return nil
					},
					DeleteAllOf: func(ctx context.Context, _ client.WithWatch, _ client.Object, opts ...client.DeleteAllOfOption) error {
						var options client.DeleteAllOfOptions
						did = append(did, fmt.Sprint("delete ", options.ApplyOptions(opts).ListOptions.Limit))
						if !Counted(ctx) {
							return errors.New("the last gate would count it once more")
						}
						return nil
					},
				})
			}, 60)
			r.clock.Step(tc.free)
			result := r.Take(t.Context(), web, DeleteAll{Of: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}})
			if result.Became != tc.became || (tc.became == OnHold) != (consistency.WasWithheld(result.Err) != nil) {
				t.Errorf("became %s: %v", result.Became, result.Err)
			}
			if got := "[" + strings.Join(did, ", ") + "]"; got != tc.did {
				t.Errorf("did %s, want %s", got, tc.did)
			}
		})
	}
}

const uid = types.UID("of what was listed")

// twoPages answers a list in two pages; all objects of the first are being deleted.
func twoPages(list client.ObjectList, from string) error {
	pods := []corev1.Pod{*pod("a"), *pod("b")}
	for i := range pods {
		pods[i].DeletionTimestamp = &metav1.Time{Time: noon}
	}
	list.SetContinue("2")
	if from == "2" {
		pods = []corev1.Pod{*pod("c"), *pod("d")}
		list.SetContinue("")
	}
	for i := range pods {
		pods[i].UID = uid
	}
	list.(*corev1.PodList).Items = pods
	return nil
}

// andMore answers a list with one object, and says how many more there are.
func andMore(more int64) func(client.ObjectList) error {
	return func(list client.ObjectList) error {
		list.(*corev1.PodList).Items = []corev1.Pod{*pod("a")}
		list.SetContinue("more")
		list.SetRemainingItemCount(&more)
		return nil
	}
}
