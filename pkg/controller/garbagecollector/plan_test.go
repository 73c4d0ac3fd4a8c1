package garbagecollector

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func TestPlan(t *testing.T) {
	now := metav1.Now()
	live := location{boxes.resource, "a", "o"}.object("o")
	live.ResourceVersion, live.DeletionTimestamp = "7", &now
	live.OwnerReferences = []metav1.OwnerReference{blocking(metav1.OwnerReference{UID: "x"})}
	seen, waits := view{kind: boxes, namespace: "a", name: "o", uid: "o"}, view{kind: boxes, uid: "o", state: state{terminating: true, foreground: true}}
	held, cycle, doubted, leaving, asked := waits, waits, seen, seen, seen
	held.blocking = 2
	cycle.blocking, cycle.cycle = 1, true
	doubted.doubtful = []metav1.OwnerReference{{UID: "x"}}
	leaving.state.terminating, asked.asked = true, true
	leaving.doubtful, asked.doubtful = doubted.doubtful, doubted.doubtful
	for name, tc := range map[string]struct {
		plan       act.Plan
		wants, why string
		again      time.Duration
		err        error
	}{
		"an owner that is not there":           {plan(observed{missed: true}), "", "it is not where the references of its dependents point: checking the dependents", 0, nil},
		"an owner that is there":               {plan(observed{found: true, view: view{looks: 3}}), "", "it exists, and its watch has not shown it yet, after 3 looks", 8 * time.Second, nil},
		"an owner that nobody can look for":    {plan(observed{}), "", errUnresolvable.Error(), 0, nil},
		"an owner that nothing is known about": {plan(observed{missed: true, err: errBroken}), "", "it is not known whether it exists", 0, errBroken},
		"nothing is doubtful":                  {plan(observed{view: seen}), "", "its owners are there", 0, nil},
		"it is on its way out":                 {plan(observed{view: leaving}), "", "it is being deleted", 0, nil},
		"its deletion was asked for":           {plan(observed{view: asked}), "", "it is being deleted", 0, nil},
		"its owners are not known":             {plan(observed{view: doubted, err: errBroken}), "", "it is not known whether its owners still exist", 0, errBroken},
		"its owners cannot be found":           {plan(observed{view: doubted, err: errUnresolvable}), "", errUnresolvable.Error(), 0, nil},
		"it is gone":                           {plan(observed{view: doubted, err: errAbsent}), "", "it is gone; waiting for the watch to show it", again, nil},
		"it is on its way out, as it was read": {plan(observed{view: doubted, live: live}), "", "it is being deleted; waiting for the watch to show it", 0, nil},
		"dependents hold it up":                {plan(observed{view: held}), "", "2 dependents block its deletion", 0, nil},
		"none does":                            {plan(observed{view: waits, live: live}), "patch PartialObjectMetadata o", "no dependent blocks its deletion: removing its finalizer", 0, nil},
		"it holds itself up": {plan(observed{view: cycle, live: live}),
			"patch PartialObjectMetadata o " + string(unblocked(live)), "it is part of a cycle: it no longer blocks its owners", 0, nil},
		"it waits, and cannot be read": {plan(observed{view: waits, err: errBroken}), "", "it could not be read", 0, errBroken},
		"a dependent may still be there": {planParted(observed{view: seen, shown: 1, unread: errBroken}), "",
			"1 dependents are said to be gone, but their watch shows them", 0, errShown},
		"a kind cannot be read":     {planParted(observed{view: seen, unread: errBroken}), "", "it may have dependents that are not known", 0, errBroken},
		"more dependents have come": {planParted(observed{view: seen, more: true}), "", "more dependents have appeared since: planning again", time.Millisecond, nil},
		"all are parted":            {planParted(observed{view: seen, live: live}), "patch PartialObjectMetadata o", "its dependents no longer refer to it: removing its finalizer", 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := tc.plan
			if got := fixture.Planned(p); got != tc.wants || p.Why != tc.why || p.RequeueAfter != tc.again || !errors.Is(p.Err, tc.err) || (p.Err == nil) != (tc.err == nil) {
				t.Errorf("plans %q because %q, again after %v, %v", got, p.Why, p.RequeueAfter, p.Err)
			}
		})
	}
}
