package statefulset

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/rejections"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

// refused is a pod that was made so long ago and that its node rejected.
func refused(ago time.Duration) podOption {
	return func(pod *corev1.Pod) {
		pod.CreationTimestamp = metav1.NewTime(noon.Add(-ago))
		pod.Spec.NodeName = "n"
		pod.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu"}
	}
}

// following is a pod that carries since when those before it were rejected.
func following(ago time.Duration) podOption {
	return func(pod *corev1.Pod) { rejections.MarkSince(pod, noon.Add(-ago)) }
}

// rejectedFor is a set whose condition tells of rejected pods.
func rejectedFor(ago time.Duration) setOption {
	return func(set *appsv1.StatefulSet) {
		set.Status.Conditions = []appsv1.StatefulSetCondition{{Type: "Other"},
			{Type: rejections.Condition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(noon.Add(-ago)), Message: "before"}}
	}
}

func TestRejectedPods(t *testing.T) {
	const s = time.Second
	const toldNow = "nodes reject the pods (1 now; web-0 with reason OutOfcpu); the next pod is created at "
	p := newTestPod
	for name, tc := range map[string]struct {
		set  *appsv1.StatefulSet
		pods podList
		off  bool
		want []string
		look time.Duration
		told string // the message of the condition
	}{
		"without the flag they go at once":            {set: newSet(2), pods: podList{p(0, refused(0))}, off: true, want: []string{"delete web-0"}},
		"the condition is for the flag alone":         {set: newSet(1, rejectedFor(s)), pods: podList{p(0)}, off: true},
		"the first is told of":                        {set: newSet(2), pods: podList{p(0, refused(0))}, told: toldNow + "2026-05-04T12:00:00Z"},
		"and goes at once then":                       {set: newSet(2, rejectedFor(0)), pods: podList{p(0, refused(s))}, want: []string{"delete web-0"}, told: toldNow + "2026-05-04T11:59:59Z"},
		"the next carries on since when":              {set: newSet(2, rejectedFor(s)), want: []string{"create web-0 at r2 since 1s"}, told: "before"},
		"the second waits":                            {set: newSet(2, rejectedFor(5*s)), pods: podList{p(0, refused(4*s), following(5*s))}, look: 6 * s, told: toldNow + "2026-05-04T12:00:06Z"},
		"or until another is available":               {set: newSet(2, parallel, minReady(10), rejectedFor(5*s)), pods: podList{p(0, refused(4*s), following(5*s)), p(1, readySince(8*s))}, look: 2 * s, told: toldNow + "2026-05-04T12:00:06Z"},
		"but not for one that is later":               {set: newSet(2, parallel, minReady(10), rejectedFor(5*s)), pods: podList{p(0, refused(4*s), following(5*s)), p(1, readySince(s))}, look: 6 * s, told: toldNow + "2026-05-04T12:00:06Z"},
		"until it is due":                             {set: newSet(2, rejectedFor(15*s)), pods: podList{p(0, refused(10*s), following(15*s))}, want: []string{"delete web-0"}, told: toldNow + "2026-05-04T12:00:00Z"},
		"the third waits for longer":                  {set: newSet(2, rejectedFor(15*s)), pods: podList{p(0, refused(4*s), following(15*s))}, look: 16 * s, told: toldNow + "2026-05-04T12:00:16Z"},
		"a pod that ran and failed does not":          {set: newSet(1, rejectedFor(5*s)), pods: podList{p(0, phase(corev1.PodFailed), following(5*s))}, want: []string{"delete web-0"}},
		"nor one of another revision":                 {set: newSet(1, rejectedFor(5*s)), pods: podList{p(0, refused(0), following(5*s), at("r1"))}, want: []string{"delete web-0"}, told: toldNow + "2026-05-04T12:00:00Z"},
		"nor one that is not wanted":                  {set: newSet(0, rejectedFor(5*s)), pods: podList{p(0, refused(0), following(5*s))}, want: []string{"delete web-0"}},
		"one that is on its way out waits":            {set: newSet(1, rejectedFor(5*s)), pods: podList{p(0, refused(0), following(5*s), ending)}, told: "before"},
		"the condition stays while a try is made":     {set: newSet(1, rejectedFor(5*s)), pods: podList{p(0, pending, following(5*s))}, told: "before"},
		"and goes when that is accepted":              {set: newSet(1, rejectedFor(5*s)), pods: podList{p(0, following(5*s))}},
		"also when others are missing still":          {set: newSet(2, rejectedFor(5*s)), pods: podList{p(0, following(5*s))}, want: []string{"create web-1 at r2"}},
		"not for one that was accepted before":        {set: newSet(2, rejectedFor(5*s)), pods: podList{p(0, following(time.Hour))}, want: []string{"create web-1 at r2 since 5s"}, told: "before"},
		"nor for one that was never rejected":         {set: newSet(2, rejectedFor(5*s)), pods: podList{p(0)}, want: []string{"create web-1 at r2 since 5s"}, told: "before"},
		"it goes when nothing is wanted":              {set: newSet(0, rejectedFor(5*s))},
		"a parallel set does the rest meanwhile":      {set: newSet(3, parallel, rejectedFor(5*s)), pods: podList{p(0, refused(4*s), following(5*s)), p(1, at("r1"))}, want: []string{"create web-2 at r2 since 5s"}, look: 6 * s, told: toldNow + "2026-05-04T12:00:06Z"},
		"an ordered set waits":                        {set: newSet(3, rejectedFor(5*s)), pods: podList{p(0, refused(4*s), following(5*s))}, look: 6 * s, told: toldNow + "2026-05-04T12:00:06Z"},
		"many wait for their turns":                   {set: newSet(2, rejectedFor(5*s)), pods: podList{p(0, refused(0), following(5*s)), p(1, pending, following(5*s))}, look: 10 * s, told: toldNow + "2026-05-04T12:00:10Z"},
		"a set that is deleted leaves them to others": {set: newSet(1, deleted, rejectedFor(5*s)), pods: podList{p(0, refused(time.Hour), following(time.Hour))}, told: toldNow + "2026-05-04T11:00:10Z"},
	} {
		t.Run(name, func(t *testing.T) {
			o := look(tc.set, tc.pods)
			o.backsOff = !tc.off
			plan := decide(o, noon)
			got := told(plan)
			for _, stage := range plan.stages {
				for _, st := range stage {
					if since, again := rejections.SinceOf(st.pod); st.verb == create && again {
						got[0] += fmt.Sprint(" since ", noon.Sub(since))
					}
				}
			}
			same(t, got, tc.want)
			same(t, plan.look, tc.look)
			message := ""
			if c := backoffOf(&plan.status); c != nil {
				message = c.Message
				if began := rejectedSince(tc.set); !began.IsZero() && !c.LastTransitionTime.Time.Equal(began) {
					t.Errorf("the condition begins anew at %v", c.LastTransitionTime)
				}
			}
			same(t, message, tc.told)
			if old := backoffOf(&tc.set.Status); old != nil && old.Message != "before" {
				t.Error("the cached set was changed")
			}
			if changes := (message == "") != (backoffOf(&tc.set.Status) == nil); changes && (reported(tc.set.Status, plan.status) || underWay(tc.set, plan.status)) {
				t.Error("the condition is not told of at once")
			}
		})
	}
}

