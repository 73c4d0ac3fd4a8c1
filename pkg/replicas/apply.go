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

	"github.com/kube-kcm/kube-controller-manager/pkg/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/podwriter"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/batch"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
)

// claim adopts and releases pods, and returns those adopted.
func (e *Engine) claim(ctx context.Context, key Key, set *Set, claims ownership.Claims[*corev1.Pod]) ([]*corev1.Pod, error) {
	adopted, failed := e.writer.Adopt(ctx, key, set.Object, set.Selector, claims.Adopt, func(ctx context.Context) (metav1.Object, error) {
		return e.kind.Live(ctx, key)
	})
	return adopted, errors.Join(failed, e.writer.Release(ctx, key, set.Object, claims.Release))
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
	errs := make([]error, count)
	_, err := batch.SlowStart(ctx, count, 1, func(ctx context.Context, i int) error {
		began := e.o.Clock.Now()
		pod := pods.FromTemplate(set.Template, set.Object, ownership.ControllerRef(set.Object, e.kind.Type()))
		if errs[i] = e.writer.Create(ctx, key, set.Object, set.Selector.String(), pod); errs[i] == nil {
			e.reports.Sent(key, began)
		}
		return errs[i]
	})
	if err == nil || errors.Is(err, podwriter.ErrEnding) {
		return nil, nil
	}
	return failureOf(podwriter.FailedCreate, errs), fmt.Errorf("create pods: %w", err)
}

func (e *Engine) delete(ctx context.Context, key Key, set *Set, victims []*corev1.Pod) (*failure, error) {
	errs := make([]error, len(victims))
	_, err := batch.Parallel(ctx, len(victims), func(ctx context.Context, i int) error {
		errs[i] = e.writer.Delete(ctx, key, set.Object, victims[i])
		return errs[i]
	})
	if err == nil {
		return nil, nil
	}
	told := failureOf(podwriter.FailedDelete, errs)
	if told != nil {
		told.message = "unable to delete pods: " + told.message // as the original says it
	}
	return told, fmt.Errorf("delete pods: %w", err)
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
// long. While the pods cannot be made or deleted it does not, as the next try may
// be minutes away. On a conflict it tries once more on the live object, because the pods
// were counted regardless of what changed.
func (e *Engine) report(ctx context.Context, key Key, set *Set, status appsv1.ReplicaSetStatus, failing bool) (time.Duration, error) {
	if reported(set.Status, status) {
		return 0, nil
	}
	if !failing && underWay(set, status) {
		if wait := e.reports.Wait(key); wait > 0 {
			return wait, nil
		}
	}
	began := e.o.Clock.Now()
	written, err := e.kind.WriteStatus(ctx, set.Object, status)
	if apierrors.IsConflict(err) {
		live, getErr := e.kind.Live(ctx, key)
		switch getErr = e.writes.UnlessGone(ctx, e.kind.Resource(), set.Object, getErr); {
		case getErr != nil:
			return 0, fmt.Errorf("read %s %s for its status: %w", e.kind.Type().Kind, key, getErr)
		case live == nil:
			return 0, nil
		case live.GetUID() != set.Object.GetUID():
			return 0, nil
		}
		written, err = e.kind.WriteStatus(ctx, live, status)
	}
	if err != nil {
		if err = e.writes.UnlessGone(ctx, e.kind.Resource(), set.Object, err); err != nil {
			return 0, fmt.Errorf("write status of %s %s: %w", e.kind.Type().Kind, key, err)
		}
		return 0, nil
	}
	e.writes.Wrote(key, e.kind.Resource(), written)
	e.reports.Sent(key, began)
	return 0, nil
}
