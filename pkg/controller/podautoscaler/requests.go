package podautoscaler

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// requests are what each pod asks for of a resource, in thousandths: all of it,
// or one container. A pod that does not say so has no utilization, and so none
// of them has.
func requests(pods []*corev1.Pod, of corev1.ResourceName, container string) (map[string]int64, error) {
	all := make(map[string]int64, len(pods))
	for _, pod := range pods {
		request, err := request(pod, of, container)
		if err != nil {
			return nil, err
		}
		all[pod.Name] = request
	}
	return all, nil
}

func request(pod *corev1.Pod, of corev1.ResourceName, container string) (int64, error) {
	if container == "" && pod.Spec.Resources != nil {
		if q, ok := pod.Spec.Resources.Requests[of]; ok {
			return q.MilliValue(), nil
		}
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
		sum, found = add(sum, q.MilliValue()), true
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
