package statefulset

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestStatus(t *testing.T) {
	p := newTestPod
	o := look(newSet(5, minReady(10)), podList{
		p(0, at("r1")), p(1, at("r1"), lost), p(2, readySince(time.Second)), p(3, ending), p(4, phase(corev1.PodFailed)), p(7)})
	o.collisions = 3
	same(t, statusOf(o, noon), appsv1.StatefulSetStatus{
		Replicas: 6, ReadyReplicas: 4, AvailableReplicas: 3, CurrentReplicas: 2, UpdatedReplicas: 3,
		CurrentRevision: "r1", UpdateRevision: "r2", ObservedGeneration: 1, CollisionCount: ptr.To[int32](3)})
	if got := nextLook(o, noon); got != 9*time.Second {
		t.Errorf("looks again after %s", got)
	}
}

func TestAnUpdateIsCompleted(t *testing.T) {
	done := appsv1.StatefulSetStatus{Replicas: 3, ReadyReplicas: 3, UpdatedReplicas: 3, CurrentRevision: "r1", UpdateRevision: "r2"}
	part := done
	part.UpdatedReplicas = 2
	unready := done
	unready.ReadyReplicas = 2
	for name, tc := range map[string]struct {
		set    *appsv1.StatefulSet
		status appsv1.StatefulSetStatus
		want   string
	}{
		"all updated and ready": {newSet(3), done, "r2"},
		"not all updated":       {newSet(3), part, "r1"},
		"not all ready":         {newSet(3), unready, "r1"},
		"never on delete":       {newSet(3, onDelete), done, "r1"},
		"two of three are lost": {newSet(3), appsv1.StatefulSetStatus{Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1, CurrentRevision: "r1", UpdateRevision: "r2"}, "r1"},
		"all are lost":          {newSet(3), appsv1.StatefulSetStatus{CurrentRevision: "r1", UpdateRevision: "r2"}, "r1"},
		"one too many is there": {newSet(2), done, "r1"},
		"without pods":          {newSet(0), appsv1.StatefulSetStatus{CurrentRevision: "r1", UpdateRevision: "r2"}, "r2"},
	} {
		if got := completed(tc.set, tc.status); got.CurrentRevision != tc.want {
			t.Errorf("%s: got %s", name, got.CurrentRevision)
		}
	}
	if got := completed(newSet(3), done); got.CurrentReplicas != 3 {
		t.Errorf("%d pods are current", got.CurrentReplicas)
	}
}

