package statefulset

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
)

type podList = []*corev1.Pod

func TestPlans(t *testing.T) {
	p, fresh := newTestPod, readySince(time.Second)
	for name, tc := range map[string]struct {
		set    *appsv1.StatefulSet
		pods   podList
		claims []*corev1.PersistentVolumeClaim
		want   []string
	}{
		"nothing to do":                          {set: newSet(2), pods: podList{p(1), p(0)}},
		"an ordered set begins with its first":   {set: newSet(3), want: []string{"create web-0 at r2"}},
		"the next comes when the last is ready":  {set: newSet(3), pods: podList{p(0)}, want: []string{"create web-1 at r2"}},
		"not while the last is not ready":        {set: newSet(3), pods: podList{p(0, lost)}},
		"nor while it is pending":                {set: newSet(3), pods: podList{p(0, pending)}},
		"nor while it goes":                      {set: newSet(3), pods: podList{p(0, ending)}},
		"nor before it is available":             {set: newSet(3, minReady(10)), pods: podList{p(0, readySince(5*time.Second))}},
		"but then":                               {set: newSet(3, minReady(10)), pods: podList{p(0, readySince(10*time.Second))}, want: []string{"create web-1 at r2"}},
		"a hole is filled first":                 {set: newSet(3), pods: podList{p(0), p(2)}, want: []string{"create web-1 at r2"}},
		"a parallel set makes all":               {set: newSet(3, parallel), pods: podList{p(1, lost)}, want: []string{"create web-0 at r2", "create web-2 at r2"}},
		"side by side with its neighbor":         {set: newSet(4, parallel), want: []string{"create web-0 at r2", "create web-1 at r2; create web-2 at r2", "create web-3 at r2"}},
		"a failed pod goes":                      {set: newSet(2), pods: podList{p(0, phase(corev1.PodFailed)), p(1)}, want: []string{"delete web-0"}},
		"so does one that succeeded":             {set: newSet(2), pods: podList{p(0), p(1, phase(corev1.PodSucceeded))}, want: []string{"delete web-1"}},
		"not twice":                              {set: newSet(2), pods: podList{p(0, phase(corev1.PodFailed), ending), p(1)}},
		"of a parallel set all go":               {set: newSet(2, parallel), pods: podList{p(0, phase(corev1.PodFailed)), p(1, phase(corev1.PodFailed))}, want: []string{"delete web-0", "delete web-1"}},
		"ordinals begin where told":              {set: newSet(1, starting(5)), want: []string{"create web-5 at r2"}},
		"pods before the start go":               {set: newSet(1, starting(5)), pods: podList{p(5), p(3), p(4)}, want: []string{"delete web-4"}},
		"the highest goes first":                 {set: newSet(1), pods: podList{p(0), p(1), p(2)}, want: []string{"delete web-2"}},
		"one at a time":                          {set: newSet(1), pods: podList{p(0), p(1), p(2, ending)}},
		"none while a lower one is not well":     {set: newSet(1), pods: podList{p(0, lost), p(1)}},
		"an unwell one goes itself":              {set: newSet(1), pods: podList{p(0), p(1), p(2, lost)}, want: []string{"delete web-2"}},
		"not before the lowest that is unwell":   {set: newSet(1), pods: podList{p(0), p(1, lost), p(2, lost)}},
		"one not available yet goes itself":      {set: newSet(1, minReady(60)), pods: podList{p(0), p(1, fresh)}, want: []string{"delete web-1"}},
		"not while a lower one is not yet":       {set: newSet(1, minReady(60)), pods: podList{p(0), p(1, fresh), p(2, fresh)}},
		"nor an unwell one then":                 {set: newSet(0, minReady(60)), pods: podList{p(0, fresh), p(1, lost)}},
		"nor one not yet while a lower one goes": {set: newSet(1, minReady(60)), pods: podList{p(0), p(1, ending), p(2, fresh)}},
		"an available one does":                  {set: newSet(1, minReady(60)), pods: podList{p(0), p(1, fresh), p(2)}, want: []string{"delete web-2"}},
		"nor while a wanted one is not yet":      {set: newSet(1, minReady(60)), pods: podList{p(0, fresh), p(1)}},
		"a parallel set lets all go":             {set: newSet(1, parallel), pods: podList{p(0, lost), p(1, lost), p(2), p(3, ending)}, want: []string{"delete web-2; delete web-1"}},
		"an update begins at the highest":        {set: newSet(3), pods: podList{p(0, at("r1")), p(1, at("r1")), p(2, at("r1"))}, want: []string{"delete web-2"}},
		"and goes on when that is ready":         {set: newSet(3), pods: podList{p(0, at("r1")), p(1, at("r1")), p(2)}, want: []string{"delete web-1"}},
		"not before":                             {set: newSet(3, parallel), pods: podList{p(0, at("r1")), p(1, at("r1")), p(2, lost)}},
		"nor before it is available long enough": {set: newSet(3, parallel, minReady(10)), pods: podList{p(0, at("r1")), p(1, at("r1")), p(2, readySince(5*time.Second))}},
		"a lost index alone is not given back":   {set: newSet(1), pods: podList{p(0, func(pod *corev1.Pod) { delete(pod.Labels, appsv1.PodIndexLabel) })}},
		"an ended one goes once":                 {set: newSet(2, parallel), pods: podList{p(0), p(1, at("r1"), phase(corev1.PodFailed))}, want: []string{"delete web-1"}},
		"not while it goes":                      {set: newSet(3, parallel), pods: podList{p(0, at("r1")), p(1, at("r1")), p(2, at("r1"), ending)}},
		"an outdated one that is unwell goes":    {set: newSet(2, parallel), pods: podList{p(0, at("r1")), p(1, at("r0"), broken)}, want: []string{"delete web-1"}},
		"an ordered set waits for it":            {set: newSet(2), pods: podList{p(0, at("r1")), p(1, at("r0"), broken)}},
		"an update ends at the partition":        {set: newSet(3, partitioned(2)), pods: podList{p(0, at("r1")), p(1, at("r1")), p(2)}},
		"below it the old revision comes back":   {set: newSet(3, partitioned(2)), pods: podList{p(1, at("r1")), p(2)}, want: []string{"create web-0 at r1"}},
		"above it the new one":                   {set: newSet(3, partitioned(1)), pods: podList{p(0, at("r1")), p(2)}, want: []string{"create web-1 at r2"}},
		"the partition counts from the start":    {set: newSet(2, partitioned(1), starting(5)), want: []string{"create web-5 at r1"}},
		"nothing is replaced on delete":          {set: newSet(2, onDelete), pods: podList{p(0, at("r1")), p(1, at("r1"))}},
		"but new pods are of the new revision":   {set: newSet(2, onDelete), pods: podList{p(0, at("r1"))}, want: []string{"create web-1 at r2"}},
		"a set that goes does nothing":           {set: newSet(3, deleted), pods: podList{p(5)}},
		"strangers are left alone":               {set: newSet(0), pods: podList{{ObjectMeta: metav1.ObjectMeta{Name: "other-1", Namespace: "ns"}}}},
		"claims come before pods":                {set: newSet(1, withData), want: []string{"create web-0 at r2 claim data-web-0"}},
		"those that are there are taken":         {set: newSet(1, withData), claims: claims(newTestClaim(0)), want: []string{"create web-0 at r2"}},
		"a claim that goes blocks":               {set: newSet(1, withData), claims: claims(going(newTestClaim(0))), want: []string{"create web-0 at r2 blocked by data-web-0"}},
		"so do several":                          {set: newSet(1, withData, withMore), claims: claims(going(newTestClaim(0)), going(moreClaim(0))), want: []string{"create web-0 at r2 blocked by data-web-0 blocked by more-web-0"}},
		"a pending pod gets a lost claim again":  {set: newSet(1, withData), pods: podList{p(0, pending, mounts("data", "data-web-0"))}, want: []string{"keep web-0 claim data-web-0"}},
		"a running one does not":                 {set: newSet(1, withData), pods: podList{p(0, mounts("data", "data-web-0"))}},
		"a pod without its claim is mended":      {set: newSet(1, withData), pods: podList{p(0)}, want: []string{"repair web-0 claim data-web-0 volume data"}},
		"so is one with another's":               {set: newSet(1, withData), pods: podList{p(0, mounts("data", "data-web-1"))}, claims: claims(newTestClaim(0)), want: []string{"repair web-0 volume data"}},
		"or with it under another name":          {set: newSet(1, withData), pods: podList{p(0, mounts("other", "data-web-0"))}, claims: claims(newTestClaim(0)), want: []string{"repair web-0 volume data"}},
		"a claim is made beside one handed over": {set: newSet(1, withData, withMore, retaining(del, keeps)), pods: podList{p(0, pending)}, claims: claims(newTestClaim(0)), want: []string{"keep web-0 claim more-web-0 owner of data-web-0 set"}},
		"and beside one of another's":            {set: newSet(1, withData, withMore, retaining(del, keeps)), pods: podList{p(0, pending)}, claims: claims(others(newTestClaim(0))), want: []string{"keep web-0 claim more-web-0"}},
		"a lost name is given back":              {set: newSet(2), pods: podList{p(0, nameless), p(1)}, want: []string{"repair web-0 labels"}},
		"not while the pod is unwell":            {set: newSet(2), pods: podList{p(0, nameless, lost), p(1)}},
		"a claim goes with the set":              {set: newSet(1, withData, retaining(del, keeps)), pods: podList{p(0, mounts("data", "data-web-0"))}, claims: claims(newTestClaim(0)), want: []string{"repair web-0 owner of data-web-0 set"}},
		"a claim goes with a pod scaled away":    {set: newSet(0, withData, retaining(keeps, del)), pods: podList{p(0, mounts("data", "data-web-0"))}, claims: claims(newTestClaim(0)), want: []string{"keep web-0 owner of data-web-0 uweb-0", "delete web-0"}},
		"it is given back when it is not":        {set: newSet(1, withData, retaining(keeps, del)), pods: podList{p(0, mounts("data", "data-web-0"))}, claims: claims(newTestClaim(0, *metav1.NewControllerRef(p(0), podKind))), want: []string{"repair web-0 owner of data-web-0"}},
		"a former pod's claim is waited for":     {set: newSet(1, withData, retaining(keeps, del)), claims: claims(newTestClaim(0, *metav1.NewControllerRef(p(0), podKind)))},
		"unless claims of scaled away pods stay": {set: newSet(1, withData), claims: claims(newTestClaim(0, *metav1.NewControllerRef(p(0), podKind))), want: []string{"create web-0 at r2"}},
		"a broken pod waits without a word":      {set: newSet(3), pods: podList{p(0, at("r1")), p(1, at("r1")), p(2, at("r0"), broken)}},
		"asked for, it goes first":               {set: newSet(3, replacing), pods: podList{p(0, at("r1"), lost), p(1, at("r1")), p(2, at("r0"), broken)}, want: []string{"delete web-2"}},
		"pending counts as never ready":          {set: newSet(1, replacing), pods: podList{p(0, at("r0"), pending)}, want: []string{"delete web-0"}},
		"one that was ready stays":               {set: newSet(1, replacing), pods: podList{p(0, at("r0"), lost)}},
		"one of the wanted revision stays":       {set: newSet(1, replacing), pods: podList{p(0, broken)}},
		"one below the partition stays":          {set: newSet(2, replacing, partitioned(1)), pods: podList{p(0, at("r0"), broken)}},
		"one that goes already stays":            {set: newSet(1, replacing), pods: podList{p(0, at("r0"), broken, ending)}},
		"on delete none goes":                    {set: newSet(1, replacing, onDelete), pods: podList{p(0, at("r0"), broken)}},
	} {
		t.Run(name, func(t *testing.T) {
			same(t, told(decide(look(tc.set, tc.pods, tc.claims...), noon)), tc.want)
		})
	}
}

