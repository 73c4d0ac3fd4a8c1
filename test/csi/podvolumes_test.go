package csi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// volumesIn has listers of these objects.
func volumesIn(t *testing.T, claims []*corev1.PersistentVolumeClaim, volumes []*corev1.PersistentVolume, drivers ...*storagev1.CSIDriver) PodVolumes {
	t.Helper()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	core, storage := factory.Core().V1(), factory.Storage().V1()
	p := PodVolumesOf(factory)
	add := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, claim := range claims {
		add(core.PersistentVolumeClaims().Informer().GetStore().Add(claim))
	}
	for _, volume := range volumes {
		add(core.PersistentVolumes().Informer().GetStore().Add(volume))
	}
	for _, driver := range drivers {
		add(storage.CSIDrivers().Informer().GetStore().Add(driver))
	}
	return p
}

func boundClaim(name, volume string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "u-claim"},
		Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound}}
}

func boundVolume(source corev1.PersistentVolumeSource) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"},
		Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{UID: "u-claim"}, PersistentVolumeSource: source}}
}

func TestWhatNodesCallTheVolumesOfAPod(t *testing.T) {
	disk := corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "one.example", VolumeHandle: "h"}}
	lun := int32(3)
	notAttached := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "one.example"}, Spec: storagev1.CSIDriverSpec{AttachRequired: new(bool)}}
	pending := boundClaim("data", "pv")
	pending.Status.Phase = corev1.ClaimPending
	for name, tc := range map[string]struct {
		inline  corev1.VolumeSource
		claim   *corev1.PersistentVolumeClaim
		source  corev1.PersistentVolumeSource
		drivers []*storagev1.CSIDriver
		names   []string
		waits   bool
	}{
		"a volume of a driver":     {claim: boundClaim("data", "pv"), source: disk, names: []string{"kubernetes.io/csi/one.example^h"}},
		"one that is not attached": {claim: boundClaim("data", "pv"), source: disk, drivers: []*storagev1.CSIDriver{notAttached}},
		"one of a kind that became a driver": {claim: boundClaim("data", "pv"), names: []string{"kubernetes.io/csi/ebs.csi.aws.com^vol-1"},
			source: corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}},
		"a claim that is not bound":     {claim: pending, source: disk, waits: true},
		"a claim of another volume":     {claim: boundClaim("data", "other"), source: disk, waits: true},
		"a directory":                   {inline: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		"a disk by iSCSI":               {inline: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "10.0.0.1", IQN: "iqn.x", Lun: 2}}, names: []string{"kubernetes.io/iscsi/10.0.0.1:iqn.x:2"}},
		"a disk by fibre channel":       {inline: corev1.VolumeSource{FC: &corev1.FCVolumeSource{TargetWWNs: []string{"a", "b"}, Lun: &lun}}, names: []string{"kubernetes.io/fc/[a b]:3"}},
		"a disk by its identifiers":     {inline: corev1.VolumeSource{FC: &corev1.FCVolumeSource{WWIDs: []string{"a"}}}, names: []string{"kubernetes.io/fc/[a]"}},
		"a disk that became a driver's": {inline: corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{VolumeID: "v"}}, names: []string{"kubernetes.io/csi/cinder.csi.openstack.org^v"}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
			var claims []*corev1.PersistentVolumeClaim
			if tc.claim != nil {
				claims = append(claims, tc.claim)
				tc.inline.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: tc.claim.Name}
			}
			pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: tc.inline}}
			p := volumesIn(t, claims, []*corev1.PersistentVolume{boundVolume(tc.source)}, tc.drivers...)
			names, bound := p.Names(pod)
			if d := cmp.Diff(tc.names, names); d != "" || bound == tc.waits {
				t.Errorf("bound: %v\n%s", bound, d)
			}
		})
	}
}
