// Package protection is what the controllers share that keep objects in use from being
// deleted: the finalizer of each that is missing, and the one that is to go.
package protection

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// Missing reports whether nobody deletes the object, and the finalizer is not there.
func Missing(o metav1.Object, finalizer string) bool {
	return o.GetDeletionTimestamp() == nil && !slices.Contains(o.GetFinalizers(), finalizer)
}

// Held reports whether the object is being deleted, and the finalizer holds it.
func Held(o metav1.Object, finalizer string) bool {
	return o.GetDeletionTimestamp() != nil && slices.Contains(o.GetFinalizers(), finalizer)
}

// Concerns reports whether there may be something to do about the object.
func Concerns(o metav1.Object, finalizer string) bool {
	return Missing(o, finalizer) || Held(o, finalizer)
}

// Plan protects an object that nobody deletes, and sets one free that is being deleted.
// User says what uses the object still; "" if nothing does.
func Plan(o client.Object, finalizer, user string) act.Plan {
	switch {
	case Missing(o, finalizer):
		return act.Plan{Why: "it is not protected yet", Stages: act.Stages(Protect(o, finalizer))}
	case o.GetDeletionTimestamp() == nil:
		return act.Plan{Why: "it is protected and nobody deletes it"}
	case !Held(o, finalizer):
		return act.Plan{Why: fmt.Sprintf("it is being deleted and has no finalizer %s", finalizer)}
	case user != "":
		return act.Plan{Why: "it stays while " + user}
	}
	return act.Plan{Why: "nothing uses it", Stages: act.Stages(Free(o, finalizer))}
}

// Protect gives the finalizer to a copy of the object.
func Protect(o client.Object, finalizer string) act.Step {
	protected := o.DeepCopyObject().(client.Object)
	protected.SetFinalizers(append(protected.GetFinalizers(), finalizer))
	return act.Update{Object: protected}
}

// Free takes the finalizer off a copy of the object, and no other.
func Free(o client.Object, finalizer string) act.Step {
	freed := o.DeepCopyObject().(client.Object)
	freed.SetFinalizers(slices.DeleteFunc(freed.GetFinalizers(), func(f string) bool { return f == finalizer }))
	return act.Update{Object: freed}
}
