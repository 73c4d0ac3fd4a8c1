package harness

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// Outcome is how a pod ends.
type Outcome struct {
	// Phase is Failed or Succeeded.
	Phase corev1.PodPhase
	// ExitCode is that of every container, or of the one named Container while the others end with 0.
	ExitCode  int32
	Container string
	// Reason and ContainerReason are optional words on the pod and on its containers.
	Reason, ContainerReason string
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// run returns the pod as its kubelet would report it once all containers run.
func run(pod *corev1.Pod, ip string, now metav1.Time) *corev1.Pod {
	pod = pod.DeepCopy()
	status := &pod.Status
	status.Phase, status.StartTime = corev1.PodRunning, &now
	status.HostIP, status.HostIPs = "10.0.0.1", []corev1.HostIP{{IP: "10.0.0.1"}}
	status.PodIP, status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
	status.ObservedGeneration = pod.Generation
	status.InitContainerStatuses = nil
	for _, c := range pod.Spec.InitContainers {
		state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now}}
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			state = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
		}
		status.InitContainerStatuses = append(status.InitContainerStatuses, containerStatus(c, state, true))
	}
	status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
		status.ContainerStatuses = append(status.ContainerStatuses, containerStatus(c, state, true))
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		setCondition(pod, kind, true, "", now)
	}
	return pod
}

// reject returns the pod as a kubelet would report it that does not run it at all.
func reject(pod *corev1.Pod, reason string) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, reason, "Pod was rejected"
	return pod
}

// finish returns the pod with all its containers ended.
func finish(pod *corev1.Pod, how Outcome, now metav1.Time) *corev1.Pod {
	pod = pod.DeepCopy()
	status := &pod.Status
	status.Phase, status.Reason = how.Phase, how.Reason
	if status.StartTime == nil {
		status.StartTime = &now
	}
	status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		code, reason := how.ExitCode, how.ContainerReason
		if how.Container != "" && how.Container != c.Name {
			code, reason = 0, ""
		}
		if reason == "" {
			reason = map[bool]string{true: "Completed", false: "Error"}[code == 0]
		}
		state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, StartedAt: *status.StartTime, FinishedAt: now,
		}}
		status.ContainerStatuses = append(status.ContainerStatuses, containerStatus(c, state, false))
	}
	conditionReason := "PodFailed"
	if how.Phase == corev1.PodSucceeded {
		conditionReason = "PodCompleted"
	}
	setCondition(pod, corev1.ContainersReady, false, conditionReason, now)
	setCondition(pod, corev1.PodReady, false, conditionReason, now)
	return pod
}

// setReady returns the pod with its readiness turned.
func setReady(pod *corev1.Pod, ready bool, now metav1.Time) *corev1.Pod {
	pod = pod.DeepCopy()
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].Ready = ready
	}
	reason := ""
	if !ready {
		reason = "ContainersNotReady"
	}
	setCondition(pod, corev1.ContainersReady, ready, reason, now)
	setCondition(pod, corev1.PodReady, ready, reason, now)
	return pod
}

func containerStatus(c corev1.Container, state corev1.ContainerState, ready bool) corev1.ContainerStatus {
	return corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: "pretend://" + c.Image, ContainerID: "pretend://" + c.Name,
		State: state, Ready: ready, Started: new(ready),
	}
}

func setCondition(pod *corev1.Pod, kind corev1.PodConditionType, value bool, reason string, now metav1.Time) {
	status := corev1.ConditionFalse
	if value {
		status = corev1.ConditionTrue
	}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type != kind {
			continue
		}
		if c.Status != status {
			c.LastTransitionTime = now
		}
		c.Status, c.Reason, c.Message = status, reason, ""
		return
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: kind, Status: status, Reason: reason, LastTransitionTime: now,
	})
}

// FinishPod ends a pod with an outcome, as its kubelet would report it.
func (k *Kubelet) FinishPod(ctx context.Context, namespace, name string, how Outcome) error {
	return changeStatus(ctx, k.client, namespace, name, func(pod *corev1.Pod) *corev1.Pod {
		return finish(pod, how, metav1.Now())
	})
}

// SetPodReady turns the readiness of a pod.
func (k *Kubelet) SetPodReady(ctx context.Context, namespace, name string, ready bool) error {
	return changeStatus(ctx, k.client, namespace, name, func(pod *corev1.Pod) *corev1.Pod {
		return setReady(pod, ready, metav1.Now())
	})
}

func changeStatus(ctx context.Context, client kubernetes.Interface, namespace, name string, change func(*corev1.Pod) *corev1.Pod) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		pod, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, err = client.CoreV1().Pods(namespace).UpdateStatus(ctx, change(pod), metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("update status of pod %s: %w", name, err)
	}
	return nil
}
