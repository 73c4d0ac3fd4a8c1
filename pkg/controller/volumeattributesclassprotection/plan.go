package volumeattributesclassprotection

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/protection"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// Finalizer holds a class while something names it.
const Finalizer = "kubernetes.io/vac-protection"

// observed is a class, and the claims and volumes that name it.
type observed struct {
	class   *storagev1.VolumeAttributesClass
	claims  []*corev1.PersistentVolumeClaim
	volumes []*corev1.PersistentVolume
}

func plan(o observed, _ time.Time) act.Plan { return protection.Plan(o.class, Finalizer, o.user()) }

// user says what names the class, with the first by name; "" if nothing does.
func (o observed) user() string {
	var users []string
	for _, claim := range o.claims {
		users = append(users, fmt.Sprintf("claim %s/%s", claim.Namespace, claim.Name))
	}
	for _, volume := range o.volumes {
		users = append(users, "volume "+volume.Name)
	}
	switch len(users) {
	case 0:
		return ""
	case 1:
		return users[0] + " names it"
	}
	return fmt.Sprintf("%s and %d more name it", slices.Min(users), len(users)-1)
}

// ofVolume returns the classes that a volume names.
func ofVolume(volume *corev1.PersistentVolume) []string {
	if volume == nil {
		return nil
	}
	return names(volume.Spec.VolumeAttributesClassName)
}

// ofClaim returns the classes that a claim names: the one that it wants, the one that
// its volume has, and the one that the volume is being given.
func ofClaim(claim *corev1.PersistentVolumeClaim) []string {
	if claim == nil {
		return nil
	}
	classes := names(claim.Spec.VolumeAttributesClassName, claim.Status.CurrentVolumeAttributesClassName)
	if modify := claim.Status.ModifyVolumeStatus; modify != nil {
		classes = append(classes, names(&modify.TargetVolumeAttributesClassName)...)
	}
	slices.Sort(classes)
	return slices.Compact(classes)
}

// names returns what is named; an empty name is none.
func names(of ...*string) []string {
	var named []string
	for _, name := range of {
		if name != nil && *name != "" {
			named = append(named, *name)
		}
	}
	return named
}

// left returns the classes that were named before and are no longer.
func left(before, after []string) []string {
	return slices.DeleteFunc(before, func(class string) bool { return slices.Contains(after, class) })
}
