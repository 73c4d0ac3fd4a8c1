package persistentvolumebinder

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
)

func TestTheDriversOfMigratedPlugins(t *testing.T) {
	for plugin, want := range map[string]string{
		"kubernetes.io/aws-ebs": "ebs.csi.aws.com", "kubernetes.io/gce-pd": "pd.csi.storage.gke.io", "kubernetes.io/azure-disk": "disk.csi.azure.com",
		"kubernetes.io/azure-file": "file.csi.azure.com", "kubernetes.io/cinder": "cinder.csi.openstack.org",
		"kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com", "kubernetes.io/portworx-volume": "pxd.portworx.com",
		"kubernetes.io/rbd": "", "kubernetes.io/host-path": "", "ebs.csi.aws.com": "", "": "",
	} {
		if got := driverOf(plugin); got != want {
			t.Errorf("%s: got %q", plugin, got)
		}
	}
}

func TestWhatMigrationAsksOfAVolume(t *testing.T) {
	for name, tc := range map[string]struct {
		volume *corev1.PersistentVolume
		want   string
	}{
		"nobody made it":                          {volume("v", finalizers(deletionProtection, externalProtection), noted(volumehelpers.AnnMigratedTo, "x")), ""},
		"a driver made it":                        {volume("v", finalizers(deletionProtection, externalProtection), provisionedByName("csi.example.com")), ""},
		"a driver made it, and it was marked":     {volume("v", provisionedByName("csi.example.com"), noted(volumehelpers.AnnMigratedTo, "x")), "{}"},
		"a driver made it, marked with nothing":   {volume("v", provisionedByName("csi.example.com"), noted(volumehelpers.AnnMigratedTo, "")), ""},
		"no name made it, and it was marked":      {volume("v", provisionedByName(""), noted(volumehelpers.AnnMigratedTo, "x")), "{}"},
		"a migrated plugin made it":               {volume("v", finalizers("a", deletionProtection), provisionedByName("kubernetes.io/aws-ebs")), "{ebs.csi.aws.com,a}"},
		"and that is said":                        {volume("v", finalizers(externalProtection), provisionedByName("kubernetes.io/aws-ebs"), noted(volumehelpers.AnnMigratedTo, "ebs.csi.aws.com")), ""},
		"a plugin made it, and it is deleted":     {volume("v", policy(deletePolicy), provisionedByName("kubernetes.io/host-path")), "{kubernetes.io/pv-controller}"},
		"a plugin made it, and it is going":       {volume("v", ending, policy(deletePolicy), finalizers("a"), provisionedByName("kubernetes.io/host-path")), ""},
		"a plugin made it, and it is protected":   {volume("v", policy(deletePolicy), finalizers(deletionProtection), provisionedByName("kubernetes.io/host-path")), ""},
		"a plugin made it, and it is retained":    {volume("v", finalizers(deletionProtection, "a"), provisionedByName("kubernetes.io/rbd")), "{a}"},
		"a plugin made it, and it is recycled":    {volume("v", policy(recyclePolicy), finalizers(deletionProtection), provisionedByName("kubernetes.io/nfs")), "{}"},
		"a plugin made it that was migrated once": {volume("v", policy(deletePolicy), finalizers(externalProtection), provisionedByName("kubernetes.io/rbd"), noted(volumehelpers.AnnMigratedTo, "rbd.csi.ceph.com")), "{kubernetes.io/pv-controller}"},
	} {
		before := tc.volume.DeepCopy()
		got, changed := migratedVolume(tc.volume)
		if changed != (tc.want != "") || changed && marks(got) != tc.want {
			t.Errorf("%s: got %s, changed: %t", name, marks(got), changed)
		}
		if marks(before) != marks(tc.volume) || !slices.Equal(before.Finalizers, tc.volume.Finalizers) {
			t.Errorf("%s: the cached volume was changed", name)
		}
	}
}

func TestWhatMigrationAsksOfAClaim(t *testing.T) {
	const ebs, beta = "kubernetes.io/aws-ebs", volumehelpers.AnnBetaStorageProvisioner
	by := func(name string) onClaim { return says(volumehelpers.AnnStorageProvisioner, name) }
	marked := func(driver string) onClaim { return says(volumehelpers.AnnMigratedTo, driver) }
	for name, tc := range map[string]struct {
		claim   *corev1.PersistentVolumeClaim
		want    string
		changed bool
	}{
		"nobody provisions it":           {claim("c", marked("x")), "x", false},
		"a migrated plugin does":         {claim("c", by(ebs)), "ebs.csi.aws.com", true},
		"only the beta annotation says":  {claim("c", says(beta, ebs)), "ebs.csi.aws.com", true},
		"the other one counts":           {claim("c", by("csi.example.com"), says(beta, ebs), marked("x")), "", true},
		"also if it is empty":            {claim("c", by(""), says(beta, ebs), marked("x")), "", true},
		"a driver, and an empty mark":    {claim("c", by("csi.example.com"), marked("")), "", false},
		"no name, and nothing is marked": {claim("c", by("")), "", false},
	} {
		got, changed := migratedClaim(tc.claim)
		if changed != tc.changed || got.Annotations[volumehelpers.AnnMigratedTo] != tc.want {
			t.Errorf("%s: got %v, changed: %t", name, got.Annotations, changed)
		}
	}
}

func TestTheMigrationOfAVolumeIsItsFirstWrite(t *testing.T) {
	got, _ := played(planVolume(observedVolume{volume: volume("v", in(""), provisionedByName("kubernetes.io/aws-ebs")), plugins: twoPlugins{}}, noon))
	compare(t, got, "write volume v free {ebs.csi.aws.com}", "write volume v Available")
}
