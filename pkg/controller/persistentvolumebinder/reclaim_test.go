package persistentvolumebinder

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
)

func TestWhatIsReclaimedAsItIsNow(t *testing.T) {
	const deletePolicy, recyclePolicy = corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle
	recycling := operation{Kind: recycles, Volume: "pv", UID: "uid-pv"}
	for name, tc := range map[string]struct {
		op   operation
		pv   *corev1.PersistentVolume
		want bool
	}{
		"a volume that its claim has left":              {deletion, toReclaim(deletePolicy), true},
		"one that is to be emptied":                     {recycling, toReclaim(recyclePolicy), true},
		"another volume of the name":                    {operation{Kind: deletes, Volume: "pv", UID: "former"}, toReclaim(deletePolicy), false},
		"one that belongs to nobody":                    {deletion, toReclaim(deletePolicy, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }), false},
		"one that is kept for any claim of the name":    {deletion, toReclaim(deletePolicy, of("data", "")), false},
		"one that is bound again":                       {deletion, toReclaim(deletePolicy, in(corev1.VolumeBound)), false},
		"one that is to be emptied now and not deleted": {deletion, toReclaim(recyclePolicy), false},
		"one that is to be kept now":                    {recycling, toReclaim(corev1.PersistentVolumeReclaimRetain), false},
		"one that is left to a driver":                  {deletion, toReclaim(deletePolicy, noted(volumehelpers.AnnMigratedTo, "d")), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reclaims(tc.op, tc.pv, twoPlugins{}); (got != nil) != tc.want {
				t.Errorf("by %v", got)
			}
		})
	}
	for name, tc := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  bool
	}{
		"a claim that names the volume":      {claim("data", wantsVolume("pv")), true},
		"a claim that names no volume yet":   {claim("data"), true},
		"a claim that names another volume":  {claim("data", wantsVolume("other")), false},
		"a claim that was bound to this one": {claim("data", boundOnce("pv")), true},
	} {
		if got := mayHave(tc.claim, toReclaim(deletePolicy)); got != tc.want {
			t.Errorf("%s may have it: %t", name, got)
		}
	}
}