// TestSoManyAreReplacedAtOnce holds that pods which are tried already count.
func TestSoManyAreReplacedAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		tried, refused, missing int
		want                    int
	}{
		"just so many":             {0, 32, 0, 32},
		"one more":                 {0, 33, 0, 32},
		"two that are tried again": {2, 33, 0, 30},
		"two that are to be made":  {0, 33, 2, 30},
	} {
		t.Run(name, func(t *testing.T) {
			var pods podList
			for i := range tc.tried {
				pods = append(pods, newTestPod(i, pending, following(0)))
			}
			for i := range tc.refused {
				pods = append(pods, newTestPod(tc.tried+i, refused(0)))
			}
			o := look(newSet(int32(len(pods)+tc.missing), parallel, rejectedFor(0)), pods)
			o.backsOff = true
			deleted := 0
			for _, stage := range decide(o, noon).stages {
				for _, s := range stage {
					if s.verb == remove {
						deleted++
					}
				}
			}
			same(t, deleted, tc.want)
		})
	}
}

// TestAPlaceThatIsEmptyWhenAnotherIsAcceptedBeginsAgain follows a place whose pod went
// to be replaced, in the middle of five minutes of rejections.
func TestAPlaceThatIsEmptyWhenAnotherIsAcceptedBeginsAgain(t *testing.T) {
	const since = 5 * time.Minute
	for name, tc := range map[string]struct {
		other *corev1.Pod
		over  bool // the condition, when the place is filled
		want  []string
		look  time.Duration
	}{
		"the other waits still": {newTestPod(0, pending, following(since)), false, nil, 2*time.Minute + 40*time.Second},
		"the other is accepted": {newTestPod(0, following(since)), true, []string{"delete web-1"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			set := newSet(2, parallel, rejectedFor(since))
			play := func(pods ...*corev1.Pod) change {
				o := look(set, pods)
				o.backsOff = true
				c := decide(o, noon)
				set = set.DeepCopy()
				set.Status = c.status
				return c
			}
			c := play(tc.other)
			same(t, told(c), []string{"create web-1 at r2"})
			same(t, backoffOf(&c.status) == nil, tc.over)
			next := c.stages[0][0].pod
			refused(0)(next)
			play(tc.other, next) // the condition comes first
			c = play(tc.other, next)
			same(t, told(c), tc.want)
			same(t, c.look, tc.look)
		})
	}
}

