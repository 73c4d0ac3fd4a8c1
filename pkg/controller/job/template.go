package job

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

const (
	// indexVariable is the environment variable that gives a container its index.
	indexVariable = "JOB_COMPLETION_INDEX"
	// longestPrefix is what the server keeps of a generateName.
	longestPrefix = 58
)

// newPod is a pod of the Job; replaced is the failed pod of its index, if any.
func newPod(job *batchv1.Job, ref *metav1.OwnerReference, index int, replaced *corev1.Pod) *corev1.Pod {
	pod := pods.FromTemplate(&job.Spec.Template, job, ref)
	if !slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer) {
		pod.Finalizers = append(pod.Finalizers, batchv1.JobTrackingFinalizer)
	}
	if index == noIndex {
		return pod
	}
	pod.GenerateName = indexedPrefix(job.Name, index)
	pod.Annotations[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(index)
	pod.Labels[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(index)
	if perIndex(job) {
		maps.Copy(pod.Annotations, nextFailures(job, replaced))
	}
	pod.Spec.Hostname = fmt.Sprintf("%s-%d", job.Name, index)
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			addIndex(&containers[i])
		}
	}
	return pod
}

// indexedPrefix is the generateName of a pod with an index, which a long name
// of the Job must not push out.
func indexedPrefix(job string, index int) string {
	suffix := "-" + strconv.Itoa(index) + "-"
	return job[:min(len(job), longestPrefix-len(suffix))] + suffix
}

// addIndex gives a container the index, unless it names the variable itself.
func addIndex(c *corev1.Container) {
	if slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == indexVariable }) {
		return
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: indexVariable, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
		FieldPath: fmt.Sprintf("metadata.labels['%s']", batchv1.JobCompletionIndexAnnotation),
	}}})
}
