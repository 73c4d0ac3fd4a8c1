package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

// stuckContainers are the reasons of a container that waits for more than time.
var stuckContainers = []string{
	"CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError",
	"RegistryUnavailable", "CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError",
}

func judgePodNow(l *look, pod *corev1.Pod, _ []Controller) finding { return judgePod(pod, l.now) }

func judgePod(pod *corev1.Pod, now time.Time) finding {
	f := finding{facts: podFacts(pod)}
	switch {
	case pod.DeletionTimestamp != nil:
		return podLeaving(f, pod, now)
	case pod.Status.Phase == corev1.PodSucceeded:
		f.over = true
		return f.with(Complete, "it has ended, with success")
	case pod.Status.Phase == corev1.PodFailed:
		f.over = true
		said := "it has failed"
		if pod.Status.Reason != "" {
			said += " (" + pod.Status.Reason + ")"
		}
		return f.with(Blocked, said).because(pod.Status.Message)
	case pod.Spec.NodeName == "":
		return podUnscheduled(f, pod)
	}
	if c, waiting := stuck(pod); c != nil {
		return f.with(Blocked, fmt.Sprintf("container %s cannot start (%s), after %s", c.Name, waiting.Reason, plural(c.RestartCount, "restart"))).because(waiting.Message)
	}
	ready := conditionOf(pod, corev1.PodReady)
	switch {
	case pod.Status.Phase != corev1.PodRunning:
		return f.with(Progressing, fmt.Sprintf("it is starting on node %s", pod.Spec.NodeName)).because(starting(pod))
	case ready.Status == corev1.ConditionTrue:
		return f.with(Complete, fmt.Sprintf("it runs on node %s and is ready", pod.Spec.NodeName))
	}
	return f.with(Progressing, fmt.Sprintf("it runs on node %s and is not ready", pod.Spec.NodeName)).because(ready.Message)
}

func podFacts(pod *corev1.Pod) []string {
	ready, restarts := 0, int32(0)
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		if c.Ready {
			ready++
		}
		restarts += c.RestartCount
	}
	facts := []string{"phase " + string(pod.Status.Phase), fmt.Sprintf("%d of %d containers ready", ready, len(pod.Spec.Containers))}
	if restarts > 0 {
		facts = append(facts, plural(restarts, "restart"))
	}
	if pod.Spec.NodeName != "" {
		facts = append(facts, "node "+pod.Spec.NodeName)
	}
	if len(pod.Finalizers) > 0 {
		facts = append(facts, "finalizers "+strings.Join(pod.Finalizers, ", "))
	}
	if c := conditionOf(pod, corev1.DisruptionTarget); c.Status == corev1.ConditionTrue {
		facts = append(facts, "chosen for a disruption ("+c.Reason+")")
	}
	return facts
}

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	return ptr.Deref(pods.Condition(pod, kind), corev1.PodCondition{})
}

// podLeaving is about a pod that is being deleted: until its grace is over it is on its
// way, then its kubelet or a finalizer is waited for.
func podLeaving(f finding, pod *corev1.Pod, now time.Time) finding {
	ends := pod.DeletionTimestamp.Time // the API server adds the grace to it
	switch {
	case now.Before(ends):
		f.until = ends
		return f.with(Progressing, "it is being deleted, and has "+inWords(ends.Sub(now))+" to stop")
	case len(pod.Finalizers) > 0 && (pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed):
		return f.with(Waiting, "it is being deleted, and stays until its finalizers have been taken off: "+strings.Join(pod.Finalizers, ", "))
	case pod.Spec.NodeName == "":
		return f.with(Progressing, "it is being deleted, and never had a node")
	}
	return f.with(Waiting, fmt.Sprintf("it should have stopped %s ago, and waits for the kubelet of node %s", inWords(now.Sub(ends)), pod.Spec.NodeName))
}

func podUnscheduled(f finding, pod *corev1.Pod) finding {
	if n := len(pod.Spec.SchedulingGates); n > 0 {
		var gates []string
		for _, gate := range pod.Spec.SchedulingGates {
			gates = append(gates, gate.Name)
		}
		slices.Sort(gates)
		return f.with(Waiting, fmt.Sprintf("it is not to be scheduled before %s taken off: %s", its(n, "scheduling gate", "is", "are"), strings.Join(gates, ", ")))
	}
	scheduled := conditionOf(pod, corev1.PodScheduled)
	if scheduled.Status == corev1.ConditionFalse && scheduled.Reason == corev1.PodReasonUnschedulable {
		return f.with(Waiting, "no node has place for it").because(scheduled.Message)
	}
	return f.with(Waiting, "it waits for the scheduler to choose a node").because(scheduled.Message)
}

// stuck returns the first container that does not start by itself.
func stuck(pod *corev1.Pod) (*corev1.ContainerStatus, *corev1.ContainerStateWaiting) {
	for _, all := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range all {
			if waiting := all[i].State.Waiting; waiting != nil && slices.Contains(stuckContainers, waiting.Reason) {
				return &all[i], waiting
			}
		}
	}
	return nil, nil
}

// starting says what the kubelet says of the first container that waits.
func starting(pod *corev1.Pod) string {
	for _, all := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range all {
			if waiting := all[i].State.Waiting; waiting != nil {
				return strings.TrimSuffix(waiting.Reason+": "+waiting.Message, ": ")
			}
		}
	}
	return ""
}
