package persistentvolumeexpander

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var theKey = key{Namespace: "team", Name: "data"}

// rig is the controller with a claim and its volume, cached and live.
type rig struct {
	*fixture.Rig
	*Controller
}

func newRig(t *testing.T, c *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) rig {
	t.Helper()
	r := fixture.New(fake.NewClientset(c, v), noon)
	controller, err := New(r.In.Core().V1().PersistentVolumeClaims(), r.In.Core().V1().PersistentVolumes(), r.Hand())
	if err != nil {
		t.Fatal(err)
	}
	r.Cache(t, c, v)
	controller.LookLive(fixture.Live(r.Client))
	return rig{r, controller}
}

func (r rig) claim(t *testing.T) *corev1.PersistentVolumeClaim {
	t.Helper()
	c, err := r.Client.CoreV1().PersistentVolumeClaims("team").Get(t.Context(), "data", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (r rig) volume(t *testing.T) *corev1.PersistentVolume {
	t.Helper()
	v, err := r.Client.CoreV1().PersistentVolumes().Get(t.Context(), "pv", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// looks is the claim and its volume in words.
func (r rig) looks(t *testing.T) string {
	t.Helper()
	c, v := r.claim(t), r.volume(t)
	var conditions []string
	for _, condition := range c.Status.Conditions {
		conditions = append(conditions, string(condition.Type))
	}
	return fmt.Sprintf("has %s of %s, allocated %s, %s %v by %s; volume %s, before %s", has(c), wants(c), c.Status.AllocatedResources.Storage(),
		stateOf(c), conditions, c.Annotations[Resizer], offers(v), v.Annotations[PreResize])
}

func TestAFileSystemIsLeftToTheNode(t *testing.T) {
	r := newRig(t, claim("2Gi", "1Gi"), volume("1Gi", flex))
	if err := r.Reconcile(t.Context(), theKey).Err(); err != nil {
		t.Fatal(err)
	}
	const want = "has 1Gi of 2Gi, allocated 2Gi, NodeResizePending [Resizing FileSystemResizePending] by example/flex; volume 2Gi, before 1Gi"
	if got := r.looks(t); got != want {
		t.Errorf("got %s", got)
	}
	if got := r.Requests(); !strings.HasPrefix(got, "get persistentvolumes, patch persistentvolumeclaims/status, patch persistentvolumes, patch persistentvolumeclaims/status, patch persistentvolumes") {
		t.Errorf("asked %s", got)
	}
	if told := r.Told(); told != "" {
		t.Errorf("told %s", told)
	}
	// The node expands it, and nothing but the annotation is left.
	done := r.claim(t)
	done.Status.Capacity, done.Status.Conditions, done.Status.AllocatedResourceStatuses = storage("2Gi"), nil, nil
	again := newRig(t, done, r.volume(t))
	if err := again.Reconcile(t.Context(), theKey).Err(); err != nil {
		t.Fatal(err)
	}
	if got := again.looks(t); got != "has 2Gi of 2Gi, allocated 2Gi,  [] by example/flex; volume 2Gi, before " {
		t.Errorf("got %s", got)
	}
}

func TestABlockDeviceHasItsSizeAtOnce(t *testing.T) {
	v := volume("1Gi", flex)
	v.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
	r := newRig(t, claim("2Gi", "1Gi"), v)
	if err := r.Reconcile(t.Context(), theKey).Err(); err != nil {
		t.Fatal(err)
	}
	if got := r.looks(t); got != "has 2Gi of 2Gi, allocated 2Gi,  [] by example/flex; volume 2Gi, before " {
		t.Errorf("got %s", got)
	}
	if told := r.Told(); told != "Normal VolumeResizeSuccessful ExpandVolume succeeded for volume team/data" {
		t.Errorf("told %s", told)
	}
}

func TestWhatHasBegunIsFinishedFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		size  string
		want  string
	}{
		"the recorded size comes first": {
			expanding(claim("2Gi", "1Gi"), "3Gi", corev1.PersistentVolumeClaimControllerResizeInProgress), "1Gi",
			"has 1Gi of 2Gi, allocated 3Gi, NodeResizePending [Resizing FileSystemResizePending] by example/flex; volume 3Gi, before 1Gi"},
		"a node that gave up tries again": {
			expanding(claim("2Gi", "1Gi"), "2Gi", corev1.PersistentVolumeClaimNodeResizeInfeasible), "2Gi",
			"has 1Gi of 2Gi, allocated 2Gi, NodeResizePending [FileSystemResizePending] by ; volume 2Gi, before 1Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tc.claim, volume(tc.size, flex))
			if err := r.Reconcile(t.Context(), theKey).Err(); err != nil {
				t.Fatal(err)
			}
			if got := r.looks(t); got != tc.want {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestRefusedWritesAreToldAndTriedAgain(t *testing.T) {
	no := errors.New("no")
	old := expanding(claim("2Gi", "1Gi"), "2Gi", corev1.PersistentVolumeClaimControllerResizeInProgress)
	for name, tc := range map[string]struct {
		claim    *corev1.PersistentVolumeClaim
		volume   *corev1.PersistentVolume
		block    bool
		resource string
		err      error
		nth      int // which patch of that resource is refused
		told     string
	}{
		"naming the resizer": {claim("2Gi", "1Gi"), volume("1Gi", ebs), false, "persistentvolumeclaims", no, 1,
			"Normal ExternalExpanding CSI migration enabled for kubernetes.io/aws-ebs; waiting for external resizer to expand the pvc; " +
				`Warning ExternalExpanding error setting resizer annotation to pvc team/data, with error patchPVCStatus failed to patch PVC "data": no`},
		"beginning": {claim("2Gi", "1Gi"), volume("1Gi", flex), false, "persistentvolumeclaims", no, 1,
			`Warning VolumeResizeFailed error updating pvc team/data with resize in progress: patchPVCStatus failed to patch PVC "data": no`},
		"a conflict is not told": {claim("2Gi", "1Gi"), volume("1Gi", flex), false, "persistentvolumeclaims",
			apierrors.NewConflict(corev1.Resource("persistentvolumeclaims"), "data", no), 1, ""},
		"the size of the volume": {claim("2Gi", "1Gi"), volume("1Gi", flex), false, "persistentvolumes", no, 1,
			`Warning VolumeResizeFailed error updating pv for pvc team/data: error Patching PV "pv" with error : no`},
		"what the node is to do": {claim("2Gi", "1Gi"), volume("1Gi", flex), false, "persistentvolumeclaims", no, 2,
			`Warning VolumeResizeFailed error marking pvc team/data for node expansion: error marking pvc team/data for node expansion: patchPVCStatus failed to patch PVC "data": no`},
		"the size before": {old, volume("2Gi", flex), false, "persistentvolumes", no, 1,
			"Warning VolumeResizeFailed error marking pvc team/data for node expansion: error updating pv pv annotation (volume.alpha.kubernetes.io/pre-resize-capacity) " +
				`with pre-resize capacity 1Gi: error Patching PV "pv" with error : no`},
		"the end of a block device": {claim("2Gi", "1Gi"), volume("1Gi", flex), true, "persistentvolumeclaims", no, 2,
			`Warning VolumeResizeFailed error marking pvc team/data as resized: patchPVCStatus failed to patch PVC "data": no`},
		"taking the annotation away is not told": {claim("1Gi", "1Gi"), preResize(volume("1Gi", flex)), false, "persistentvolumes", no, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.block {
				tc.volume.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
			}
			r := newRig(t, tc.claim, tc.volume)
			failNth(r.Client, tc.resource, tc.nth, tc.err)
			if err := r.Reconcile(t.Context(), theKey).Err(); !errors.Is(err, tc.err) {
				t.Errorf("got %v", err)
			}
			if told := r.Told(); told != tc.told {
				t.Errorf("told %s", told)
			}
		})
	}
}

func TestAVolumeThatIsNotThereIsWaitedFor(t *testing.T) {
	r := newRig(t, claim("2Gi", "1Gi"), volume("1Gi", csi))
	store := r.In.Core().V1().PersistentVolumes().Informer().GetStore()
	if err := store.Delete(volume("1Gi", csi)); err != nil {
		t.Fatal(err)
	}
	if err := r.Reconcile(t.Context(), theKey).Err(); err == nil || r.Told() != "" || r.Requests() != "" {
		t.Errorf("got %v, asked %s", err, r.Requests())
	}
	if err := r.Reconcile(t.Context(), key{Namespace: "team", Name: "gone"}).Err(); err != nil {
		t.Errorf("a claim that is gone: %v", err)
	}
}

func TestOnlyTheLiveVolumeIsWrittenTo(t *testing.T) {
	r := newRig(t, claim("2Gi", "1Gi"), volume("1Gi", flex))
	live := volume("1Gi", flex)
	live.Spec.ClaimRef.UID = "another"
	if err := r.Client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("persistentvolumes"), live, ""); err != nil {
		t.Fatal(err)
	}
	if err := r.Reconcile(t.Context(), theKey).Err(); !errors.Is(err, errNotItsVolume) {
		t.Errorf("got %v", err)
	}
	r.Fail("get", "persistentvolumes", errors.New("away"))
	if err := r.Reconcile(t.Context(), theKey).Err(); err == nil || !strings.Contains(err.Error(), "read volume pv live: away") {
		t.Errorf("got %v", err)
	}
	if got := r.Requests(); strings.Contains(got, "patch") || r.Told() != "" {
		t.Errorf("asked %s", got)
	}
}

func TestAnExpansionIsMeasured(t *testing.T) {
	counted := func(status string) uint64 {
		vec, err := testutil.GetHistogramVecFromGatherer(legacyregistry.DefaultGatherer, "storage_operation_duration_seconds", map[string]string{
			"volume_plugin": "measured/flex", "operation_name": "expand_volume", "status": status, "migrated": "false"})
		if err != nil {
			return 0 // none yet
		}
		return vec.GetAggregatedSampleCount()
	}
	v := volume("1Gi", corev1.PersistentVolumeSource{FlexVolume: &corev1.FlexPersistentVolumeSource{Driver: "measured/flex"}})
	for nth, want := range map[int]string{1: "fail-unknown", 2: "fail-unknown", 0: "success"} {
		before := counted("success") + counted("fail-unknown")
		of := counted(want)
		r := newRig(t, claim("2Gi", "1Gi"), v)
		failNth(r.Client, "persistentvolumeclaims", nth, errors.New("no"))
		_ = r.Reconcile(context.Background(), theKey)
		if counted(want) != of+1 || counted("success")+counted("fail-unknown") != before+1 {
			t.Errorf("%s: %d more", want, counted(want)-of)
		}
	}
}
