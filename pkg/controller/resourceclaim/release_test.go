package resourceclaim

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

func TestWhoIsOver(t *testing.T) {
	for name, tc := range map[string]struct {
		uid        types.UID
		pod        *corev1.Pod // in the cache
		live       *corev1.Pod
		deleted    bool
		over, asks bool
	}{
		"one that runs":                            {pod: on(pod(), "n")},
		"one that has no node yet":                 {pod: pod()},
		"one that has succeeded":                   {pod: phase(on(pod(), "n"), corev1.PodSucceeded), over: true},
		"one that has failed":                      {pod: phase(on(pod(), "n"), corev1.PodFailed), over: true},
		"one that is being deleted and may run":    {pod: leaving(on(pod(), "n"))},
		"one that is being deleted and never ran":  {pod: leaving(pod()), over: true},
		"one that was seen to be deleted":          {deleted: true, over: true},
		"one whose successor is there":             {deleted: true, pod: uid(pod(), "new"), over: true},
		"one that nobody has seen, and is not":     {over: true, asks: true},
		"one that nobody has seen, and is another": {live: uid(pod(), "new"), over: true, asks: true},
		"one that nobody has seen, and is there":   {live: pod(), asks: true},
		"one that is found ended":                  {live: phase(pod(), corev1.PodSucceeded), asks: true},
		"one that the cache shows an earlier of":   {pod: uid(pod(), "old"), live: pod(), asks: true},
		"one that was replaced unseen":             {pod: uid(pod(), "new"), live: uid(pod(), "new"), over: true, asks: true},
	} {
		t.Run(name, func(t *testing.T) {
			var live []runtime.Object
			if tc.live != nil {
				live = append(live, tc.live)
			}
			rig, c := rigged(t, false, live...)
			if tc.pod != nil {
				rig.Cache(t, tc.pod)
			}
			if tc.deleted {
				c.deleted.Add(types.UID("web-uid"), nil)
			}
			seen, err := c.see(t.Context(), podKind, "team", "web", "web-uid")
			if err != nil || seen.over() != tc.over {
				t.Errorf("over: %t, %v", seen.over(), err)
			}
			if asked := rig.Requests() == "get pods"; asked != tc.asks {
				t.Errorf("asks %q", rig.Requests())
			}
		})
	}
}

