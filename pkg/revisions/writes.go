package revisions

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	typedapps "k8s.io/client-go/kubernetes/typed/apps/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
)

// Resource is what a writer writes; its owner's tracker needs a store for it.
var Resource = schema.GroupResource{Group: appsv1.GroupName, Resource: "controllerrevisions"}

// Writer writes the histories of owners of one kind. What it wrote for a key is
// recorded in Writes.
type Writer struct {
	Client typedapps.ControllerRevisionsGetter
	Kind   schema.GroupVersionKind
	Writes *consistency.Tracker[types.NamespacedName]
}

// Claim adopts and releases as the claims say, and returns the revisions that
// are the owner's then. Live reads the owner from the API server.
func (w Writer) Claim(ctx context.Context, key types.NamespacedName, owner metav1.Object, claims ownership.Claims[*appsv1.ControllerRevision],
	live func(context.Context) (metav1.Object, error)) ([]*appsv1.ControllerRevision, error) {
	mine := claims.Owned
	mayAdopt := ownership.Recheck(owner, live)
	var errs []error
	for _, revision := range Sorted(claims.Adopt) {
		adopted, err := w.adopt(ctx, key, owner, revision, mayAdopt)
		errs = append(errs, err)
		if adopted != nil {
			mine = append(mine, adopted)
		}
	}
	for _, revision := range Sorted(claims.Release) {
		errs = append(errs, w.release(ctx, key, owner, revision))
	}
	return mine, errors.Join(errs...)
}

// adopt returns nil without an error when the revision is gone.
func (w Writer) adopt(ctx context.Context, key types.NamespacedName, owner metav1.Object, revision *appsv1.ControllerRevision, mayAdopt func(context.Context) error) (*appsv1.ControllerRevision, error) {
	if err := mayAdopt(ctx); err != nil {
		return nil, err
	}
	patch, err := ownership.AdoptPatch(revision.UID, owner, w.Kind)
	if err != nil {
		return nil, fmt.Errorf("adopt revision %s: %w", revision.Name, err)
	}
	adopted, err := w.patch(ctx, key, revision, types.StrategicMergePatchType, patch)
	if err == nil {
		return adopted, nil
	}
	if err := w.Writes.UnlessGone(ctx, Resource, revision, err); err != nil {
		return nil, fmt.Errorf("adopt revision %s: %w", revision.Name, err)
	}
	return nil, nil
}

// release takes the owner reference off. A revision that is gone, or is another
// by now, is not the owner's anyway.
func (w Writer) release(ctx context.Context, key types.NamespacedName, owner metav1.Object, revision *appsv1.ControllerRevision) error {
	patch, err := ownership.ReleasePatch(revision.UID, owner.GetUID())
	if err == nil {
		_, err = w.patch(ctx, key, revision, types.StrategicMergePatchType, patch)
	}
	if err == nil || apierrors.IsInvalid(err) {
		return nil
	}
	if err := w.Writes.UnlessGone(ctx, Resource, revision, err); err != nil {
		return fmt.Errorf("release revision %s: %w", revision.Name, err)
	}
	return nil
}

// Create creates a revision. When the name is taken it returns the revision that
// has it: the same one if another attempt made it, or one of something else.
func (w Writer) Create(ctx context.Context, key types.NamespacedName, revision *appsv1.ControllerRevision) (created, taken *appsv1.ControllerRevision, err error) {
	client := w.Client.ControllerRevisions(revision.Namespace)
	created, err = client.Create(ctx, revision, metav1.CreateOptions{})
	switch {
	case err == nil:
		w.Writes.Wrote(key, Resource, created)
		return created, nil, nil
	case !apierrors.IsAlreadyExists(err):
		return nil, nil, fmt.Errorf("create revision %s: %w", revision.Name, err)
	}
	taken, err = client.Get(ctx, revision.Name, metav1.GetOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("read revision %s, whose name is taken: %w", revision.Name, err)
	}
	return nil, taken, nil
}

// Renumber gives the revision another number, and the labels if any are given.
// The server refuses it when the revision has changed since it was read.
func (w Writer) Renumber(ctx context.Context, key types.NamespacedName, revision *appsv1.ControllerRevision, number int64, labels map[string]string) (*appsv1.ControllerRevision, error) {
	patch, err := renumbered(revision, number, labels)
	if err != nil {
		return nil, fmt.Errorf("renumber revision %s: %w", revision.Name, err)
	}
	changed, err := w.patch(ctx, key, revision, types.MergePatchType, patch)
	if err != nil {
		return nil, fmt.Errorf("renumber revision %s: %w", revision.Name, err)
	}
	return changed, nil
}

// Delete deletes revisions. One that is gone, or on its way out, is no error; a
// deletion that was refused is, whatever the code.
func (w Writer) Delete(ctx context.Context, key types.NamespacedName, revisions []*appsv1.ControllerRevision) error {
	var errs []error
	for _, revision := range revisions {
		err := w.Client.ControllerRevisions(revision.Namespace).Delete(ctx, revision.Name, *metav1.NewPreconditionDeleteOptions(string(revision.UID)))
		if became, err := w.Writes.DeleteAnswered(ctx, key, Resource, revision, err); became == consistency.Failed {
			errs = append(errs, fmt.Errorf("delete revision %s: %w", revision.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (w Writer) patch(ctx context.Context, key types.NamespacedName, revision *appsv1.ControllerRevision, kind types.PatchType, patch []byte) (*appsv1.ControllerRevision, error) {
	patched, err := w.Client.ControllerRevisions(revision.Namespace).Patch(ctx, revision.Name, kind, patch, metav1.PatchOptions{})
	if err != nil {
		return nil, err
	}
	w.Writes.Wrote(key, Resource, patched)
	return patched, nil
}
