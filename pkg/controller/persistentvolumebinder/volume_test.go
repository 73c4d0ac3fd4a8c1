package persistentvolumebinder

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
)

const (
	deletePolicy  = corev1.PersistentVolumeReclaimDelete
	retainPolicy  = corev1.PersistentVolumeReclaimRetain
	recyclePolicy = corev1.PersistentVolumeReclaimRecycle
)

var (
	released = in(corev1.VolumeReleased)
	failedIn = in(corev1.VolumeFailed)
	left     = of("c", "uid-c")
)

func TestAVolume(t *testing.T) {
	byController := noted(volumehelpers.AnnBoundByController, yes)
	elsewhere := claim("c", boundOnce("other"))
	for name, tc := range map[string]struct {
		o    observedVolume
		want []string
	}{
		"it is new":                              {observedVolume{volume: volume("v", in(""))}, []string{"write volume v Available"}},
		"it is free":                             {observedVolume{volume: volume("v")}, nil},
		"its claim was taken off":                {observedVolume{volume: volume("v", released)}, []string{"write volume v Available"}},
		"it had failed":                          {observedVolume{volume: volume("v", failedIn)}, []string{"write volume v Available"}},
		"it names a claim without a UID":         {observedVolume{volume: volume("v", of("c", ""), in(corev1.VolumePending))}, []string{"write volume v Available"}},
		"its claim is gone":                      {observedVolume{volume: volume("v", left, in(corev1.VolumeBound))}, []string{"write volume v Released"}},
		"that was told":                          {observedVolume{volume: volume("v", left, released)}, nil},
		"so was that it failed":                  {observedVolume{volume: volume("v", left, failedIn)}, nil},
		"its claim does not name it yet":         {observedVolume{volume: volume("v", left), claim: claim("c")}, nil},
		"its claim names it":                     {observedVolume{volume: volume("v", left), claim: claim("c", boundOnce("v"))}, []string{"write volume v Bound"}},
		"its claim is back":                      {observedVolume{volume: volume("v", left, released), claim: claim("c", boundOnce("v"))}, []string{"write volume v Bound"}},
		"its claim names it and that was told":   {observedVolume{volume: volume("v", left, in(corev1.VolumeBound)), claim: claim("c", boundOnce("v"))}, nil},
		"its claim has another, it was chosen":   {observedVolume{volume: volume("v", left, byController), claim: elsewhere}, []string{"write volume v free {}"}},
		"its claim has another, it was prebound": {observedVolume{volume: volume("v", left, in(corev1.VolumeBound)), claim: elsewhere}, []string{"write volume v of c[] {}", "write volume v Available"}},
		"its claim has another, it was made for it": {observedVolume{volume: volume("v", left, policy(deletePolicy), provisionedByName("csi.example.com"), in(corev1.VolumeBound)), claim: elsewhere},
			[]string{"write volume v Released"}},
		"its claim has another, it was made for it and is kept": {observedVolume{volume: volume("v", left, byController, provisionedByName("csi.example.com")), claim: elsewhere},
			[]string{"write volume v free {}"}},
		"its claim has another, it is deleted by hand": {observedVolume{volume: volume("v", left, byController, policy(deletePolicy)), claim: elsewhere}, []string{"write volume v free {}"}},
		"another volume mode": {observedVolume{volume: volume("v", left, block), claim: claim("c")}, []string{
			`tell v: Warning VolumeMismatch Cannot bind PersistentVolume to requested PersistentVolumeClaim "c" due to incompatible volumeMode.`,
			`tell c: Warning VolumeMismatch Cannot bind PersistentVolume "v" to requested PersistentVolumeClaim due to incompatible volumeMode.`}},
		"another key works on it": {observedVolume{busy: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.plugins = twoPlugins{}
			got, last := played(planVolume(tc.o, noon))
			compare(t, got, tc.want...)
			if last.Err != nil || last.Why == "" {
				t.Errorf("error %v, because %q", last.Err, last.Why)
			}
		})
	}
}