// TestFiveMinutesOfRejections plays sets whose pods are all rejected for five
// minutes, while the process is killed at any moment: after some of the steps of a
// plan, and before its status is written. What is decided follows from the set and
// its pods alone, so that nothing else is lost.
func TestFiveMinutesOfRejections(t *testing.T) {
	for name, tc := range map[string]struct {
		replicas, least, most int
		start                 setOption
	}{
		"ordered":        {3, 2, 7, func(*appsv1.StatefulSet) {}},
		"parallel":       {10, 15, 80, parallel},
		"parallel, many": {100, 101, 200, parallel},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range testworld.Seeds(t, 30) {
				s := newSim(seed, newSet(int32(tc.replicas), tc.start), nil)
				s.playRejections(true, noon.Add(5*time.Minute))
				if s.made < tc.least || s.made > tc.most {
					t.Fatalf("seed %d: %d pods were made, wanted %d to %d", seed, s.made, tc.least, tc.most)
				}
				if seed == 0 {
					t.Logf("%d pods", s.made)
				}
				s.playRejections(false, noon.Add(2*time.Hour))
				if st := s.set.Status; int(st.AvailableReplicas) != tc.replicas || len(st.Conditions) > 0 {
					t.Fatalf("seed %d: status %+v", seed, st)
				}
				if s.broken != "" {
					t.Fatalf("seed %d: %s", seed, s.broken)
				}
			}
		})
	}
}

// playRejections has the kubelets reject all pods, or accept them, and the
// controller look again and again until then, or until all are accepted.
func (s *sim) playRejections(reject bool, end time.Time) {
	for s.now.Before(end) && s.broken == "" && (reject || int(s.set.Status.AvailableReplicas) < wanted(s.set) || len(s.set.Status.Conditions) > 0) {
		s.now = s.now.Add(time.Duration(200+s.Rand.IntN(1500)) * time.Millisecond)
		for name, pod := range s.pods {
			switch {
			case pod.DeletionTimestamp != nil:
				delete(s.pods, name)
			case pod.Status.Phase == corev1.PodPending && reject:
				pod.CreationTimestamp.Time = pod.CreationTimestamp.Truncate(time.Second)
				pod.Spec.NodeName, pod.Status = "n", corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu"}
			case pod.Status.Phase == corev1.PodPending:
				pod.Status = newTestPod(0).Status
			}
		}
		o := s.observe()
		o.backsOff = true
		p := decide(o, s.now)
		life := s.Rand.IntN(30) // how many more calls it makes
		for _, stage := range p.stages {
			for _, st := range stage {
				if life > 0 {
					s.do(st, o)
				}
				life--
			}
		}
		if status := completed(s.set, p.status); life > 0 && !reported(s.set.Status, status) {
			s.set = s.set.DeepCopy()
			s.set.Status = status
		}
	}
}
