package recycle

import (
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	image = "registry.k8s.io/build-image/debian-base:bookworm-v1.0.6"
	// scrub deletes all in the volume, and fails if something is left.
	scrub = `test -e /scrub && find /scrub -mindepth 1 -delete && test -z "$(ls -A /scrub)" || exit 1`
)

// Template returns the pod of a file, or the built-in one if no path is given.
func Template(path string) (*corev1.Pod, error) {
	if path == "" {
		return builtIn(), nil
	}
	return Read(path)
}

func builtIn() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Volumes:       []corev1.Volume{{Name: "vol"}},
			Containers: []corev1.Container{{
				Name: "pv-recycler", Image: image,
				Command: []string{"/bin/sh"}, Args: []string{"-c", scrub},
				VolumeMounts: []corev1.VolumeMount{{Name: "vol", MountPath: "/scrub"}},
			}},
		},
	}
}

// Read returns the pod that a file holds, or why no volume can be recycled with it.
func Read(path string) (*corev1.Pod, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("failed to read file path %s: %w", path, err)
	}
	if len(data) == 0 {
		return nil, fmt.Errorf("file was empty: %s", path)
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("failed decoding file: %w", err)
	}
	pod, is := object.(*corev1.Pod)
	switch {
	case !is:
		return nil, fmt.Errorf("failed decoding file: it holds a %T, not a Pod", object)
	case len(pod.Spec.Volumes) == 0:
		return nil, fmt.Errorf("pod specification (%s): %w", path, errNoVolumes)
	}
	return pod, nil
}

var errNoVolumes = errors.New("does not contain any volume(s)")