func TestASetOfTwoBillionPodsIsPlannedInParts(t *testing.T) {
	for name, tc := range map[string]struct {
		options []setOption
		stages  int
		steps   int
	}{
		"one by one":   {nil, 1, 1},
		"side by side": {[]setOption{parallel}, 8, mostMissing + 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := look(newSet(math.MaxInt32, tc.options...), podList{newTestPod(0), newTestPod(1_000_000)})
			p, steps := decide(o, noon), 0
			for _, stage := range p.stages {
				steps += len(stage)
			}
			same(t, []int{len(p.stages), steps}, []int{tc.stages, tc.steps})
		})
	}
}

func TestAnUpdateWaitsForPlacesThatAreNotLookedAt(t *testing.T) {
	var pods podList
	for i := 500; i < 1200; i++ {
		pods = append(pods, newTestPod(i, at("r1")))
	}
	for wanted, most := range map[int32]int{2000: 0, 1200: 1} {
		removed := 0
		for _, stage := range decide(look(newSet(wanted, parallel), pods), noon).stages {
			for _, s := range stage {
				if s.verb == remove {
					removed++
				}
			}
		}
		same(t, removed, most)
	}
}

func TestPlacesThatAreNotLookedAtAreDown(t *testing.T) {
	o := look(newSet(math.MaxInt32), podList{newTestPod(0), newTestPod(1)})
	places, _ := o.lineUp()
	same(t, unavailable(o.set, places, noon), math.MaxInt32-2)
}