func TestWhatCanWait(t *testing.T) {
	type status = appsv1.StatefulSetStatus
	settled := func(n int32) status {
		return status{ObservedGeneration: 1, Replicas: n, ReadyReplicas: n, AvailableReplicas: n, UpdatedReplicas: n, CurrentReplicas: n, CurrentRevision: "r1", UpdateRevision: "r1"}
	}
	with := func(s status, change func(*status)) status { change(&s); return s }
	rolling := func(s *status) { s.UpdateRevision = "r2"; s.UpdatedReplicas = 0 }
	for name, tc := range map[string]struct {
		old, now status
		set      *appsv1.StatefulSet
		waits    bool
	}{
		"one more of many":                    {settled(1), settled(2), newSet(3), true},
		"the last":                            {settled(2), settled(3), newSet(3), false},
		"a lost pod":                          {settled(3), with(settled(3), func(s *status) { s.ReadyReplicas = 2 }), newSet(3), false},
		"a loss of both":                      {settled(3), with(settled(3), func(s *status) { s.ReadyReplicas, s.AvailableReplicas = 2, 2 }), newSet(3), false},
		"one more, not ready":                 {settled(3), with(settled(3), func(s *status) { s.Replicas = 4 }), newSet(6), true},
		"while another is lost":               {settled(3), with(settled(3), func(s *status) { s.Replicas, s.ReadyReplicas = 4, 2 }), newSet(6), false},
		"or is not available":                 {settled(3), with(settled(3), func(s *status) { s.Replicas, s.AvailableReplicas = 4, 2 }), newSet(6), false},
		"one that goes is there":              {settled(5), with(settled(3), func(s *status) { s.Replicas = 4 }), newSet(3), true},
		"one fewer of many":                   {settled(5), settled(4), newSet(3), true},
		"the last that goes":                  {settled(4), settled(3), newSet(3), false},
		"a step of a rollout":                 {with(settled(3), rolling), with(with(settled(3), rolling), func(s *status) { s.ReadyReplicas, s.AvailableReplicas = 2, 2 }), newSet(3), true},
		"a loss while it waits for deletions": {with(settled(3), rolling), with(with(settled(3), rolling), func(s *status) { s.ReadyReplicas, s.AvailableReplicas = 2, 2 }), newSet(3, onDelete), false},
		"a loss at the partition": {with(settled(3), func(s *status) { s.UpdateRevision, s.UpdatedReplicas = "r2", 1 }),
			with(settled(3), func(s *status) {
				s.UpdateRevision, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas = "r2", 1, 2, 2
			}), newSet(3, partitioned(2)), false},
		"a rollout begins":             {settled(3), with(settled(3), rolling), newSet(3), false},
		"a new generation":             {settled(3), with(settled(4), func(s *status) { s.ObservedGeneration = 2 }), newSet(6), false},
		"updated, not yet all":         {with(settled(3), rolling), with(with(settled(3), rolling), func(s *status) { s.UpdatedReplicas = 1 }), newSet(3), true},
		"the rollout is through":       {with(settled(3), rolling), with(with(settled(3), rolling), func(s *status) { s.UpdatedReplicas = 3 }), newSet(3), false},
		"the next pods follow from it": {with(settled(3), rolling), with(with(settled(3), rolling), func(s *status) { s.CurrentReplicas = 2 }), newSet(3, unbounded), false},
		"not with a partition":         {with(settled(3), rolling), with(with(settled(3), rolling), func(s *status) { s.CurrentReplicas = 2 }), newSet(3), true},
		"nor without an update":        {settled(1), settled(2), newSet(3, unbounded), true},
		"up to the partition":          {with(settled(3), rolling), with(with(settled(3), rolling), func(s *status) { s.UpdatedReplicas = 2 }), newSet(3, partitioned(1)), false},
	} {
		tc.set.Status = tc.old
		if got := underWay(tc.set, tc.now); got != tc.waits {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestWhatIsReported(t *testing.T) {
	old := appsv1.StatefulSetStatus{ObservedGeneration: 2, Replicas: 1, CollisionCount: ptr.To[int32](0)}
	now := old
	now.CollisionCount = ptr.To[int32](1)
	if !reported(old, now) {
		t.Error("collisions alone are written")
	}
	now.AvailableReplicas = 1
	if reported(old, now) {
		t.Error("an available pod is not written")
	}
}

func TestNeverReady(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"ready":                     {newTestPod(0), false},
		"ready once":                {newTestPod(0, lost), false},
		"unready from the start":    {newTestPod(0, broken), true},
		"within the same second":    {newTestPod(0, broken, readySince(time.Hour-time.Second)), true},
		"pending":                   {newTestPod(0, pending), true},
		"pending, with a condition": {newTestPod(0, lost, phase(corev1.PodPending)), true},
		"pending again":             {newTestPod(0, lost, phase(corev1.PodPending), restarted), false},
		"as it never was ready":     {newTestPod(0, broken, phase(corev1.PodPending), restarted), true},
		"without a condition":       {newTestPod(0, func(p *corev1.Pod) { p.Status.Conditions = nil }), true},
		"ended":                     {newTestPod(0, broken, phase(corev1.PodFailed)), false},
		"without the time it began": {newTestPod(0, broken, func(p *corev1.Pod) { p.Status.StartTime = nil }), true},
	} {
		if got := neverReady(tc.pod); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
