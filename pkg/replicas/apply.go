package replicas

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/batch"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
)

// errEnding stops creation in a namespace that is on its way out. It is not a
// failure: nothing can be created there any more, so nothing is retried.
var errEnding = errors.New("namespace is terminating")

// claim adopts and releases pods, and returns those adopted. A pod that is gone
// by now needs neither.
func (e *Engine) claim(ctx context.Context, key Key, set *Set, claims ownership.Claims[*corev1.Pod]) ([]*corev1.Pod, error) {
	mayAdopt := ownership.Recheck(set.Object, func(ctx context.Context) (metav1.Object, error) {
		return e.kind.Live(ctx, key)
	})
	gone := make([]bool, len(claims.Adopt))
	_, adoptErr := batch.SlowStart(ctx, len(claims.Adopt), 1, func(ctx context.Context, i int) error {
		pod := claims.Adopt[i]
		if err := mayAdopt(ctx); err != nil {
			return err
		}
		patch, err := ownership.AdoptPatch(pod.UID, set.Object, e.kind.Type())
		if err != nil {
			return fmt.Errorf("adopt pod %s: %w", pod.Name, err)
		}
		gone[i], err = e.patch(ctx, key, pod, patch)
		if err != nil {
			return fmt.Errorf("adopt pod %s: %w", pod.Name, err)
		}
		return nil
	})
	_, releaseErr := batch.SlowStart(ctx, len(claims.Release), 1, func(ctx context.Context, i int) error {
		pod := claims.Release[i]
		patch, err := ownership.ReleasePatch(pod.UID, set.Object.GetUID())
		if err == nil {
			_, err = e.patch(ctx, key, pod, patch)
		}
		// Invalid: the pod has no owner references left, or is another pod by now.
		if err != nil && !apierrors.IsInvalid(err) {
			return fmt.Errorf("release pod %s: %w", pod.Name, err)
		}
		return nil
	})
	var adopted []*corev1.Pod
	for i, pod := range claims.Adopt {
		if !gone[i] {
			adopted = append(adopted, pod)
		}
	}
	return adopted, errors.Join(adoptErr, releaseErr)
}

// patch changes a pod's owner references, and tells whether the pod is gone instead.
func (e *Engine) patch(ctx context.Context, key Key, pod *corev1.Pod, patch []byte) (gone bool, err error) {
	patched, err := e.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	e.writes.Wrote(key, podResource, patched)
	return false, nil
}

// apply carries out the plan. The failure is what the status tells of the error.
func (e *Engine) apply(ctx context.Context, key Key, o Observed, plan Plan, now time.Time) (*failure, error) {
	switch {
	case plan.Create > 0:
		return e.create(ctx, key, o.Set, plan.Create)
	case len(plan.Delete) > 0:
		for _, ratio := range ageRatios(o.Active, plan.Delete, now) {
			deletionAgeRatio.Observe(ratio)
		}
		return e.delete(ctx, key, o.Set, plan.Delete)
	}
	return nil, nil
}

// create makes pods in growing batches, so that a refusal that concerns all of
// them costs a few requests.
func (e *Engine) create(ctx context.Context, key Key, set *Set, count int) (*failure, error) {
	switch err := e.lookForLate(ctx, key, set); {
	case errors.Is(err, errLate):
		return nil, err
	case err != nil:
		return failureOf(reasonFailedCreate, []error{err}), err
	}
	errs := make([]error, count)
	_, err := batch.SlowStart(ctx, count, 1, func(ctx context.Context, i int) error {
		errs[i] = e.createOne(ctx, key, set)
		return errs[i]
	})
	if err == nil || errors.Is(err, errEnding) {
		return nil, nil
	}
	return failureOf(reasonFailedCreate, errs), fmt.Errorf("create pods: %w", err)
}

func (e *Engine) createOne(ctx context.Context, key Key, set *Set) error {
	pod := pods.FromTemplate(set.Template, set.Object, ownership.ControllerRef(set.Object, e.kind.Type()))
	began := e.o.Clock.Now()
	created, err := e.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return errEnding
	case err != nil:
		if consistency.OutcomeUnknown(err) {
			e.doubts.Raise(key)
		}
		e.events.Eventf(set.Object, corev1.EventTypeWarning, reasonFailedCreate, "Error creating: %v", err)
		return err
	}
	e.writes.Wrote(key, podResource, created)
	e.reports.Sent(key, began)
	e.events.Eventf(set.Object, corev1.EventTypeNormal, reasonSuccessfulCreate, "Created pod: %v", created.Name)
	return nil
}

func (e *Engine) delete(ctx context.Context, key Key, set *Set, victims []*corev1.Pod) (*failure, error) {
	errs := make([]error, len(victims))
	_, err := batch.Parallel(ctx, len(victims), func(ctx context.Context, i int) error {
		errs[i] = e.deleteOne(ctx, key, set, victims[i])
		return errs[i]
	})
	if err == nil {
		return nil, nil
	}
	return failureOf(reasonFailedDelete, errs), fmt.Errorf("delete pods: %w", err)
}

func (e *Engine) deleteOne(ctx context.Context, key Key, set *Set, pod *corev1.Pod) error {
	err := e.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *metav1.NewPreconditionDeleteOptions(string(pod.UID)))
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		// Gone, or replaced by another of the same name: only the cache does not know yet.
	case err != nil:
		e.events.Eventf(set.Object, corev1.EventTypeWarning, reasonFailedDelete, "Error deleting: %v", err)
		return err
	default:
		e.events.Eventf(set.Object, corev1.EventTypeNormal, reasonSuccessfulDelete, "Deleted pod: %v", pod.Name)
	}
	e.writes.Deleted(key, podResource, pod)
	return nil
}

// failureOf tells of the first error, in the words of the API server.
func failureOf(reason string, errs []error) *failure {
	for _, err := range errs {
		if err != nil {
			return &failure{reason, err.Error()}
		}
	}
	return nil
}

// report writes the status if it differs, unless it can wait: then it says how
// long. On a conflict it tries once more on the live object, because the pods
// were counted regardless of what changed.
func (e *Engine) report(ctx context.Context, key Key, set *Set, status appsv1.ReplicaSetStatus) (time.Duration, error) {
	if reported(set.Status, status) {
		return 0, nil
	}
	if underWay(set, status) {
		if wait := e.reports.Wait(key); wait > 0 {
			return wait, nil
		}
	}
	began := e.o.Clock.Now()
	written, err := e.kind.WriteStatus(ctx, set.Object, status)
	if apierrors.IsConflict(err) {
		live, getErr := e.kind.Live(ctx, key)
		switch {
		case apierrors.IsNotFound(getErr):
			return 0, nil
		case getErr != nil:
			return 0, fmt.Errorf("read %s %s for its status: %w", e.kind.Type().Kind, key, getErr)
		case live.GetUID() != set.Object.GetUID():
			return 0, nil
		}
		written, err = e.kind.WriteStatus(ctx, live, status)
	}
	switch {
	case apierrors.IsNotFound(err):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("write status of %s %s: %w", e.kind.Type().Kind, key, err)
	}
	e.writes.Wrote(key, e.kind.Resource(), written)
	e.reports.Sent(key, began)
	return 0, nil
}