func TestAClaimThatDoesNotNameItsVolumeIsWoken(t *testing.T) {
	p := planVolume(observedVolume{volume: volume("v", left), claim: claim("c"), plugins: twoPlugins{}}, noon)
	if got := p.Note(nil).(outcome); got.wake == nil || got.wake.Name != "c" {
		t.Errorf("got %+v", got)
	}
}

// provisionedFrom returns a class with that provisioner.
func provisionedFrom(name string) *storagev1.StorageClass {
	return &storagev1.StorageClass{Provisioner: name}
}

func TestOnlyDeletionsThatCannotBeginCountAsFailed(t *testing.T) {
	for policy, want := range map[corev1.PersistentVolumeReclaimPolicy]bool{deletePolicy: true, recyclePolicy: false} {
		pv := volume("v", left, failedIn)
		pv.Spec.PersistentVolumeReclaimPolicy = policy
		if got := planVolume(observedVolume{volume: pv, plugins: twoPlugins{}}, noon).Note(nil).(outcome); got.impossible != want {
			t.Errorf("%s: got %+v", policy, got)
		}
	}
}

func TestReclaim(t *testing.T) {
	const (
		noneBySource = `write volume v Failed error getting deleter volume plugin for volume "v": no volume plugin matched`
		toldBySource = `tell v: Warning VolumeFailedDelete error getting deleter volume plugin for volume "v": no volume plugin matched`
	)
	for name, tc := range map[string]struct {
		o        observedVolume
		want     []string
		start    string
		deleting string
	}{
		"it is retained": {observedVolume{volume: volume("v", left, released)}, nil, "", ""},
		"it is left to a driver, whatever the policy": {observedVolume{volume: volume("v", left, released, policy("x"), provisionedByName("kubernetes.io/aws-ebs"), noted(volumehelpers.AnnMigratedTo, "ebs.csi.aws.com"))}, nil, "", ""},
		"an unknown policy": {observedVolume{volume: volume("v", left, released, policy("x"))},
			[]string{"write volume v Failed Volume has unrecognized PersistentVolumeReclaimPolicy", "tell v: Warning VolumeUnknownReclaimPolicy Volume has unrecognized PersistentVolumeReclaimPolicy"}, "", ""},
		"a driver made it": {observedVolume{volume: volume("v", left, released, policy(deletePolicy), provisionedByName("csi.example.com"))}, nil, "", unknownPlugin},
		"a driver of its class made it": {observedVolume{volume: volume("v", left, released, policy(deletePolicy), provisionedByName("csi.example.com")), class: provisionedFrom("other.example.com")},
			nil, "", "other.example.com"},
		"a driver in place of a plugin made it": {observedVolume{volume: volume("v", left, released, policy(deletePolicy), csi), class: provisionedFrom("kubernetes.io/aws-ebs")},
			nil, "", "ebs.csi.aws.com"},
		"it is of a driver":          {observedVolume{volume: volume("v", left, released, policy(deletePolicy), csi)}, nil, "", unknownPlugin},
		"a plugin made it":           {observedVolume{volume: volume("v", left, released, policy(deletePolicy), provisionedByName("kubernetes.io/host-path"), finalizers(deletionProtection))}, nil, "delete-v[uid-v]", "kubernetes.io/host-path"},
		"a plugin knows its source":  {observedVolume{volume: volume("v", left, released, policy(deletePolicy), hostPath("/tmp/a"))}, nil, "delete-v[uid-v]", "kubernetes.io/host-path"},
		"no plugin knows its source": {observedVolume{volume: volume("v", left, released, policy(deletePolicy))}, []string{noneBySource, toldBySource}, "", unknownPlugin},
		"that was told":              {observedVolume{volume: volume("v", left, failedIn, policy(deletePolicy))}, nil, "", unknownPlugin},
		"a plugin that was in the tree": {observedVolume{volume: volume("v", left, released, policy(deletePolicy), provisionedByName("kubernetes.io/rbd"), finalizers(deletionProtection))},
			[]string{"write volume v Failed no volume plugin matched name: kubernetes.io/rbd", "tell v: Warning VolumeFailedDelete no volume plugin matched name: kubernetes.io/rbd"}, "", unknownPlugin},
		"a plugin that does not delete": {observedVolume{volume: volume("v", left, released, policy(deletePolicy), nfs)},
			[]string{`write volume v Failed error getting deleter volume plugin for volume "v": no deletable volume plugin matched`,
				`tell v: Warning VolumeFailedDelete error getting deleter volume plugin for volume "v": no deletable volume plugin matched`}, "", unknownPlugin},
		"a plugin made it that does not delete": {observedVolume{volume: volume("v", left, released, policy(deletePolicy), nfs, provisionedByName("kubernetes.io/nfs"), finalizers(deletionProtection))},
			[]string{"write volume v Failed no deletable volume plugin matched", "tell v: Warning VolumeFailedDelete no deletable volume plugin matched"}, "", unknownPlugin},
		"it cannot be recycled, but pods use it still": {observedVolume{volume: volume("v", left, released, policy(recyclePolicy), csi), users: []string{"ns/a"}},
			[]string{"tell v: Normal VolumeFailedRecycle Volume is used by pods: ns/a"}, "", ""},
		"it is recycled": {observedVolume{volume: volume("v", left, released, policy(recyclePolicy), nfs)}, nil, "recycle-v[uid-v]", ""},
		"it cannot be recycled": {observedVolume{volume: volume("v", left, released, policy(recyclePolicy), csi)},
			[]string{"write volume v Failed No recycler plugin found for the volume!", "tell v: Warning VolumeFailedRecycle No recycler plugin found for the volume!"}, "", ""},
		"pods use it still":            {observedVolume{volume: volume("v", left, released, policy(recyclePolicy), nfs), users: []string{"ns/a", "ns/b"}}, []string{"tell v: Normal VolumeFailedRecycle Volume is used by pods: ns/a,ns/b"}, "", ""},
		"pods use a claim of its name": {observedVolume{volume: volume("v", left, released, policy(recyclePolicy), nfs), users: []string{"a"}, cached: true}, nil, "recycle-v[uid-v]", ""},
		"it was recycled": {observedVolume{volume: volume("v", left, released, policy(recyclePolicy), nfs), unused: true},
			[]string{"tell v: Normal VolumeRecycled Volume recycled", "write volume v of c[] {}", "write volume v Available"}, "", ""},
		"it was recycled, and is to be deleted now": {observedVolume{volume: volume("v", left, released, policy(deletePolicy), hostPath("/tmp/a")), unused: true}, nil, "delete-v[uid-v]", "kubernetes.io/host-path"},
		"it was recycled, and is retained now":      {observedVolume{volume: volume("v", left, released, nfs), unused: true}, nil, "", ""},
		"an operation failed": {observedVolume{volume: volume("v", left, released, policy(deletePolicy), hostPath("/tmp/a")), failed: &failure{failedDelete, "busy"}},
			[]string{"write volume v Failed busy", "tell v: Warning VolumeFailedDelete busy"}, "", "kubernetes.io/host-path"},
		"an operation failed again, with other words": {observedVolume{volume: volume("v", left, failedIn, policy(deletePolicy), hostPath("/tmp/a")), failed: &failure{failedDelete, "busy"}}, nil, "", "kubernetes.io/host-path"},
		"an operation failed, and it is retained now": {observedVolume{volume: volume("v", left, released, hostPath("/tmp/a")), failed: &failure{failedDelete, "busy"}}, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.o.plugins = twoPlugins{}
			got, last := played(planVolume(tc.o, noon))
			compare(t, got, tc.want...)
			var noted outcome
			if last.Note != nil {
				noted = last.Note(nil).(outcome)
			}
			start := ""
			if noted.start != nil {
				start = noted.start.String()
			}
			if start != tc.start || noted.deleting != tc.deleting || last.Why == "" {
				t.Errorf("starts %q, is deleted by %q, because %q", start, noted.deleting, last.Why)
			}
		})
	}
}
