package attachdetach

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func TestVolumesAreCountedWhenSomebodyAsks(t *testing.T) {
	rig := fixture.New(fake.NewClientset(), noon)
	c := controllerOf(t, rig, Options{})
	wanted, left := reporting("n1", false), node("n2")
	left.Status.VolumesAttached = []corev1.AttachedVolume{{Name: nameOf(1)}}
	inline := podOf("inline", 0, "n2")
	inline.Spec.Volumes = []corev1.Volume{
		{Name: "a", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "inline.example"}}},
		{Name: "b", VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "p", IQN: "i"}}},
		{Name: "c", VolumeSource: corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s"}}},
	}
	rig.Cache(t, wanted, left, claim(0), pv(0), podOf("web", 0, "n1"), attachedTo("n1"), inline, podOf("unknown", 7, "n2"))
	c.book.nodeSeen("n1", true, false)
	c.recover()
	for _, volume := range c.book.all() {
		o, err := c.observe(t.Context(), key{volume: volume})
		if err != nil {
			t.Fatal(err)
		}
		c.note(key{volume: volume}, plan(o, noon).Note(nil))
	}
	want := `
# HELP attachdetach_controller_total_volumes [ALPHA] Volumes and nodes that are to be together (desired_state_of_world), or are or may be (actual_state_of_world), by plugin.
# TYPE attachdetach_controller_total_volumes gauge
attachdetach_controller_total_volumes{plugin_name="kubernetes.io/csi:csi.example",state="actual_state_of_world"} 1
attachdetach_controller_total_volumes{plugin_name="kubernetes.io/csi:csi.example",state="desired_state_of_world"} 1
# HELP storage_count_attachable_volumes_in_use [ALPHA] Volumes of the pods of a node that can be attached, by plugin; one for each pod.
# TYPE storage_count_attachable_volumes_in_use gauge
storage_count_attachable_volumes_in_use{node="n1",volume_plugin="kubernetes.io/csi:csi.example"} 1
storage_count_attachable_volumes_in_use{node="n2",volume_plugin="kubernetes.io/csi:inline.example"} 1
storage_count_attachable_volumes_in_use{node="n2",volume_plugin="kubernetes.io/iscsi"} 1
`
	if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(want),
		"attachdetach_controller_total_volumes", "storage_count_attachable_volumes_in_use"); err != nil {
		t.Error(err)
	}
}

func TestWhatPlansCount(t *testing.T) {
	forcedBy := func(reason string) float64 {
		n, err := testutil.GetCounterMetricValue(forcedDetaches.WithLabelValues(reason))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	controllerOf(t, fixture.New(fake.NewClientset(), noon), Options{}) // registers the metrics
	late := unused
	late.gone = ago(forceAfter + time.Second)
	for name, tc := range map[string]struct {
		view                  *volumeView
		timeout, outOfService float64
	}{
		"a detach that waited for its node":  {of(has("n1", unused)), 0, 0},
		"a late one, on a node that is well": {of(has("n1", late)), 1, 0},
		"one out of service":                 {of(has("n1", unused), facts("n1", func(f *nodeFacts) { f.outOfService = true })), 0, 1},
		"both":                               {of(has("n1", late), facts("n1", func(f *nodeFacts) { f.outOfService = true })), 1, 0},
	} {
		timeout, outOfService := forcedBy("timeout"), forcedBy("out-of-service")
		cached("n1", there, false)(tc.view)
		for _, count := range planVolume(tc.view, noon).Counts(nil) {
			count.Adds.Add(count.Value)
		}
		if got := forcedBy("timeout") - timeout; got != tc.timeout {
			t.Errorf("%s: counts %v for timeout", name, got)
		}
		if got := forcedBy("out-of-service") - outOfService; got != tc.outOfService {
			t.Errorf("%s: counts %v for out-of-service", name, got)
		}
	}
	for _, tc := range []struct {
		view  *volumeView
		known bool
		want  string
	}{
		{of(), true, "kubernetes.io/csi:csi.example"},
		{of(), false, volumes.CSI},
	} {
		seconds := took(tc.view, tc.known, operation{kind: detachKind, since: ago(3 * time.Second)}, nil, noon)
		if seconds.Value != 3 {
			t.Errorf("took %v", seconds.Value)
		}
		seconds.Observes.Observe(seconds.Value)
		vec, err := testutil.GetHistogramVecFromGatherer(legacyregistry.DefaultGatherer, "storage_operation_duration_seconds",
			map[string]string{"volume_plugin": tc.want, "operation_name": "volume_detach", "status": "success", "migrated": "false"})
		if err != nil || vec.GetAggregatedSampleCount() == 0 {
			t.Errorf("%s: not counted: %v", tc.want, err)
		}
	}
}
