package persistentvolumeclaimprotection

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func TestPlan(t *testing.T) {
	const update, list = "update PersistentVolumeClaim data", "list Pod"
	user := []*corev1.Pod{pod("p", naming("data"))}
	for name, tc := range map[string]struct {
		observed
		want, why string
	}{
		"a claim without it is protected":     {observed{claim: claim("data")}, update, "it is not protected yet"},
		"a protected one is left alone":       {observed{claim: claim("data", Finalizer)}, "", "it is protected and nobody deletes it"},
		"one in use is held":                  {observed{claim: leavingClaim("data"), pods: user}, "", "it stays while pod p uses it"},
		"one that no cache shows in use":      {observed{claim: leavingClaim("data")}, list, "no pod in the cache uses it: listing the pods live"},
		"one that a list has shown unused":    {observed{claim: leavingClaim("data"), waited: true}, update, "nothing uses it"},
		"one that a list has shown in use":    {observed{claim: leavingClaim("data"), waited: true, live: user}, "", "it stays while pod p uses it"},
		"the cache counts before such a list": {observed{claim: leavingClaim("data"), waited: true, pods: user}, "", "it stays while pod p uses it"},
		"a live one needs no list":            {observed{claim: claim("data"), pods: user}, update, "it is not protected yet"},
		"with the gate: it goes like any":     {observed{claim: leavingClaim("data"), unused: true}, list, "no pod in the cache uses it: listing the pods live"},
		"with the gate: first it says so":     {observed{claim: claim("data"), unused: true}, "report PersistentVolumeClaim data", "no pod refers to it"},
		"with the gate: who refers to it":     {observed{claim: claim("data", Finalizer), pods: user, unused: true}, "report PersistentVolumeClaim data", "pod p refers to it"},
		"with the gate: what has changed":     {observed{claim: says(claim("data", Finalizer), "p"), unused: true}, "report PersistentVolumeClaim data", "no pod refers to it"},
		"with the gate: it says so already":   {observed{claim: says(claim("data", Finalizer), "p"), pods: user, unused: true}, "", "it is protected and nobody deletes it"},
		"with the gate: another reason":       {observed{claim: worded(claim("data", Finalizer), func(c *corev1.PersistentVolumeClaimCondition) { c.Reason = "Other" }), unused: true}, "report PersistentVolumeClaim data", "no pod refers to it"},
		"with the gate: other words":          {observed{claim: worded(claim("data", Finalizer), func(c *corev1.PersistentVolumeClaimCondition) { c.Message = "Other" }), unused: true}, "report PersistentVolumeClaim data", "no pod refers to it"},
		"with the gate: only the finalizer":   {observed{claim: says(claim("data"), ""), unused: true}, update, "it is not protected yet"},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.claim.DeepCopy()
			p := plan(tc.observed, noon)
			if fixture.Planned(p) != tc.want || p.Why != tc.why {
				t.Errorf("wants %q because %q", fixture.Planned(p), p.Why)
			}
			if byList := tc.waited && len(tc.live) > 0 && len(tc.pods) == 0; (p.RequeueAfter == sharedAgain) != byList {
				t.Errorf("looked at again after %s", p.RequeueAfter)
			}
			if diff := cmp.Diff(before, tc.claim); diff != "" {
				t.Errorf("the cached claim was changed: %s", diff)
			}
		})
	}
}

// pages is what a list keeps of pods that come in pages of one.
func pages(pods ...*corev1.Pod) act.Results {
	var kept any = keep(nil, &corev1.PodList{})
	for _, p := range pods {
		kept = keep(kept, &corev1.PodList{Items: []corev1.Pod{*p}})
	}
	return act.Results{{Step: act.List{}, Became: act.Done, Kept: kept, At: noon}}
}

func TestWhatALiveListDecides(t *testing.T) {
	own := pod("web", scratch("tmp"))
	for name, tc := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		live  act.Results
		want  string
		again time.Duration
	}{
		"no pods":                           {leavingClaim("data"), pages(), "update PersistentVolumeClaim data", 0},
		"pods that use others":              {leavingClaim("data"), pages(pod("p", naming("other")), pod("q")), "update PersistentVolumeClaim data", 0},
		"a pod without a node":              {leavingClaim("data"), pages(unscheduled(pod("p", naming("data")))), "update PersistentVolumeClaim data", 0},
		"a pod of a later page":             {leavingClaim("data"), pages(pod("p", naming("other")), pod("q", naming("other"), naming("data"))), "", untilCached},
		"a pod that has ended":              {leavingClaim("data"), pages(ended(pod("p", naming("data")), corev1.PodFailed)), "", untilCached},
		"the owner of an ephemeral claim":   {ownedBy(leavingClaim("web-tmp"), own), pages(own), "", untilCached},
		"the owner that was forced to end":  {ownedBy(leavingClaim("web-tmp"), own), pages(deleted(own.DeepCopy(), 0)), "update PersistentVolumeClaim web-tmp", 0},
		"another pod with the owner's name": {ownedBy(leavingClaim("web-tmp"), own), pages(renewed(own.DeepCopy())), "update PersistentVolumeClaim web-tmp", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(observed{claim: tc.claim}, noon).Then(tc.live)
			if fixture.Planned(p) != tc.want || p.RequeueAfter != tc.again {
				t.Errorf("wants %q because %q, again after %s", fixture.Planned(p), p.Why, p.RequeueAfter)
			}
			for _, stage := range p.Stages {
				if got := stage.Steps[0].(act.Update).Object.GetFinalizers(); !cmp.Equal(got, []string{"a", "b"}) {
					t.Errorf("leaves finalizers %v", got)
				}
			}
		})
	}
}

