// Package ownership decides which objects belong to a controller, and builds
// the patches that adopt and release them.
package ownership

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Claims sorts the children that a controller sees by what it has to do with them.
type Claims[T metav1.Object] struct {
	// Owned have the controller as their controlling owner and match its selector.
	Owned []T
	// Adopt match the selector and have no controlling owner.
	Adopt []T
	// Release are controlled by the controller and no longer match its selector.
	Release []T
}

// Claim decides for each child. One of another namespace is none, whatever it says of its
// owner. An owner that is being deleted keeps what it
// has and neither adopts nor releases: its children belong to the garbage
// collector. A child that is being deleted is never adopted.
func Claim[T metav1.Object](owner metav1.Object, selector labels.Selector, children []T) Claims[T] {
	var c Claims[T]
	for _, child := range children {
		ref := metav1.GetControllerOfNoCopy(child)
		matches := selector.Matches(labels.Set(child.GetLabels()))
		switch {
		case child.GetNamespace() != owner.GetNamespace(), ref != nil && ref.UID != owner.GetUID():
		case ref != nil && matches:
			c.Owned = append(c.Owned, child)
		case owner.GetDeletionTimestamp() != nil:
			// Nothing is adopted or released on the way out.
		case ref != nil:
			c.Release = append(c.Release, child)
		case matches && child.GetDeletionTimestamp() == nil:
			c.Adopt = append(c.Adopt, child)
		}
	}
	return c
}

// Recheck returns a function that confirms once, with a live read, that the
// owner still exists with the same UID and is not being deleted; later calls
// return the first answer. A cache may be behind by seconds, and a child adopted
// for an owner that is gone would be collected.
func Recheck(owner metav1.Object, getLive func(ctx context.Context) (metav1.Object, error)) func(ctx context.Context) error {
	var once sync.Once
	var answer error
	return func(ctx context.Context) error {
		once.Do(func() { answer = recheck(ctx, owner, getLive) })
		return answer
	}
}

func recheck(ctx context.Context, owner metav1.Object, getLive func(ctx context.Context) (metav1.Object, error)) error {
	live, err := getLive(ctx)
	if err != nil {
		return fmt.Errorf("confirm that %s/%s may adopt: %w", owner.GetNamespace(), owner.GetName(), err)
	}
	if live.GetUID() != owner.GetUID() {
		return fmt.Errorf("original %s/%s is gone: got uid %s, wanted %s",
			owner.GetNamespace(), owner.GetName(), live.GetUID(), owner.GetUID())
	}
	if at := live.GetDeletionTimestamp(); at != nil {
		return fmt.Errorf("%s/%s has just been deleted at %s", owner.GetNamespace(), owner.GetName(), at)
	}
	return nil
}

// AdoptPatch returns the strategic merge patch that makes owner the controller
// of the child with this UID, and adds the finalizers if any are given. The
// server refuses it when the child was replaced by another of the same name.
func AdoptPatch(child types.UID, owner metav1.Object, kind schema.GroupVersionKind, finalizers ...string) ([]byte, error) {
	type meta struct {
		UID             types.UID               `json:"uid"`
		OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
		Finalizers      []string                `json:"finalizers,omitempty"`
	}
	return json.Marshal(struct {
		Metadata meta `json:"metadata"`
	}{meta{child, []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}, finalizers}})
}

// ReleasePatch returns the strategic merge patch that takes owner off the
// child with this UID, and the finalizers if any are given.
func ReleasePatch(child, owner types.UID, finalizers ...string) ([]byte, error) {
	type deletion struct {
		Patch string    `json:"$patch"`
		UID   types.UID `json:"uid"`
	}
	type meta struct {
		UID              types.UID  `json:"uid"`
		OwnerReferences  []deletion `json:"ownerReferences"`
		DeleteFinalizers []string   `json:"$deleteFromPrimitiveList/finalizers,omitempty"`
	}
	return json.Marshal(struct {
		Metadata meta `json:"metadata"`
	}{meta{child, []deletion{{"delete", owner}}, finalizers}})
}
