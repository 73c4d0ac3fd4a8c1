package volumes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestNamesOfPersistentVolumes(t *testing.T) {
	for name, tc := range map[string]struct {
		source        corev1.PersistentVolumeSource
		want          Name
		plugin, label string
		migrated      bool
	}{
		"CSI": {
			source: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d.example", VolumeHandle: "a/b"}},
			want:   "kubernetes.io/csi/d.example^a/b", plugin: CSI, label: "kubernetes.io/csi:d.example"},
		"AWS is that of its driver": {
			source: corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://eu-1a/vol-1"}},
			want:   "kubernetes.io/csi/ebs.csi.aws.com^vol-1", plugin: CSI, label: "kubernetes.io/csi:ebs.csi.aws.com", migrated: true},
		"GCE is that of its driver": {
			source: corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "disk"}},
			want:   "kubernetes.io/csi/pd.csi.storage.gke.io^projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk", plugin: CSI,
			label: "kubernetes.io/csi:pd.csi.storage.gke.io", migrated: true},
		"vSphere is that of its driver": {
			source: corev1.PersistentVolumeSource{VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{VolumePath: "[ds] a.vmdk"}},
			want:   "kubernetes.io/csi/csi.vsphere.vmware.com^[ds] a.vmdk", plugin: CSI, label: "kubernetes.io/csi:csi.vsphere.vmware.com", migrated: true},
		"iSCSI gets no port": {
			source: corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: "10.0.0.1", IQN: "iqn.2001:x", Lun: 3}},
			want:   "kubernetes.io/iscsi/10.0.0.1:iqn.2001:x:3", plugin: ISCSI, label: ISCSI},
		"FC by names": {
			source: corev1.PersistentVolumeSource{FC: &corev1.FCVolumeSource{TargetWWNs: []string{"a", "b"}, Lun: ptr.To[int32](0)}},
			want:   "kubernetes.io/fc/[a b]:0", plugin: FC, label: FC},
		"FC by identifiers": {
			source: corev1.PersistentVolumeSource{FC: &corev1.FCVolumeSource{WWIDs: []string{"w"}}},
			want:   "kubernetes.io/fc/[w]", plugin: FC, label: FC},
		"FC without either": {source: corev1.PersistentVolumeSource{FC: &corev1.FCVolumeSource{}}},
		"FlexVolume": {
			source: corev1.PersistentVolumeSource{FlexVolume: &corev1.FlexPersistentVolumeSource{Driver: "v/d"}},
			want:   "v/d/pv", plugin: "v/d", label: "v/d"},
		"NFS is never attached":   {source: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/"}}},
		"local is never attached": {source: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/"}}},
	} {
		t.Run(name, func(t *testing.T) {
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: tc.source}}
			got, err := OfPV(pv)
			switch {
			case err != nil:
				t.Fatal(err)
			case tc.want == "" && got != nil:
				t.Errorf("got %+v", got)
			case tc.want != "" && (got == nil || got.Unique != tc.want || got.Plugin != tc.plugin || got.Label() != tc.label || got.Migrated != tc.migrated || got.PV != "pv" || got.Title != "pv"):
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestNamesOfPodVolumes(t *testing.T) {
	for name, tc := range map[string]struct {
		source corev1.VolumeSource
		want   Name
		title  string
	}{
		"iSCSI":       {corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "p:1", IQN: "iqn", Lun: 0}}, "kubernetes.io/iscsi/p:1:iqn:0", "data"},
		"FC":          {corev1.VolumeSource{FC: &corev1.FCVolumeSource{WWIDs: []string{"w"}}}, "kubernetes.io/fc/[w]", "data"},
		"FlexVolume":  {corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Driver: "v/d"}}, "v/d/data", "data"},
		"AWS":         {corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-2"}}, "kubernetes.io/csi/ebs.csi.aws.com^vol-2", "ebs.csi.aws.com-vol-2"},
		"inline CSI":  {corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "d"}}, "", ""},
		"NFS":         {corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s", Path: "/"}}, "", ""},
		"claim":       {corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}, "", ""},
		"nothing set": {corev1.VolumeSource{}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := OfPodVolume(&corev1.Volume{Name: "data", VolumeSource: tc.source}, "ns")
			switch {
			case err != nil:
				t.Fatal(err)
			case (got == nil) != (tc.want == ""), got != nil && (got.Unique != tc.want || got.Title != tc.title || got.PV != ""):
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAVolumeThatCannotBeTranslatedIsAnError(t *testing.T) {
	pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: corev1.PersistentVolumeSource{
		AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://zone/no-volume"}}}}
	if s, err := OfPV(pv); err == nil {
		t.Errorf("got %+v", s)
	}
	if s, err := OfPodVolume(&corev1.Volume{VolumeSource: corev1.VolumeSource{AWSElasticBlockStore: pv.Spec.AWSElasticBlockStore}}, "ns"); err == nil {
		t.Errorf("got %+v", s)
	}
}

func TestNamesOfAttachments(t *testing.T) {
	const want = "csi-fdef298eb16db6fa42906ef1ff09a93a7f3028f8290cc9d71628ff91c237bfa7"
	if got := Attachment("driver", "handle", "node"); got != want {
		t.Errorf("got %s", got)
	}
	for name, want := range map[Name][3]string{
		"kubernetes.io/csi/d^h":      {"d", "h", "yes"},
		"kubernetes.io/csi/d^a^b/c":  {"d", "a^b/c", "yes"},
		"kubernetes.io/csi/d":        {},
		"kubernetes.io/csi/^h":       {},
		"kubernetes.io/aws-ebs/vol":  {},
		"kubernetes.io/iscsi/p:i:^0": {},
	} {
		driver, handle, is := ParseCSI(name)
		if is != (want[2] != "") || is && (driver != want[0] || handle != want[1]) {
			t.Errorf("%s: got %q, %q, %t", name, driver, handle, is)
		}
	}
	for name, want := range map[Name]string{"kubernetes.io/csi/d^h": CSI, "kubernetes.io/fc/[w]": FC, "kubernetes.io/iscsi/p:i:0": ISCSI, "v/d/pv": "v/d", "pv": ""} {
		if got := PluginOf(name); got != want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestVolumesOfOneNode(t *testing.T) {
	for name, tc := range map[string]struct {
		modes []corev1.PersistentVolumeAccessMode
		want  bool
	}{
		"no modes":                {nil, false},
		"once":                    {[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, true},
		"one pod":                 {[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}, true},
		"once, and read by many":  {[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadOnlyMany}, false},
		"written by many":         {[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, false},
		"read by many":            {[]corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}, false},
		"once, and pods that are": {[]corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod}, true},
	} {
		if got := (Source{Spec: &corev1.PersistentVolumeSpec{AccessModes: tc.modes}}).OneNode(); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
	if (Source{}).OneNode() {
		t.Error("the volume of a pod has no access modes")
	}
}

func TestClaimsOfPods(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "u"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}},
	}}}
	claim := func(namespace, name string, owner string) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "c"}}
		if owner != "" {
			c.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", UID: pod.UID, Name: owner, Controller: ptr.To(true)}}
			if owner != pod.Name {
				c.OwnerReferences[0].UID = "other"
			}
		}
		return c
	}
	for name, tc := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  bool
	}{
		"its claim":                        {claim("ns", "data", ""), true},
		"that of another namespace":        {claim("other", "data", ""), false},
		"another claim":                    {claim("ns", "more", ""), false},
		"the one made for it":              {claim("ns", "web-tmp", "web"), true},
		"one of that name made for others": {claim("ns", "web-tmp", "old"), false},
		"one of that name made by hand":    {claim("ns", "web-tmp", ""), false},
	} {
		if got := Uses(pod, tc.claim); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{UID: "c"}}}
	bound := claim("ns", "data", "")
	bound.Spec.VolumeName, bound.Status.Phase = "pv", corev1.ClaimBound
	pending, elsewhere, misbound := bound.DeepCopy(), bound.DeepCopy(), bound.DeepCopy()
	pending.Status.Phase, elsewhere.Spec.VolumeName, misbound.UID = corev1.ClaimPending, "pw", "other"
	if !Bound(bound, pv) || Bound(pending, pv) || Bound(elsewhere, pv) || Bound(misbound, pv) || Bound(bound, &corev1.PersistentVolume{ObjectMeta: pv.ObjectMeta}) {
		t.Error("a claim and a volume are bound when both say so")
	}
}