func claims(c ...*corev1.PersistentVolumeClaim) []*corev1.PersistentVolumeClaim { return c }

func going(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	c.DeletionTimestamp = ptr.To(metav1.NewTime(noon))
	return c
}

func nameless(pod *corev1.Pod) { delete(pod.Labels, appsv1.StatefulSetPodNameLabel) }

func TestSeveralAtOnce(t *testing.T) {
	p := newTestPod
	most := func(v intstr.IntOrString) setOption {
		return func(set *appsv1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = &v }
	}
	old := func() podList { return podList{p(0, at("r1")), p(1, at("r1")), p(2, at("r1")), p(3, at("r1"))} }
	for name, tc := range map[string]struct {
		set  *appsv1.StatefulSet
		pods podList
		want []string
	}{
		"one when nothing is said":      {set: newSet(4, parallel), pods: old(), want: []string{"delete web-3"}},
		"one without a strategy":        {set: newSet(4, parallel, func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate = nil }), pods: old(), want: []string{"delete web-3"}},
		"as many as told":               {set: newSet(4, most(intstr.FromInt32(2))), pods: old(), want: []string{"delete web-3", "delete web-2"}},
		"percentages round down":        {set: newSet(4, most(intstr.FromString("60%"))), pods: old(), want: []string{"delete web-3", "delete web-2"}},
		"to one at least":               {set: newSet(4, most(intstr.FromString("10%"))), pods: old(), want: []string{"delete web-3"}},
		"a percentage that is none":     {set: newSet(4, most(intstr.FromString("many"))), pods: old(), want: []string{"delete web-3"}},
		"not below the partition":       {set: newSet(4, most(intstr.FromInt32(4)), partitioned(3)), pods: old(), want: []string{"delete web-3"}},
		"less those that are down":      {set: newSet(4, parallel, most(intstr.FromInt32(2))), pods: podList{p(0, at("r1")), p(1, at("r1")), p(2, at("r1")), p(3, ending)}, want: []string{"delete web-2"}},
		"none when enough are":          {set: newSet(4, parallel, most(intstr.FromInt32(2))), pods: podList{p(0, at("r1")), p(1, at("r1")), p(2, lost), p(3, lost)}},
		"one not available yet is down": {set: newSet(4, parallel, minReady(10)), pods: podList{p(0, at("r1")), p(1, at("r1")), p(2, at("r1")), p(3, readySince(time.Second))}},
		"nothing to replace":            {set: newSet(1), pods: podList{p(0)}},
	} {
		t.Run(name, func(t *testing.T) {
			o := look(tc.set, tc.pods)
			o.severalAtOnce = true
			same(t, told(decide(o, noon)), tc.want)
		})
	}
}

