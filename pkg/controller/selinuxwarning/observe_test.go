package selinuxwarning

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestWhatAVolumeIs has a row for each kind of volume.
func TestWhatAVolumeIs(t *testing.T) {
	claim, pv := bound("a", "vol-1")
	change := func(f func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume)) []runtime.Object {
		c, v := claim.DeepCopy(), pv.DeepCopy()
		f(c, v)
		return []runtime.Object{c, v}
	}
	source := func(s corev1.PersistentVolumeSource) []runtime.Object {
		return change(func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Spec.PersistentVolumeSource = s })
	}
	data := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}
	for name, tc := range map[string]struct {
		volume    corev1.VolumeSource
		objects   []runtime.Object
		id, waits string
		supports  bool
	}{
		"a claim of a CSI volume":       {data, []runtime.Object{claim, pv, csiDriver(true)}, "kubernetes.io/csi/disk.example.com^vol-1", "", true},
		"without support of the driver": {data, []runtime.Object{claim, pv, csiDriver(false)}, "kubernetes.io/csi/disk.example.com^vol-1", "", false},
		"without a CSIDriver":           {data, []runtime.Object{claim, pv}, "kubernetes.io/csi/disk.example.com^vol-1", "", false},
		"a driver that does not say":    {data, []runtime.Object{claim, pv, &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}}}, "kubernetes.io/csi/disk.example.com^vol-1", "", false},
		"no claim":                      {data, nil, "", "there is no claim data", false},
		"no volume":                     {data, []runtime.Object{claim}, "", "there is no volume pv-a", false},
		"a claim that is not bound": {data, change(func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Status.Phase = corev1.ClaimPending
		}), "", "claim data is not bound", false},
		"a claim that names no volume": {data, change(func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.Spec.VolumeName = "" }), "", "claim data is not bound", false},
		"a volume of another claim":    {data, change(func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "x" }), "", "volume pv-a is not bound to claim data", false},
		"a volume of no claim":         {data, change(func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Spec.ClaimRef = nil }), "", "volume pv-a is not bound to claim data", false},
		"an in-tree volume is translated": {data, source(corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-9"}}),
			"kubernetes.io/csi/ebs.csi.aws.com^vol-9", "", false},
		"iSCSI": {data, source(corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: "10.0.0.1", IQN: "iqn.x", Lun: 3}}),
			"kubernetes.io/iscsi/10.0.0.1:iqn.x:3", "", true},
		"Fibre Channel": {data, source(corev1.PersistentVolumeSource{FC: &corev1.FCVolumeSource{TargetWWNs: []string{"1", "2"}, Lun: ptr.To[int32](3)}}),
			"kubernetes.io/fc/[1 2]:3", "", true},
		"Fibre Channel by its identifier": {data, source(corev1.PersistentVolumeSource{FC: &corev1.FCVolumeSource{WWIDs: []string{"1"}}}), "kubernetes.io/fc/[1]", "", true},
		"Fibre Channel without a unit":    {data, source(corev1.PersistentVolumeSource{FC: &corev1.FCVolumeSource{TargetWWNs: []string{"1"}}}), "", "", false},
		"NFS has one label always":        {data, source(corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{}}), "", "", false},
		"iSCSI of the pod":                {corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "10.0.0.1", IQN: "iqn.x", Lun: 3}}, nil, "kubernetes.io/iscsi/10.0.0.1:iqn.x:3", "", true},
		"in-tree of the pod":              {corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-9"}}, nil, "kubernetes.io/csi/ebs.csi.aws.com^vol-9", "", false},
		"CSI of the pod is its own":       {corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: driver}}, []runtime.Object{csiDriver(true)}, "", "", false},
		"no source that is shared":        {corev1.VolumeSource{}, nil, "", "", false},
		"a claim of somebody else where the pod's is to be": {corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}},
			change(func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.Name = "web-data" }), "", "claim web-data was not made for the pod", false},
		"the pod's own claim": {corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}},
			change(func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
				c.Name = "web-data"
				c.OwnerReferences = []metav1.OwnerReference{{UID: "a-web", Controller: ptr.To(true)}}
			}), "kubernetes.io/csi/disk.example.com^vol-1", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := aPod("a", "web", level("s0"))
			pod.Spec.Volumes[0].VolumeSource = tc.volume
			w := newWorld(t, append(tc.objects, pod)...)
			o, err := w.observe(t.Context(), client.ObjectKeyFromObject(pod))
			if err != nil || len(o.mounts) != 1 {
				t.Fatalf("got %v, %v", o, err)
			}
			if m := o.mounts[0]; string(m.id) != tc.id || m.waits != tc.waits || m.supported != tc.supports {
				t.Errorf("got %+v", m)
			}
		})
	}
}

func TestTwoLabelsInAPod(t *testing.T) {
	pod := aPod("a", "one", nil)
	pod.Spec.Containers = []corev1.Container{container(level("s0"), "scratch"), container(level("s1"), "scratch")}
	pod.Spec.Volumes = []corev1.Volume{{Name: "scratch"}}
	w := newWorld(t, pod)
	if err := w.Reconcile(t.Context(), client.ObjectKeyFromObject(pod)).Err(); err != nil {
		t.Fatal(err)
	}
	if got := w.Told(); got != `Warning MultipleSELinuxLabels Volume "scratch" is mounted twice with different SELinux labels inside this pod` {
		t.Errorf("told %q", got)
	}
	pod.Spec.Volumes[0].PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}
	if told := w.judge(pod); told != nil {
		t.Errorf("told %v before the claim is bound", told)
	}
	w.Cache(t, shared(true)...)
	if told := w.judge(pod); len(told) != 1 || len(w.book.pods) > 0 {
		t.Errorf("told %v, and noted %v", told, w.book.pods)
	}
}
