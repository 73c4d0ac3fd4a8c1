package persistentvolumebinder

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func newController(t testing.TB, rig *fixture.Rig, hand reconcile.Hand, plugins Plugins) *Controller {
	t.Helper()
	core := rig.In.Core().V1()
	c, err := New(Caches{Volumes: core.PersistentVolumes(), Claims: core.PersistentVolumeClaims(), Pods: core.Pods(), Nodes: core.Nodes(),
		Classes: rig.In.Storage().V1().StorageClasses()}, hand, Options{Workers: 1, Provisions: true, Plugins: plugins})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// worldPlugins deletes the backends of a world, which fails at times.
type worldPlugins struct{ *world }

func (w worldPlugins) Named(string) *Plugin { return nil }

func (w worldPlugins) Of(*corev1.PersistentVolume) *Plugin {
	return &Plugin{Name: "kubernetes.io/host-path", Delete: func(_ context.Context, pv *corev1.PersistentVolume) error {
		if w.Rand.IntN(3) == 0 {
			return errors.New("busy")
		}
		if live := w.volumes[pv.Name]; live != nil && live.UID == pv.UID {
			w.judgeDeletion(live)
		}
		delete(w.backends, pv.UID)
		return nil
	}}
}

// holder returns the living claim that a volume belongs to, as its claimRef says by UID.
func (w *world) holder(pv *corev1.PersistentVolume) *corev1.PersistentVolumeClaim {
	ref := pv.Spec.ClaimRef
	if ref == nil {
		return nil
	}
	if c := w.claims[ref.Name]; c != nil && c.UID == ref.UID {
		return c
	}
	return nil
}

func (w *world) judgeDeletion(pv *corev1.PersistentVolume) {
	if pv.Spec.PersistentVolumeReclaimPolicy != deletePolicy {
		w.broken = pv.Name + " is to be retained, and was deleted"
	}
	if c := w.holder(pv); c != nil && (c.Spec.VolumeName == "" || c.Spec.VolumeName == pv.Name) {
		w.broken = fmt.Sprintf("%s was deleted, and %s has it", pv.Name, c.Name)
	}
}

func (w *world) judgeVolume(before, after *corev1.PersistentVolume) {
	c := w.holder(before)
	switch {
	case c == nil || c.Spec.VolumeName != before.Name:
	case after.Spec.ClaimRef == nil || after.Spec.ClaimRef.UID != c.UID:
		w.broken = fmt.Sprintf("%s was taken from %s", before.Name, c.Name)
	case isReleased(after) && !isReleased(before):
		w.broken = fmt.Sprintf("%s was released, and %s has it", before.Name, c.Name)
	}
	if ref, now := before.Spec.ClaimRef, after.Spec.ClaimRef; ref != nil && now != nil && (ref.Name != now.Name || ref.UID != "" && now.UID != "" && ref.UID != now.UID) {
		w.broken = fmt.Sprintf("the claimRef of %s was overwritten", before.Name)
	}
}

func (w *world) judgeClaim(before, after *corev1.PersistentVolumeClaim) {
	name := after.Spec.VolumeName
	switch {
	case before.Spec.VolumeName != "" && before.Spec.VolumeName != name:
		w.broken = fmt.Sprintf("%s went from %s to %s", before.Name, before.Spec.VolumeName, name)
	case before.Spec.VolumeName == "" && name != "" && (w.volumes[name] == nil || w.holder(w.volumes[name]) == nil || w.holder(w.volumes[name]).Name != after.Name):
		w.broken = fmt.Sprintf("%s was bound to %s before that was bound to it", before.Name, name)
	case after.Status.Phase == corev1.ClaimLost && before.Status.Phase != corev1.ClaimLost && w.volumes[name] != nil && w.holder(w.volumes[name]) != nil:
		w.broken = fmt.Sprintf("%s was lost, and %s is there", before.Name, name)
	}
	for _, other := range w.claims {
		if name != "" && other.Name != after.Name && other.Spec.VolumeName == name {
			w.broken = fmt.Sprintf("%s and %s are bound to %s", after.Name, other.Name, name)
		}
	}
}

// unsettled says what should not be so in the end.
func (w *world) unsettled() string {
	for _, c := range w.claims {
		for _, pv := range w.volumes {
			if c.Spec.VolumeName == "" && free(pv) {
				return fmt.Sprintf("%s is not bound, and %s is free", c.Name, pv.Name)
			}
			if h := w.holder(pv); h == c && c.Spec.VolumeName != pv.Name {
				return fmt.Sprintf("%s is kept for %s, which has %q", pv.Name, c.Name, c.Spec.VolumeName)
			}
		}
		if c.Spec.VolumeName != "" && (w.holder(w.volumes[c.Spec.VolumeName]) != c || w.volumes[c.Spec.VolumeName].Status.Phase != corev1.VolumeBound || c.Status.Phase != corev1.ClaimBound) {
			return fmt.Sprintf("%s and %s are not bound to each other", c.Name, c.Spec.VolumeName)
		}
	}
	for _, pv := range w.volumes {
		ref := pv.Spec.ClaimRef
		switch {
		case ref == nil || ref.UID == "":
			if pv.Status.Phase != corev1.VolumeAvailable {
				return fmt.Sprintf("%s is %s", pv.Name, pv.Status.Phase)
			}
		case w.holder(pv) == nil && !isReleased(pv):
			return fmt.Sprintf("%s is %s, and its claim is gone", pv.Name, pv.Status.Phase)
		case w.holder(pv) == nil && pv.Spec.PersistentVolumeReclaimPolicy == deletePolicy:
			return pv.Name + " was not deleted"
		}
		if pv.Spec.PersistentVolumeReclaimPolicy == retainPolicy && !w.backends[pv.UID] && !w.turned {
			return "the data of " + pv.Name + " are gone"
		}
	}
	return ""
}

func TestAWorldOfClaimsAndVolumes(t *testing.T) {
	for name, tc := range map[string]struct{ managers, volumes int }{
		"one manager, few volumes":   {1, 4},
		"one manager, many volumes":  {1, 10},
		"two managers, few volumes":  {2, 4},
		"two managers, many volumes": {2, 10},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range testworld.Seeds(t, 60) {
				w := newWorld(t, seed, tc.managers, tc.volumes)
				if err := w.Run(5000); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if what := w.unsettled(); what != "" {
					t.Fatalf("seed %d: %s\n%s", seed, what, w.Transcript())
				}
			}
		})
	}
}