func TestWhatBecomesOfAClaim(t *testing.T) {
	ended := func() *corev1.Pod { return phase(on(pod(), "n"), corev1.PodSucceeded) }
	const dealloc, freed, removed = "status a allocated=false", "update a []", "delete a"
	for name, tc := range map[string]struct {
		claim        *resourceapi.ResourceClaim
		cached, live []runtime.Object
		want         string
	}{
		"it stays for a pod that runs":      {claim: reserved(allocated(claim("a")), webRef), cached: []runtime.Object{on(pod(), "n")}},
		"one of two goes":                   {claim: reserved(allocated(claim("a")), webRef, podRef("gone", "g")), cached: []runtime.Object{on(pod(), "n")}, want: "status a allocated=true web-uid"},
		"the last one goes":                 {claim: reserved(allocated(claim("a")), webRef), cached: []runtime.Object{ended()}, want: dealloc + ", " + freed},
		"all of them go":                    {claim: reserved(allocated(claim("a")), webRef, podRef("gone", "g")), cached: []runtime.Object{ended()}, want: dealloc + ", " + freed},
		"without the finalizer":             {claim: reserved(bare(allocated(claim("a"))), webRef), cached: []runtime.Object{ended()}, want: "status a allocated=true"},
		"unknown consumers stay":            {claim: reserved(allocated(claim("a")), foreign), cached: []runtime.Object{ended()}},
		"unknown ones beside one that goes": {claim: reserved(allocated(claim("a")), foreign, webRef), cached: []runtime.Object{ended()}, want: "status a allocated=true thing-uid"},
		"groups are unknown without a gate": {claim: reserved(allocated(claim("a")), gangRef)},
		"a pod that never was":              {claim: reserved(allocated(claim("a")), webRef), want: dealloc + ", " + freed},
		"a pod that only lives":             {claim: reserved(allocated(claim("a")), webRef), live: []runtime.Object{pod()}},
		"deleted, allocated, no consumer":   {claim: leaving(allocated(claim("a"))), want: dealloc + ", " + freed},
		"deleted, with the finalizer only":  {claim: leaving(func() *resourceapi.ResourceClaim { c := allocated(claim("a")); c.Status.Allocation = nil; return c }()), want: freed},
		"deleted, with a consumer":          {claim: leaving(reserved(allocated(claim("a")), webRef)), cached: []runtime.Object{on(pod(), "n")}},
		"deleted, without the finalizer":    {claim: leaving(claim("a"))},
		"deleted, its consumer goes":        {claim: leaving(reserved(allocated(claim("a")), webRef)), cached: []runtime.Object{ended()}, want: dealloc + ", " + freed},
		"allocated and unused":              {claim: allocated(claim("a"))},
		"unused, of a pod that runs":        {claim: allocated(owned(claim("a"), "web-uid")), cached: []runtime.Object{on(pod(), "n")}},
		"unused, of a pod that waits":       {claim: owned(claim("a"), "web-uid"), cached: []runtime.Object{pod()}},
		"of a pod that has ended":           {claim: owned(claim("a"), "web-uid"), cached: []runtime.Object{ended()}, want: removed},
		"of a pod that will not run":        {claim: owned(claim("a"), "web-uid"), cached: []runtime.Object{leaving(pod())}, want: removed},
		"of a pod that leaves and may run":  {claim: owned(claim("a"), "web-uid"), cached: []runtime.Object{leaving(on(pod(), "n"))}},
		"of an earlier pod":                 {claim: owned(claim("a"), "old"), cached: []runtime.Object{on(pod(), "n")}, live: []runtime.Object{on(pod(), "n")}, want: removed},
		"of a pod that only lives":          {claim: owned(claim("a"), "new"), cached: []runtime.Object{on(pod(), "n")}, live: []runtime.Object{uid(pod(), "new")}},
		"of a pod that is gone":             {claim: owned(claim("a"), "web-uid")},
		"allocated, unused, its pod ended":  {claim: allocated(owned(claim("a"), "web-uid")), cached: []runtime.Object{ended()}, want: removed},
		"used and owned, the pod has ended": {claim: reserved(allocated(owned(claim("a"), "web-uid")), webRef), cached: []runtime.Object{ended()}, want: dealloc + ", " + freed + ", " + removed},
		"its pod ended, others need it":     {claim: reserved(allocated(owned(claim("a"), "web-uid")), webRef, foreign), cached: []runtime.Object{ended()}, want: "status a allocated=true thing-uid"},
		"without finalizer, its pod ended":  {claim: reserved(owned(claim("a"), "web-uid"), webRef), cached: []runtime.Object{ended()}, want: "status a allocated=false, " + removed},
		"leaving, its pod ended":            {claim: leaving(owned(claim("a"), "web-uid")), cached: []runtime.Object{ended()}},
		"owned by a workload": {claim: func() *resourceapi.ResourceClaim {
			c := owned(claim("a"), "web-uid")
			c.OwnerReferences[0].Kind = "Job"
			return c
		}(), cached: []runtime.Object{ended()}},
		"a pod owns it, and controls it not": {claim: func() *resourceapi.ResourceClaim {
			c := owned(claim("a"), "web-uid")
			c.OwnerReferences[0].Controller = nil
			return c
		}(), cached: []runtime.Object{ended()}},
	} {
		t.Run(name, func(t *testing.T) {
			rig, c := rigged(t, false, tc.live...)
			rig.Cache(t, append(tc.cached, tc.claim)...)
			before := tc.claim.DeepCopy()
			got, why, err := planned(t, c, keyOf(ofClaim, "team", "a"))
			if got != tc.want || err != nil || why == "" {
				t.Errorf("does %q because %q, %v", got, why, err)
			}
			if diff := cmp.Diff(before, tc.claim); diff != "" {
				t.Errorf("what is cached was changed: %s", diff)
			}
		})
	}
}

