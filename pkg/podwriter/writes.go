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

var (
	// ErrEnding stops creation in a namespace that is on its way out. It is not a
	// failure: nothing can be created there any more, so nothing is retried.
	ErrEnding = errors.New("namespace is terminating")
	// ErrLate says that there are pods which the cache does not show yet.
	ErrLate = errors.New("waiting for the cache to show pods that are there")
)

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

// Adopt gives these pods their owner, if that is live still, and returns those that
// have it now. A pod that is gone by now, or another of its name, is none of them.
func (w *Writer) Adopt(ctx context.Context, key Key, owner Owner, orphans []*corev1.Pod,
	live func(context.Context) (metav1.Object, error)) ([]*corev1.Pod, error) {
	mayAdopt := ownership.Recheck(owner, live)
	patched := make([]*corev1.Pod, len(orphans))
	_, err := batch.SlowStart(ctx, len(orphans), 1, func(ctx context.Context, i int) error {
		if err := mayAdopt(ctx); err != nil {
			return err
		}
		patch, err := ownership.AdoptPatch(orphans[i].UID, owner, w.Kind, w.Finalizers...)
		if err == nil {
			patched[i], err = w.Patch(ctx, key, orphans[i], patch)
		}
		if err != nil && !Gone(err) {
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

// Release takes the owner off these pods.
func (w *Writer) Release(ctx context.Context, key Key, owner Owner, strangers []*corev1.Pod) error {
	_, err := batch.SlowStart(ctx, len(strangers), 1, func(ctx context.Context, i int) error {
		patch, err := ownership.ReleasePatch(strangers[i].UID, owner.GetUID(), w.Finalizers...)
		if err == nil {
			_, err = w.Patch(ctx, key, strangers[i], patch)
		}
		// Invalid: the pod has no owner references left.
		if err != nil && !Gone(err) && !apierrors.IsInvalid(err) {
			return fmt.Errorf("release pod %s: %w", strangers[i].Name, err)
		}
		return nil
	})
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

// LookForLate lists the owner's pods live. It fails while the cache does not show
// all of them, and the runner holds the owner back meanwhile.
func (w *Writer) LookForLate(ctx context.Context, key Key, owner Owner, selector string) error {
	live, err := w.Client.CoreV1().Pods(key.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return fmt.Errorf("look for pods that the cache does not show: %w", err)
	}
	for i := range live.Items {
		if pod := &live.Items[i]; metav1.IsControlledBy(pod, owner) {
			w.Writes.Wrote(key, Resource, pod)
		}
	}
	if len(w.Writes.Behind(key)) > 0 {
		return ErrLate
	}
	return nil
}

// Forget drops what is known of an owner that is gone.
func (w *Writer) Forget(key Key) { w.Writes.Forget(key) }

// Gone reports of the answer to a patch whether the pod is gone, or is not the one,
// or not as it was, when the patch was decided on: it has to be looked at again.
func Gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }
