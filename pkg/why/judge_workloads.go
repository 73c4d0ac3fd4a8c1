package why

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// wanted is how many replicas are asked for, with the default of the API.
func wanted(replicas *int32) int32 { return ptr.Deref(replicas, 1) }

const unseen = "its controller has not looked at its last change yet"

func judgeDeployment(d *appsv1.Deployment) finding {
	want, s := wanted(d.Spec.Replicas), &d.Status
	f := finding{facts: []string{
		fmt.Sprintf("%d of %d replicas ready", s.ReadyReplicas, want),
		fmt.Sprintf("%d of %d up to date", s.UpdatedReplicas, want),
		fmt.Sprintf("%d of %d available", s.AvailableReplicas, want),
	}}
	if s.Replicas > want {
		f.facts = append(f.facts, fmt.Sprintf("%d replicas in all", s.Replicas))
	}
	if revision := d.Annotations["deployment.kubernetes.io/revision"]; revision != "" {
		f.facts = append(f.facts, "revision "+revision)
	}
	numbers := fmt.Sprintf("%d of %d replicas are up to date, and %d are available", s.UpdatedReplicas, want, s.AvailableReplicas)
	var failure, progress appsv1.DeploymentCondition
	for _, c := range s.Conditions {
		switch c.Type {
		case appsv1.DeploymentReplicaFailure:
			failure = c
		case appsv1.DeploymentProgressing:
			progress = c
		}
	}
	complete := s.UpdatedReplicas == want && s.Replicas == want && s.AvailableReplicas >= want
	switch {
	case s.ObservedGeneration < d.Generation:
		return f.with(Progressing, unseen)
	case complete && d.Spec.Paused:
		return f.with(Paused, "its rollout is paused (spec.paused); "+allAvailable(want))
	case complete && want == 0:
		return f.with(Complete, allAvailable(want))
	case complete:
		return f.with(Complete, allAvailable(want)+" and up to date")
	case failure.Status == corev1.ConditionTrue:
		return f.with(Blocked, numbers+"; making pods fails").because(failure.Message)
	case d.Spec.Paused:
		return f.with(Paused, "its rollout is paused (spec.paused); "+numbers)
	case progress.Status == corev1.ConditionFalse:
		return f.with(Blocked, fmt.Sprintf("%s; it does not progress (%s)", numbers, progress.Reason)).because(progress.Message)
	}
	return f.with(Progressing, numbers)
}

func allAvailable(n int32) string {
	switch n {
	case 0:
		return "no replica is wanted, and there is none"
	case 1:
		return "its one replica is available"
	}
	return fmt.Sprintf("all %d replicas are available", n)
}

// replicas is what ReplicaSets and ReplicationControllers report alike.
type replicas struct {
	want, have, ready, available int32
	seen                         bool
	failure                      string
	failed                       bool
}

func (r replicas) judge() finding {
	f := finding{facts: []string{
		fmt.Sprintf("%d of %d pods exist", r.have, r.want),
		fmt.Sprintf("%d of %d ready", r.ready, r.want),
		fmt.Sprintf("%d of %d available", r.available, r.want),
	}}
	switch {
	case !r.seen:
		return f.with(Progressing, unseen)
	case r.have == r.want && r.available == r.want:
		return f.with(Complete, allAvailable(r.want))
	case r.failed && r.have < r.want:
		return f.with(Blocked, fmt.Sprintf("%d of %d pods exist, and making more fails", r.have, r.want)).because(r.failure)
	case r.failed:
		return f.with(Blocked, fmt.Sprintf("%d pods exist and %d are wanted, and deleting fails", r.have, r.want)).because(r.failure)
	case r.have != r.want:
		return f.with(Progressing, fmt.Sprintf("%d of %d pods exist", r.have, r.want))
	}
	return f.with(Progressing, fmt.Sprintf("all %s exist, and %d are available", plural(r.want, "pod"), r.available))
}

func judgeReplicaSet(set *appsv1.ReplicaSet) finding {
	r := replicas{want: wanted(set.Spec.Replicas), have: set.Status.Replicas, ready: set.Status.ReadyReplicas,
		available: set.Status.AvailableReplicas, seen: set.Status.ObservedGeneration >= set.Generation}
	for _, c := range set.Status.Conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
			r.failed, r.failure = true, c.Message
		}
	}
	return r.judge()
}

func judgeReplicationController(rc *corev1.ReplicationController) finding {
	r := replicas{want: wanted(rc.Spec.Replicas), have: rc.Status.Replicas, ready: rc.Status.ReadyReplicas,
		available: rc.Status.AvailableReplicas, seen: rc.Status.ObservedGeneration >= rc.Generation}
	for _, c := range rc.Status.Conditions {
		if c.Type == corev1.ReplicationControllerReplicaFailure && c.Status == corev1.ConditionTrue {
			r.failed, r.failure = true, c.Message
		}
	}
	return r.judge()
}

func judgeStatefulSet(set *appsv1.StatefulSet) finding {
	want, s := wanted(set.Spec.Replicas), &set.Status
	f := finding{facts: []string{
		fmt.Sprintf("%d of %d pods exist", s.Replicas, want),
		fmt.Sprintf("%d of %d ready", s.ReadyReplicas, want),
		fmt.Sprintf("%d of %d available", s.AvailableReplicas, want),
		fmt.Sprintf("%d of %d of revision %s", s.UpdatedReplicas, want, s.UpdateRevision),
	}}
	partition := int32(0)
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		partition = min(ptr.Deref(rolling.Partition, 0), want)
	}
	if partition > 0 {
		f.facts = append(f.facts, fmt.Sprintf("partition %d: lower ordinals keep revision %s", partition, s.CurrentRevision))
	}
	updated := s.CurrentRevision == s.UpdateRevision || s.UpdatedReplicas >= want-partition
	switch there := s.Replicas == want && s.AvailableReplicas >= want; {
	case s.ObservedGeneration < set.Generation:
		return f.with(Progressing, unseen)
	case there && updated && partition > 0 && s.CurrentRevision != s.UpdateRevision:
		return f.with(Paused, fmt.Sprintf("%s, and the update stops at partition %d", allAvailable(want), partition))
	case there && updated:
		return f.with(Complete, allAvailable(want))
	case there && set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType:
		return f.with(Waiting, fmt.Sprintf("%s keep an older revision until somebody deletes them (OnDelete)", plural(want-s.UpdatedReplicas, "pod")))
	case there:
		return f.with(Progressing, fmt.Sprintf("%d of %d pods are updated", s.UpdatedReplicas, want-partition))
	}
	return f.with(Progressing, fmt.Sprintf("%d of %d pods exist, and %d are available", s.Replicas, want, s.AvailableReplicas))
}

func judgeDaemonSet(set *appsv1.DaemonSet) finding {
	s := &set.Status
	want := s.DesiredNumberScheduled
	f := finding{facts: []string{
		fmt.Sprintf("pods on %d of %s", s.CurrentNumberScheduled, plural(want, "node")),
		fmt.Sprintf("%d of %d ready", s.NumberReady, want),
		fmt.Sprintf("%d of %d available", s.NumberAvailable, want),
		fmt.Sprintf("%d of %d up to date", s.UpdatedNumberScheduled, want),
	}}
	if s.NumberMisscheduled > 0 {
		f.facts = append(f.facts, plural(s.NumberMisscheduled, "pod")+" on nodes where none should be")
	}
	switch there := s.CurrentNumberScheduled == want && s.NumberAvailable >= want; {
	case s.ObservedGeneration < set.Generation:
		return f.with(Progressing, unseen)
	case there && s.UpdatedNumberScheduled >= want && s.NumberMisscheduled > 0:
		return f.with(Progressing, f.facts[len(f.facts)-1])
	case there && s.UpdatedNumberScheduled >= want:
		return f.with(Complete, fmt.Sprintf("a pod is available on each of %s", plural(want, "node")))
	case there && set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType:
		return f.with(Waiting, fmt.Sprintf("%s keep an older revision until somebody deletes them (OnDelete)", plural(want-s.UpdatedNumberScheduled, "pod")))
	}
	return f.with(Progressing, fmt.Sprintf("pods are on %d of %s, %d are up to date, and %d are available",
		s.CurrentNumberScheduled, plural(want, "node"), s.UpdatedNumberScheduled, s.NumberAvailable))
}
