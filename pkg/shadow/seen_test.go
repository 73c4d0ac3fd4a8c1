package shadow

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// written is an object as the watch brings it: of an owner, made at that time, and written
// by these managers then.
func written(name string, at time.Time, by ...metav1.ManagedFieldsEntry) *corev1.Pod {
	p := pod(name, "1")
	p.CreationTimestamp = metav1.NewTime(at)
	p.OwnerReferences = generated("1").Object.GetOwnerReferences()
	p.ManagedFields = by
	return p
}

func entry(by, subresource string, at time.Time) metav1.ManagedFieldsEntry {
	then := metav1.NewTime(at)
	return metav1.ManagedFieldsEntry{Manager: by, Subresource: subresource, Time: &then}
}

func (w *world) sees(o any) {
	w.t.Helper()
	passedOn := false
	_, err := w.Transform(func(got any) (any, error) { passedOn = got == o; return got, nil })(o)
	if err != nil || !passedOn {
		w.t.Errorf("passed on: %t, %v", passedOn, err)
	}
}

func (w *world) sawAs(foreseen, late int) {
	w.t.Helper()
	if got := w.Report(); got.Foreseen != foreseen || got.Late != late {
		w.t.Errorf("foreseen %d, late %d; want %d, %d", got.Foreseen, got.Late, foreseen, late)
	}
}

func TestWhichWritesAreSeen(t *testing.T) {
	later := noon.Add(time.Second)
	for name, tc := range map[string]struct {
		object *corev1.Pod
		writes int
	}{
		"a pod that it made":                         {written("a", later, entry(manager, "", later)), 1},
		"one that the kubelet has reported on":       {written("a", later, entry(manager, "", later), entry("kubelet", "status", later)), 1},
		"one that it made, and reported on":          {written("a", later, entry(manager, "", later), entry(manager, "status", later)), 2},
		"one that somebody else made":                {written("a", later, entry("kubectl", "", later)), 0},
		"one that somebody made and it labelled":     {written("a", later, entry("kubectl", "", later), entry(manager, "", later)), 0},
		"one that was there before":                  {written("a", noon.Add(-time.Hour), entry(manager, "", noon.Add(-time.Hour))), 0},
		"one whose status it wrote before":           {written("a", noon.Add(-time.Hour), entry(manager, "status", noon.Add(-time.Minute))), 0},
		"one from before, whose status it wrote now": {written("a", noon.Add(-time.Hour), entry(manager, "status", later)), 1},
		"one without an owner": {func() *corev1.Pod {
			p := written("a", later, entry(manager, "", later))
			p.OwnerReferences = nil
			return p
		}(), 0},
		"one without times": {written("a", later, metav1.ManagedFieldsEntry{Manager: manager}), 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			for range 2 { // a second look, such as a list that is made again, counts nothing
				w.sees(tc.object)
			}
			w.clock.Step(soon)
			w.sawAs(0, tc.writes)
		})
	}
	w := newWorld(t)
	w.sees("no object")
	w.sees(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ManagedFields: []metav1.ManagedFieldsEntry{entry(manager, "status", later)}}})
	w.clock.Step(soon)
	w.sawAs(0, 0)
}

func TestAWriteIsForeseenByAWishNearIt(t *testing.T) {
	later := noon.Add(time.Second)
	made := func(name string) *corev1.Pod { return written(name, later, entry(manager, "", later)) }
	reports := func() *corev1.Pod { return written("a", noon.Add(-time.Hour), entry(manager, "status", later)) }
	for name, tc := range map[string]struct {
		play     func(w *world)
		foreseen int
	}{
		"a pod after the wish":          {func(w *world) { w.plans(generated("1")); w.sees(made("a")) }, 1},
		"a pod just before the wish":    {func(w *world) { w.sees(made("a")); w.clock.Step(soon / 2); w.plans(generated("1")) }, 1},
		"a pod long before the wish":    {func(w *world) { w.sees(made("a")); w.clock.Step(soon); w.Report(); w.plans(generated("1")) }, 0},
		"a pod long after the wish":     {func(w *world) { w.plans(generated("1")); w.clock.Step(window + 1); w.sees(made("a")) }, 0},
		"a pod, and a wish for another": {func(w *world) { w.plans(labelled("1", "x")); w.sees(made("a")) }, 0},
		"a status after the wish":       {func(w *world) { w.plans(reported("1", "m", noon)); w.sees(reports()) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.play(w)
			w.clock.Step(soon)
			w.sawAs(tc.foreseen, 1-tc.foreseen)
			if got := w.Report().Missed; got != 0 {
				t.Errorf("%d are missed", got)
			}
		})
	}
}

func TestWhatIsNeverForeseenIsMissed(t *testing.T) {
	for name, tc := range map[string]struct {
		times, foreseen int
		running         bool
		missed          int
	}{
		"a few":                         {enough - 1, 0, true, 0},
		"many":                          {enough, 0, true, enough},
		"more":                          {enough + 5, 0, true, enough + 5},
		"many, one of them foreseen":    {enough + 5, 1, true, 0},
		"one of what does not run here": {1, 0, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.running = tc.running
			if tc.foreseen > 0 {
				w.plans(generated("1"))
				w.sees(written("foreseen", noon.Add(time.Second), entry(manager, "", noon.Add(time.Second))))
				w.plans()
			}
			w.clock.Step(2 * window)
			w.Report() // the wish is forgotten
			for n := range tc.times {
				p := written(fmt.Sprint("late-", n), w.clock.Now(), entry(manager, "", w.clock.Now()))
				p.UID = types.UID(p.Name)
				w.sees(p)
			}
			w.clock.Step(soon)
			if got := w.Report(); got.Missed != tc.missed || tc.missed > 0 && (len(got.Differences) != 1 || got.Differences[0].What != "create Pod" || got.Differences[0].Count != tc.missed) {
				t.Errorf("reports %+v", got)
			}
		})
	}
}