func TestAnUpdateIsCountedAtOnce(t *testing.T) {
	o := look(newSet(2), podList{newTestPod(0, at("r1")), newTestPod(1, at("r1"))})
	c := decide(o, noon)
	other := act.Result{Step: act.Delete{Of: newTestPod(7, at("r2"))}, Became: act.Done}
	for became, want := range map[act.Outcome]int32{act.Done: 1, act.WasGone: 1, act.Refused: 2, act.Uncertain: 2, act.OnHold: 2} {
		set := newSet(2)
		repaired := act.Result{Step: act.Patch{Of: c.leaving[0]}, Became: act.Done}
		o.report(c, act.Results{other, repaired, {Step: act.Delete{Of: c.leaving[0]}, Became: became}}).(act.Status).Set(set)
		if got := set.Status; got.CurrentReplicas != want || got.Replicas != 2 {
			t.Errorf("a deletion that is %s: %+v", became, got)
		}
	}
}

// TestABrokenPodThatGoesIsCounted has the first template of a set broken, and mended: without
// a partition the number of current pods says whether the broken one is made again.
func TestABrokenPodThatGoesIsCounted(t *testing.T) {
	set := newSet(1, replacing, unbounded)
	set.Status.CurrentReplicas = 1
	o := look(set, podList{newTestPod(0, at("r1"), pending)})
	c := decide(o, noon)
	if planned := told(c); !slices.Equal(planned, []string{"delete web-0"}) {
		t.Fatalf("it plans %q", planned)
	}
	after := set.DeepCopy()
	o.report(c, act.Results{{Step: act.Delete{Of: o.pods[0]}, Became: act.Done}}).(act.Status).Set(after)
	if got := look(after, nil).wantedRevision(0).name; got != "r2" {
		t.Errorf("the next one is made at %s", got)
	}
}

