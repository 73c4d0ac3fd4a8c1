package deployment

import (
	"errors"
	"math"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// since is a Progressing condition of that age.
func since(age time.Duration, is corev1.ConditionStatus, reason string) appsv1.DeploymentCondition {
	return newCondition(appsv1.DeploymentProgressing, is, reason, "m", noon.Add(-age))
}

func TestCounted(t *testing.T) {
	silent := func(rs *appsv1.ReplicaSet) { rs.Status.TerminatingReplicas = nil }
	fresh := func(rs *appsv1.ReplicaSet) { silent(rs); rs.Status.ObservedGeneration = 0 }
	leaving := func(rs *appsv1.ReplicaSet) { rs.Status.TerminatingReplicas = ptr.To[int32](2) }
	type counts struct {
		Replicas, Updated, Ready, Available, Unavailable int32
		Terminating                                      string
		Is                                               string
	}
	for name, tc := range map[string]struct {
		d      *appsv1.Deployment
		newSet *appsv1.ReplicaSet
		old    []*appsv1.ReplicaSet
		want   counts
	}{
		"before there is anything":                {deploy(3), nil, nil, counts{Terminating: "0", Is: "MinimumReplicasUnavailable"}},
		"all sets count, the new one as updated":  {deploy(10), set(2, "v2", 3, 1), sets(set(1, "v1", 8, 7)), counts{11, 3, 8, 8, 3, "0", "MinimumReplicasAvailable"}},
		"one too few":                             {deploy(10), set(2, "v2", 3, 0), sets(set(1, "v1", 8, 7)), counts{11, 3, 7, 7, 4, "0", "MinimumReplicasUnavailable"}},
		"more available than wanted is not less":  {deploy(1), set(2, "v2", 1, 3), nil, counts{1, 1, 3, 3, 0, "0", "MinimumReplicasAvailable"}},
		"terminating pods add up":                 {deploy(1), set(2, "v2", 1, 1, leaving), sets(set(1, "v1", 0, 0, leaving)), counts{1, 1, 1, 1, 0, "4", "MinimumReplicasAvailable"}},
		"a set that does not tell leaves it open": {deploy(1), set(2, "v2", 1, 1, leaving), sets(set(1, "v1", 0, 0, silent)), counts{1, 1, 1, 1, 0, "unknown", "MinimumReplicasAvailable"}},
		"a set never seen has none":               {deploy(1), set(2, "v2", 1, 1, fresh), sets(set(1, "v1", 0, 0, leaving)), counts{1, 1, 1, 1, 0, "2", "MinimumReplicasAvailable"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := counted(tc.d, tc.newSet, with(tc.old, tc.newSet), nil, true, noon)
			got := counts{s.Replicas, s.UpdatedReplicas, s.ReadyReplicas, s.AvailableReplicas, s.UnavailableReplicas, "unknown", s.Conditions[0].Reason}
			if s.TerminatingReplicas != nil {
				got.Terminating = string(rune('0' + *s.TerminatingReplicas))
			}
			check(t, got, tc.want)
			check(t, counted(tc.d, tc.newSet, with(tc.old, tc.newSet), nil, false, noon).TerminatingReplicas, nil)
		})
	}
}

func TestProgressCondition(t *testing.T) {
	at := func(updated, replicas, available int32) appsv1.DeploymentStatus {
		return appsv1.DeploymentStatus{ObservedGeneration: 1, UpdatedReplicas: updated, Replicas: replicas, ReadyReplicas: available, AvailableReplicas: available}
	}
	unlimited := func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = ptr.To[int32](math.MaxInt32) }
	long, short := 600*time.Second, 599*time.Second
	for name, tc := range map[string]struct {
		d             *appsv1.Deployment
		before, after appsv1.DeploymentStatus
		has           appsv1.DeploymentCondition
		want          string
		updated       time.Duration // ago
		transition    time.Duration // ago
		look          time.Duration
	}{
		"no change, time left: look again when it is over": {deploy(3), at(1, 4, 3), at(1, 4, 3), since(short, "True", reasonUpdated), "True ReplicaSetUpdated m", short, short, time.Second},
		"no change, time over":                             {deploy(3), at(1, 4, 3), at(1, 4, 3), since(long, "True", reasonUpdated), `False ProgressDeadlineExceeded ReplicaSet "web-2" has timed out progressing.`, 0, 0, 0},
		"out of time stays so":                             {deploy(3), at(1, 4, 3), at(1, 4, 3), since(time.Minute, "False", reasonTimedOut), "False ProgressDeadlineExceeded m", time.Minute, time.Minute, 0},
		"progress after all":                               {deploy(3), at(1, 4, 3), at(2, 4, 3), since(time.Minute, "False", reasonTimedOut), `True ReplicaSetUpdated ReplicaSet "web-2" is progressing.`, 0, 0, long},
		"each step forward winds the clock up":             {deploy(3), at(1, 4, 3), at(2, 4, 3), since(short, "True", reasonUpdated), `True ReplicaSetUpdated ReplicaSet "web-2" is progressing.`, 0, short, long},
		"fewer old pods are progress":                      {deploy(3), at(2, 4, 3), at(2, 3, 3), since(short, "True", reasonUpdated), `True ReplicaSetUpdated ReplicaSet "web-2" is progressing.`, 0, short, long},
		"complete":                                         {deploy(3), at(3, 3, 2), at(3, 3, 3), since(short, "True", reasonUpdated), `True NewReplicaSetAvailable ReplicaSet "web-2" has successfully progressed.`, 0, short, 0},
		"complete stays when a pod fails":                  {deploy(3), at(3, 3, 3), at(3, 3, 2), since(long, "True", reasonComplete), "True NewReplicaSetAvailable m", long, long, 0},
		"complete stays when a pod comes back":             {deploy(3), at(3, 3, 1), at(3, 3, 2), since(long, "True", reasonComplete), "True NewReplicaSetAvailable m", long, long, 0},
		"a completed one rolls again":                      {deploy(3), at(0, 3, 3), at(1, 4, 3), since(long, "True", reasonComplete), `True ReplicaSetUpdated ReplicaSet "web-2" is progressing.`, 0, long, long},
		"after a pause the clock begins again":             {deploy(3), at(1, 4, 3), at(1, 4, 3), since(time.Minute, "Unknown", reasonResumed), "Unknown DeploymentResumed m", time.Minute, time.Minute, 540 * time.Second},
		"without a deadline there is no such condition":    {deploy(3, unlimited), at(1, 4, 3), at(1, 4, 3), since(short, "True", reasonUpdated), "", 0, 0, 0},
		"an old view of the spec is not complete": {deploy(3, func(d *appsv1.Deployment) { d.Generation = 2 }), at(3, 3, 3), at(3, 3, 3),
			since(short, "True", reasonUpdated), "True ReplicaSetUpdated m", short, short, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			tc.after.Conditions = []appsv1.DeploymentCondition{tc.has}
			progressCondition(tc.d, &tc.before, &tc.after, set(2, "v2", 1, 1), noon)
			check(t, untilDeadline(tc.d, &tc.after, noon), tc.look)
			c := condition(&tc.after, appsv1.DeploymentProgressing)
			if c == nil {
				check(t, "", tc.want)
				return
			}
			check(t, string(c.Status)+" "+c.Reason+" "+c.Message, tc.want)
			check(t, noon.Sub(c.LastUpdateTime.Time), tc.updated)
			check(t, noon.Sub(c.LastTransitionTime.Time), tc.transition)
		})
	}
}