// One that goes before the cache has it wakes nobody.
func TestAConsumerThatOnlyLivesIsLookedForAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		claim        *resourceapi.ResourceClaim
		cached, live []runtime.Object
		again        time.Duration
	}{
		"a pod that only lives":         {claim: reserved(allocated(claim("a")), webRef), live: []runtime.Object{pod()}, again: time.Minute},
		"one that replaced an earlier":  {claim: reserved(allocated(claim("a")), webRef), cached: []runtime.Object{uid(pod(), "old")}, live: []runtime.Object{pod()}, again: time.Minute},
		"a group that only lives":       {claim: reserved(allocated(claim("a")), gangRef), live: []runtime.Object{gang()}, again: time.Minute},
		"one beside one that is cached": {claim: reserved(allocated(claim("a")), webRef, gangRef), cached: []runtime.Object{on(pod(), "n")}, live: []runtime.Object{gang()}, again: time.Minute},
		"a pod that is cached":          {claim: reserved(allocated(claim("a")), webRef), cached: []runtime.Object{on(pod(), "n")}},
		"one of a kind nobody knows":    {claim: reserved(allocated(claim("a")), foreign)},
	} {
		t.Run(name, func(t *testing.T) {
			rig, c := rigged(t, true, tc.live...)
			rig.Cache(t, append(tc.cached, tc.claim)...)
			if result := c.Reconcile(t.Context(), keyOf(ofClaim, "team", "a")); result.After() != tc.again || result.Err() != nil {
				t.Errorf("looks again after %s, %v", result.After(), result.Err())
			}
		})
	}
}

func TestItSaysHowManyOfTheConsumersHaveEnded(t *testing.T) {
	rig, c := rigged(t, false)
	rig.Cache(t, on(pod(), "n"), reserved(allocated(claim("a")), webRef, foreign, podRef("gone", "g")))
	if _, why, err := planned(t, c, keyOf(ofClaim, "team", "a")); why != "1 of 3 consumers have ended: removing them" || err != nil {
		t.Errorf("says %q, %v", why, err)
	}
}

func TestConsumersThatArePodGroups(t *testing.T) {
	for name, tc := range map[string]struct {
		cached, live []runtime.Object
		want         string
	}{
		"one that is there":                 {cached: []runtime.Object{gang()}},
		"one that only lives":               {live: []runtime.Object{gang()}},
		"one that is gone":                  {want: `status a allocated=false, update a []`},
		"one whose successor is there":      {cached: []runtime.Object{uid(gang(), "new")}, live: []runtime.Object{uid(gang(), "new")}, want: `status a allocated=false, update a []`},
		"one whose pods have ended is kept": {cached: []runtime.Object{gang(), phase(member(pod()), corev1.PodSucceeded)}},
	} {
		t.Run(name, func(t *testing.T) {
			rig, c := rigged(t, true, tc.live...)
			rig.Cache(t, append(tc.cached, reserved(allocated(claim("a")), gangRef))...)
			if got, _, err := planned(t, c, keyOf(ofClaim, "team", "a")); got != tc.want || err != nil {
				t.Errorf("does %q, %v", got, err)
			}
		})
	}
}

func TestAFailedReadProvesNothing(t *testing.T) {
	for name, objects := range map[string][]runtime.Object{
		"of a consumer":       {reserved(allocated(claim("a")), webRef)},
		"of the owner":        {owned(claim("a"), "old"), pod()},
		"of a recorded claim": {recording(pod("gpu"), "gpu", "b"), template("gpu")},
	} {
		t.Run(name, func(t *testing.T) {
			rig, c := rigged(t, false)
			away := apierrors.NewInternalError(errors.New("away"))
			rig.Fail("get", "pods", away)
			rig.Fail("get", "resourceclaims", away)
			rig.Cache(t, objects...)
			k := keyOf(ofClaim, "team", "a")
			if name == "of a recorded claim" {
				k = keyOf(ofPod, "team", "web")
			}
			if err := c.Reconcile(t.Context(), k).Err(); err == nil || !errors.Is(err, away) {
				t.Errorf("got %v", err)
			}
		})
	}
}