// TestAnUpdateDuringAnUpdateIsCounted holds that only pods of the current revision are
// taken off its number.
func TestAnUpdateDuringAnUpdateIsCounted(t *testing.T) {
	o := look(newSet(2, partitioned(1)), podList{newTestPod(0, at("r1")), newTestPod(1, at("r0"))})
	c := decide(o, noon)
	if planned := told(c); !slices.Equal(planned, []string{"delete web-1"}) {
		t.Fatalf("the update plans %q", planned)
	}
	set := newSet(2)
	o.report(c, act.Results{{Step: act.Delete{Of: o.pods[1]}, Became: act.Done}}).(act.Status).Set(set)
	if set.Status.CurrentReplicas != 1 {
		t.Errorf("%+v", set.Status)
	}
}

// whole is what is observed of a set whose pods are all its own, and whose history
// has its revision.
func whole(set *appsv1.StatefulSet, pods podList, latest string) observed {
	history := []*appsv1.ControllerRevision{{ObjectMeta: metav1.ObjectMeta{Name: latest}}}
	set.Status.ObservedGeneration, set.Status.UpdateRevision, set.Status.CurrentRevision = set.Generation, latest, latest
	return observed{set: set, revisions: ownership.Claims[*appsv1.ControllerRevision]{Owned: history}, members: ownership.Claims[*corev1.Pod]{Owned: pods}}
}

