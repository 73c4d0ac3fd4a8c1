package recycle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func volume(size string, source corev1.PersistentVolumeSource) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "old"}}
	v.Spec.PersistentVolumeSource = source
	if size != "" {
		v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	}
	return v
}

var (
	kind     = corev1.HostPathDirectory
	hostPath = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp/data", Type: &kind}}
	nfs      = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs.example", Path: "/exports", ReadOnly: true}}
	csi      = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d"}}
)

func TestThePodOfAVolume(t *testing.T) {
	template, err := Template("")
	if err != nil {
		t.Fatal(err)
	}
	all := Recyclers{HostPath: Recycler{template, 60, 30}, NFS: Recycler{template, 300, 30}}
	pod := func(deadline int64, source corev1.VolumeSource) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "recycler-for-old"},
			Spec: corev1.PodSpec{
				ActiveDeadlineSeconds: &deadline, RestartPolicy: corev1.RestartPolicyNever,
				Volumes: []corev1.Volume{{Name: "vol", VolumeSource: source}},
				Containers: []corev1.Container{{
					Name: "pv-recycler", Image: "registry.k8s.io/build-image/debian-base:bookworm-v1.0.6", Command: []string{"/bin/sh"},
					Args:         []string{"-c", `test -e /scrub && find /scrub -mindepth 1 -delete && test -z "$(ls -A /scrub)" || exit 1`},
					VolumeMounts: []corev1.VolumeMount{{Name: "vol", MountPath: "/scrub"}},
				}},
			},
		}
	}
	onHost := corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp/data"}}
	for name, tc := range map[string]struct {
		volume *corev1.PersistentVolume
		want   *corev1.Pod
	}{
		"a small one has the minimum":             {volume("1Gi", hostPath), pod(60, onHost)},
		"two Gi are not more than that":           {volume("2Gi", hostPath), pod(60, onHost)},
		"a large one has time by its size alone":  {volume("5Gi", hostPath), pod(150, onHost)},
		"a part of a Gi does not count":           {volume("5631Mi", hostPath), pod(150, onHost)},
		"one without a size has the minimum":      {volume("", hostPath), pod(60, onHost)},
		"NFS has times of its own, and a server":  {volume("1Gi", nfs), pod(300, corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs.example", Path: "/exports"}})},
		"a large NFS volume has time by its size": {volume("20Gi", nfs), pod(600, corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs.example", Path: "/exports"}})},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, all.For(tc.volume).Pod(tc.volume)); diff != "" {
				t.Error(diff)
			}
		})
	}
	if all.For(volume("1Gi", csi)) != nil {
		t.Error("a CSI volume is recycled")
	}
	if diff := cmp.Diff(builtIn(), template); diff != "" {
		t.Errorf("the template was changed: %s", diff)
	}
}

func TestTheTemplateOfAFile(t *testing.T) {
	const own = `apiVersion: v1
kind: Pod
metadata: {name: mine, generateName: mine-, namespace: %s, labels: {a: b}}
spec:
  activeDeadlineSeconds: 5
  containers: [{name: c, image: own}]
  volumes: [{name: first, emptyDir: {}}, {name: second, emptyDir: {}}]
`
	for namespace, want := range map[string]string{"recyclers": "recyclers", `""`: "default"} {
		path := filepath.Join(t.TempDir(), "pod.yaml")
		if err := os.WriteFile(path, []byte(strings.Replace(own, "%s", namespace, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		template, err := Template(path)
		if err != nil {
			t.Fatal(err)
		}
		r := Recycler{template, 60, 30}
		got := r.Pod(volume("1Gi", hostPath))
		other := volume("1Gi", nfs)
		other.Name = "other"
		_ = r.Pod(other) // is no part of the first one
		if got.Namespace != want || got.Name != "recycler-for-old" || got.GenerateName != "" || got.Labels["a"] != "b" ||
			*got.Spec.ActiveDeadlineSeconds != 60 || got.Spec.Containers[0].Image != "own" {
			t.Errorf("got %v", got)
		}
		volumes := []corev1.Volume{{Name: "first", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp/data"}}},
			{Name: "second", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		if diff := cmp.Diff(volumes, got.Spec.Volumes); diff != "" {
			t.Error(diff)
		}
	}
}

func TestATemplateThatCannotBeUsedSaysWhy(t *testing.T) {
	for name, tc := range map[string]struct{ content, want string }{
		"no pod":         {"apiVersion: v1\nkind: Service\n", "failed decoding file: it holds a *v1.Service, not a Pod"},
		"no object":      {"nothing of the kind\n", "failed decoding file: couldn't get version/kind; json parse error:"},
		"no such kind":   {"apiVersion: v7\nkind: Pod\n", `failed decoding file: no kind "Pod" is registered for version "v7"`},
		"an empty file":  {"", "file was empty: PATH"},
		"without volume": {"apiVersion: v1\nkind: Pod\n", "pod specification (PATH): does not contain any volume(s)"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pod.yaml")
			if err := os.WriteFile(path, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Template(path)
			if err == nil || !strings.Contains(err.Error(), strings.Replace(tc.want, "PATH", path, 1)) {
				t.Errorf("says %v", err)
			}
		})
	}
	if _, err := Template("/nonexistent"); err == nil || err.Error() != "failed to read file path /nonexistent: open /nonexistent: no such file or directory" {
		t.Errorf("says %v", err)
	}
}

func TestWhatTheStateOfARecyclerPodMeans(t *testing.T) {
	pod := func(phase corev1.PodPhase, message string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Phase: phase, Message: message}}
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		over bool
		why  string
	}{
		"a new one runs":                      {pod("", ""), false, ""},
		"a pending one runs":                  {pod(corev1.PodPending, "waits"), false, ""},
		"a running one runs":                  {pod(corev1.PodRunning, ""), false, ""},
		"one of an unknown state runs":        {pod(corev1.PodUnknown, "lost"), false, ""},
		"one that has succeeded has recycled": {pod(corev1.PodSucceeded, ""), true, ""},
		"one that failed says why":            {pod(corev1.PodFailed, "disk is broken"), true, "failed to recycle volume: disk is broken"},
		"or that nobody knows":                {pod(corev1.PodFailed, ""), true, "failed to recycle volume: pod failed, pod.Status.Message unknown"},
		"one that is gone has not recycled":   {nil, true, "failed to recycle volume: recycler pod was deleted"},
	} {
		t.Run(name, func(t *testing.T) {
			got, why := OutcomeOf(tc.pod), ""
			if got.Err != nil {
				why = got.Err.Error()
			}
			if got.Over != tc.over || why != tc.why {
				t.Errorf("got %v, %q", got.Over, why)
			}
		})
	}
}

func TestWhichEventsAreRetold(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "recycler-for-old", UID: "u"}}
	about := func(namespace, name string, uid types.UID) *corev1.Event {
		return &corev1.Event{Type: "Warning", Message: "no node", InvolvedObject: corev1.ObjectReference{Namespace: namespace, Name: name, UID: uid}}
	}
	for name, tc := range map[string]struct {
		event *corev1.Event
		want  bool
	}{
		"that of the pod":                      {about("default", "recycler-for-old", "u"), true},
		"one that names no UID":                {about("default", "recycler-for-old", ""), true},
		"not that of an earlier pod":           {about("default", "recycler-for-old", "v"), false},
		"not that of another one":              {about("default", "recycler-for-new", "u"), false},
		"not that of one in another namespace": {about("team", "recycler-for-old", ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Of(pod, tc.event); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