func TestProgressNamesTheDeploymentWhileItHasNoNewSet(t *testing.T) {
	status := appsv1.DeploymentStatus{ObservedGeneration: 1, Conditions: []appsv1.DeploymentCondition{since(time.Hour, "True", reasonUpdated)}}
	progressCondition(deploy(3), &status, &status, nil, noon)
	check(t, condition(&status, appsv1.DeploymentProgressing).Message, `Deployment "web" has timed out progressing.`)
}

func TestPauseCondition(t *testing.T) {
	none := func(d *appsv1.Deployment) { d.Spec.ProgressDeadlineSeconds = nil }
	for name, tc := range map[string]struct {
		d    *appsv1.Deployment
		has  string
		want string
	}{
		"pausing stops the clock":                     {deploy(3, paused), reasonUpdated, reasonPaused},
		"a pause before the first rollout":            {deploy(3, paused), "", reasonPaused},
		"a pause goes on":                             {deploy(3, paused), reasonPaused, reasonPaused},
		"resuming winds the clock up":                 {deploy(3), reasonPaused, reasonResumed},
		"no pause, no word":                           {deploy(3), reasonUpdated, reasonUpdated},
		"out of time stays out of time in a pause":    {deploy(3, paused), reasonTimedOut, reasonTimedOut},
		"without a deadline there is no clock at all": {deploy(3, paused, none), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			status := appsv1.DeploymentStatus{}
			if tc.has != "" {
				status.Conditions = append(status.Conditions, since(time.Minute, "True", tc.has))
			}
			pauseCondition(tc.d, &status, noon)
			got := ""
			if c := condition(&status, appsv1.DeploymentProgressing); c != nil {
				got = c.Reason
			}
			check(t, got, tc.want)
		})
	}
}