func TestAListServesThoseThatWaitedForIt(t *testing.T) {
	data, other, late := leavingClaim("data"), leavingClaim("other"), leavingClaim("late")
	o := observed{claim: data, waiting: sets.New(data.UID, other.UID)}
	p := plan(o, noon)
	l, is := p.Note(pages(pod("p", naming("other")), pod("q", naming("late")))).(*listing)
	if !is {
		t.Fatal("nothing was noted")
	}
	for name, tc := range map[string]struct {
		claim  *corev1.PersistentVolumeClaim
		after  time.Duration
		waited bool
	}{
		"the one that it was made for has had it": {data, 0, false},
		"one that came later":                     {late, 0, false},
		"another one of the name":                 {&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "other", UID: "new"}}, 0, false},
		"one that waited":                         {other, shared, true},
		"not when it is old":                      {other, shared + 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := &listing{l.users, l.at, l.waiting.Clone()}
			live, waited := l.take(tc.claim, noon.Add(tc.after))
			if waited != tc.waited || waited && holder(tc.claim, live) != "p" {
				t.Errorf("waited: %v, with %v", waited, live)
			}
			if _, again := l.take(tc.claim, noon); waited && again {
				t.Error("it served twice")
			}
		})
	}
	if note := p.Note(act.Results{{Step: act.List{}, Became: act.Refused, Err: errors.New("no")}}); note != nil {
		t.Errorf("noted %v of a list that failed", note)
	}
	o.waiting = sets.New[types.UID](data.UID)
	if note := plan(o, noon).Note(pages()); note != nil {
		t.Errorf("noted %v that nobody waits for", note)
	}
	if _, waited := (*listing)(nil).take(data, noon); waited {
		t.Error("there is no list yet")
	}
}

func TestTheConditionUnused(t *testing.T) {
	type conditions = []corev1.PersistentVolumeClaimCondition
	fresh := metav1.NewTime(noon)
	resizing := corev1.PersistentVolumeClaimCondition{Type: corev1.PersistentVolumeClaimResizing, Status: corev1.ConditionTrue}
	nobody := corev1.PersistentVolumeClaimCondition{
		Type: "Unused", Status: "True", Reason: "NoPodsUsingPVC", Message: "No pods are currently referencing this PVC", LastTransitionTime: fresh}
	somebody := corev1.PersistentVolumeClaimCondition{
		Type: "Unused", Status: "False", Reason: "PodUsingPVC", Message: "A pod is currently referencing this PVC", LastTransitionTime: fresh}
	for name, tc := range map[string]struct {
		has  conditions
		user string
		want conditions
	}{
		"nobody":                       {conditions{resizing}, "", conditions{resizing, nobody}},
		"somebody, in place of nobody": {conditions{resizing, nobody}, "p", conditions{resizing, somebody}},
		"in the first place too":       {conditions{nobody, resizing}, "p", conditions{somebody, resizing}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := claim("data")
			claim.Status.Conditions = tc.has
			p := report(claim, tc.user, noon)
			written := claim.DeepCopy()
			p.Stages[0].Steps[0].(act.Status).Set(written)
			if diff := cmp.Diff(tc.want, written.Status.Conditions); diff != "" {
				t.Error(diff)
			}
			written.ResourceVersion = "8"
			next := p.Then(act.Results{{Step: p.Stages[0].Steps[0], Became: act.Done, Object: written}})
			if update := next.Stages[0].Steps[0].(act.Update).Object; update.GetResourceVersion() != "8" || len(update.GetFinalizers()) != 1 {
				t.Errorf("then puts version %s with %v", update.GetResourceVersion(), update.GetFinalizers())
			}
			if gone := p.Then(act.Results{{Became: act.WasGone}}); len(gone.Stages) > 0 {
				t.Error("protects a claim that is gone")
			}
		})
	}
}
