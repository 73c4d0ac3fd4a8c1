package podautoscaler

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// requests are what each pod asks for of a resource, in thousandths: all of it,
// or one container. With podLevel, a pod that asks for anything as a whole is
// taken as the scheduler takes it. A pod that does not say so has no utilization, and so none
// of them has.
func requests(pods []*corev1.Pod, of corev1.ResourceName, container string, podLevel bool) (map[string]int64, error) {
	all := make(map[string]int64, len(pods))
	for _, pod := range pods {
		request, err := request(pod, of, container, podLevel)
		if err != nil {
			return nil, err
		}
		all[pod.Name] = request
	}
	return all, nil
}

func request(pod *corev1.Pod, of corev1.ResourceName, container string, podLevel bool) (int64, error) {
	if container == "" && podLevel && resourcehelper.IsPodLevelRequestsSet(pod) {
		return wholeRequest(pod, of)
	}
	var sum int64
	found := false
	count := func(c *corev1.Container) error {
		if container != "" && c.Name != container {
			return nil
		}
		q, ok := c.Resources.Requests[of]
		if !ok {
			return fmt.Errorf("missing request for %s in container %s of Pod %s", of, c.Name, pod.Name)
		}
		sum, found = add(sum, thousandths(&q)), true
		return nil
	}
	for i := range pod.Spec.Containers {
		if err := count(&pod.Spec.Containers[i]); err != nil {
			return 0, err
		}
	}
	for i := range pod.Spec.InitContainers {
		// Those that are restarted run beside the others.
		if c := &pod.Spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			if err := count(c); err != nil {
				return 0, err
			}
		}
	}
	if container != "" && !found {
		return 0, fmt.Errorf("container %s not found in Pod %s", container, pod.Name)
	}
	return sum, nil
}

// wholeRequest counts what a pod asks for as a whole, what it costs to run any
// such pod included. Of another resource its containers may ask for nothing.
func wholeRequest(pod *corev1.Pod, of corev1.ResourceName) (int64, error) {
	q, ok := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})[of]
	if !ok {
		return 0, fmt.Errorf("missing pod-level request for %s in Pod %s", of, pod.Name)
	}
	return thousandths(&q), nil
}