func TestFailureCondition(t *testing.T) {
	failing := func(message string) setOption {
		return func(rs *appsv1.ReplicaSet) {
			rs.Status.Conditions = append(rs.Status.Conditions, appsv1.ReplicaSetCondition{Type: appsv1.ReplicaSetReplicaFailure,
				Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: message, LastTransitionTime: metav1.NewTime(noon)})
		}
	}
	for name, tc := range map[string]struct {
		newSet *appsv1.ReplicaSet
		old    []*appsv1.ReplicaSet
		want   string
	}{
		"none":                            {set(2, "v2", 1, 1), sets(set(1, "v1", 1, 1)), ""},
		"the new set's":                   {set(2, "v2", 1, 1, failing("new")), sets(set(1, "v1", 1, 1, failing("old"))), "new"},
		"an old set's, when there is one": {set(2, "v2", 1, 1), sets(set(1, "v1", 1, 1, failing("old"))), "old"},
		"without a new set":               {nil, sets(set(1, "v1", 1, 1, failing("old"))), "old"},
	} {
		t.Run(name, func(t *testing.T) {
			status := appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{
				newCondition(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedDelete", "before", noon)}}
			failureCondition(&status, tc.newSet, with(tc.old, tc.newSet))
			got := ""
			if c := condition(&status, appsv1.DeploymentReplicaFailure); c != nil {
				got = c.Message
			}
			check(t, got, tc.want)
		})
	}
}

func TestAfterCreateFailure(t *testing.T) {
	before := appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{since(time.Minute, "True", reasonUpdated)}}
	message := createFailure("web-x", errors.New("exceeded quota"))
	after := afterCreateFailure(deploy(3), before, message, noon)
	c := condition(&after, appsv1.DeploymentProgressing)
	check(t, string(c.Status)+" "+c.Reason+" "+c.Message, `False ReplicaSetCreateError Failed to create new replica set "web-x": exceeded quota`)
	check(t, before.Conditions[0].Reason, reasonUpdated)
	check(t, afterCreateFailure(deploy(3), after, message, noon.Add(time.Hour)), after)
}

func TestAfterCollision(t *testing.T) {
	once := afterCollision(appsv1.DeploymentStatus{})
	twice := afterCollision(once)
	check(t, []int32{*once.CollisionCount, *twice.CollisionCount}, []int32{1, 2})
}