func TestThePlanSaysWhy(t *testing.T) {
	p := newTestPod
	for name, tc := range map[string]struct {
		set  *appsv1.StatefulSet
		pods podList
		why  string
	}{
		"all is well":              {newSet(2), podList{p(0), p(1)}, "2 pods available of 2 wanted, 2 at revision r2: complete"},
		"none is wanted":           {newSet(0), nil, "0 pods available of 0 wanted, 0 at revision r2: complete"},
		"up to the partition":      {newSet(2, partitioned(1)), podList{p(0, at("r1")), p(1)}, "2 pods available of 2 wanted, 1 at revision r2: complete"},
		"one comes":                {newSet(2), podList{p(0)}, "1 pods available of 2 wanted, 1 at revision r2: web-1 is missing"},
		"one is waited for":        {newSet(2), podList{p(0, lost)}, "0 pods available of 2 wanted, 1 at revision r2: web-0 is not ready"},
		"some are, side by side":   {newSet(3, parallel), podList{p(0), p(1, lost), p(2, pending)}, "1 pods available of 3 wanted, 3 at revision r2: waiting for 2 to become available"},
		"one goes":                 {newSet(1), podList{p(0), p(1)}, "2 pods available of 1 wanted, 2 at revision r2: web-1 is not wanted any more"},
		"some go":                  {newSet(1, parallel), podList{p(0), p(1, ending)}, "2 pods available of 1 wanted, 1 at revision r2: waiting for 1 to terminate"},
		"much is done at once":     {newSet(3, parallel), podList{p(0, nameless), p(3)}, "2 pods available of 3 wanted, 2 at revision r2: creating, deleting or repairing pods in parallel"},
		"an update":                {newSet(2), podList{p(0, at("r1")), p(1, at("r1"))}, "2 pods available of 2 wanted, 0 at revision r2: update replaces 1, first web-1"},
		"old pods are kept":        {newSet(2, onDelete), podList{p(0), p(1, at("r1"))}, "2 pods available of 2 wanted, 1 at revision r2: 1 keep another revision until they are deleted"},
		"until none is left":       {newSet(2, onDelete), podList{p(0), p(1)}, "2 pods available of 2 wanted, 2 at revision r2: complete"},
		"the set is being removed": {newSet(2, deleted), podList{p(0)}, "being deleted: its pods belong to the garbage collector"},
	} {
		t.Run(name, func(t *testing.T) {
			same(t, plan(whole(tc.set, tc.pods, "r2"), noon).Why, tc.why)
		})
	}
}

// TestAnOrderedSetLooksAtOnce holds that the pod which an ordered set waits for does
// not wait for the set.
func TestAnOrderedSetLooksAtOnce(t *testing.T) {
	for policy, prompt := range map[appsv1.PodManagementPolicyType]bool{appsv1.OrderedReadyPodManagement: true, appsv1.ParallelPodManagement: false} {
		set := newSet(2)
		set.Spec.PodManagementPolicy = policy
		if p := plan(whole(set, podList{newTestPod(0, lost), newTestPod(1, lost)}, "r2"), noon); len(p.Stages) > 0 || p.Prompt != prompt {
			t.Errorf("%s: at once: %t, stages %v", policy, p.Prompt, p.Stages)
		}
	}
}

func TestGaugesShowHowFarAnUpdateGoes(t *testing.T) {
	pod := act.Result{Step: act.Delete{Of: newTestPod(0)}, Err: errors.New("no")}
	status := act.Result{Step: act.Status{Of: newSet(1)}, Err: errors.New("no")}
	for name, tc := range map[string]struct {
		gated   bool
		results act.Results
		want    []float64
	}{
		"without the gate":     {},
		"all is carried out":   {gated: true, want: []float64{1, 2}},
		"the report fails":     {gated: true, results: act.Results{status}, want: []float64{1, 2}},
		"a pod is not deleted": {gated: true, results: act.Results{pod}},
	} {
		t.Run(name, func(t *testing.T) {
			o := whole(newSet(3), podList{newTestPod(0), newTestPod(1, lost)}, "r2")
			o.severalAtOnce = tc.gated
			var got []float64
			for _, count := range plan(o, noon).Counts(tc.results) {
				got = append(got, count.Value)
			}
			same(t, got, tc.want)
		})
	}
}
