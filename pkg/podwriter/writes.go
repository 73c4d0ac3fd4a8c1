// Package podwriter makes and deletes, adopts and lets go of the pods of workloads:
// what their controllers have in common when they write. A write is about the pod
// of that UID, is told by an event on the owner, and is recorded, so that the
// runner holds the owner back until the caches show it.
package podwriter

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/batch"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
)

// Reasons of the events.
const (
	FailedCreate     = "FailedCreate"
	SuccessfulCreate = "SuccessfulCreate"
	FailedDelete     = "FailedDelete"
	SuccessfulDelete = "SuccessfulDelete"
)

// ErrEnding stops creation in a namespace that is on its way out. It is not a
// failure: nothing can be created there any more, so nothing is retried.
var ErrEnding = errors.New("namespace is terminating")

// Resource is what is written.
var Resource = schema.GroupResource{Resource: "pods"}

// Key names an owner.
type Key = types.NamespacedName

// Owner is a workload, as it is cached.
type Owner interface {
	metav1.Object
	runtime.Object
}

// Writer writes the pods of the owners of one kind. It is safe for concurrent use.
type Writer struct {
	Kind   schema.GroupVersionKind
	Client kubernetes.Interface
	Events record.EventRecorder
	Writes *consistency.Tracker[Key]
	// Finalizers are those that a pod gets when it is adopted, and loses when it is let go.
	Finalizers []string
}

// Adopt gives these pods, which selector matches, their owner, if that is live
// still, and returns those that have it now. A pod that is gone by now, or another
// of its name, or is not the owner's to adopt any more, is none of them. Any other
// refusal is an error, whatever its code: to count without the pod is to make one
// too many.
func (w *Writer) Adopt(ctx context.Context, key Key, owner Owner, selector labels.Selector, orphans []*corev1.Pod,
	live func(context.Context) (metav1.Object, error)) ([]*corev1.Pod, error) {
	if len(orphans) == 0 {
		return nil, nil
	}
	if err := ownership.Recheck(owner, live)(ctx); err != nil {
		return nil, err
	}
	patched := make([]*corev1.Pod, len(orphans))
	err := all(ctx, len(orphans), func(ctx context.Context, i int) error {
		patch, err := ownership.AdoptPatch(orphans[i].UID, owner, w.Kind, w.Finalizers...)
		if err == nil {
			patched[i], err = w.Patch(ctx, key, orphans[i], patch)
		}
		err = w.unlessOther(ctx, orphans[i], err, func(pod metav1.Object) bool {
			ref := metav1.GetControllerOfNoCopy(pod)
			return selector.Matches(labels.Set(pod.GetLabels())) && (ref == nil || ref.UID == owner.GetUID())
		})
		if err != nil {
			return fmt.Errorf("adopt pod %s: %w", orphans[i].Name, err)
		}
		return nil
	})
	var adopted []*corev1.Pod
	for _, pod := range patched {
		if pod != nil {
			adopted = append(adopted, pod)
		}
	}
	return adopted, err
}

// Release takes the owner off these pods. A pod that has it no more is no error.
func (w *Writer) Release(ctx context.Context, key Key, owner Owner, strangers []*corev1.Pod) error {
	return all(ctx, len(strangers), func(ctx context.Context, i int) error {
		patch, err := ownership.ReleasePatch(strangers[i].UID, owner.GetUID(), w.Finalizers...)
		if err == nil {
			_, err = w.Patch(ctx, key, strangers[i], patch)
		}
		// Invalid: the pod has no owner references left.
		if apierrors.IsInvalid(err) {
			return nil
		}
		err = w.unlessOther(ctx, strangers[i], err, func(pod metav1.Object) bool { return metav1.IsControlledBy(pod, owner) })
		if err != nil {
			return fmt.Errorf("release pod %s: %w", strangers[i].Name, err)
		}
		return nil
	})
}

// all calls do for each, in growing batches, also after failures: what is refused
// for one pod holds up no other.
func all(ctx context.Context, count int, do func(ctx context.Context, i int) error) error {
	errs := make([]error, count)
	_, _ = batch.SlowStart(ctx, count, 1, func(ctx context.Context, i int) error {
		errs[i] = do(ctx, i)
		return nil
	})
	return errors.Join(errs...)
}

// unlessOther returns the error of a patch, or nil when a live look shows that the
// pod is gone or that the patch is not called for any more. The patch names the
// UID, so a conflict may be about another pod of that name; a webhook may answer
// with the same codes.
func (w *Writer) unlessOther(ctx context.Context, pod *corev1.Pod, err error, calledFor func(metav1.Object) bool) error {
	if !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
		return err
	}
	live, failed := w.Writes.Still(ctx, Resource, pod, err)
	switch {
	case failed != nil:
		return failed
	case live == nil || !calledFor(live):
		return nil
	}
	return err
}

// Patch changes a pod by a strategic merge patch, which names the UID of the pod
// that is meant. It returns the pod as it is then, or nil and an error.
func (w *Writer) Patch(ctx context.Context, key Key, pod *corev1.Pod, patch []byte) (*corev1.Pod, error) {
	patched, err := w.Client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return nil, err
	}
	w.Writes.Wrote(key, Resource, patched)
	return patched, nil
}

// Create makes a pod. When the answer is lost the owner waits until a live look
// has shown whether there is one; selector is what its pods match.
func (w *Writer) Create(ctx context.Context, key Key, owner Owner, selector string, pod *corev1.Pod) error {
	created, err := w.Client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return ErrEnding
	case err != nil:
		if consistency.OutcomeUnknown(err) {
			w.Writes.CreateLost(key, Resource, owner, selector)
		}
		w.Events.Eventf(owner, corev1.EventTypeWarning, FailedCreate, "Error creating: %v", err)
		return err
	}
	w.Writes.Wrote(key, Resource, created)
	w.Events.Eventf(owner, corev1.EventTypeNormal, SuccessfulCreate, "Created pod: %v", created.Name)
	return nil
}

// Delete deletes the very pod that was looked at. A pod that is gone, or on its
// way out, is no error; a deletion that was refused is, whatever the code.
func (w *Writer) Delete(ctx context.Context, key Key, owner Owner, pod *corev1.Pod) error {
	err := w.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *metav1.NewPreconditionDeleteOptions(string(pod.UID)))
	switch became, err := w.Writes.DeleteAnswered(ctx, key, Resource, pod, err); became {
	case consistency.Deleted:
		w.Events.Eventf(owner, corev1.EventTypeNormal, SuccessfulDelete, "Deleted pod: %v", pod.Name)
	case consistency.Failed:
		w.Events.Eventf(owner, corev1.EventTypeWarning, FailedDelete, "Error deleting: %v", err)
		return err
	}
	return nil
}

// Forget drops what is known of an owner that is gone.
func (w *Writer) Forget(key Key) { w.Writes.Forget(key) }
