package statefulset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/batch"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// errEnding ends a plan in a namespace that is on its way out. It is not a
// failure: nothing can be created there any more, so nothing is retried.
var errEnding = errors.New("namespace is terminating")

// apply carries the plan out, stage by stage, up to the first failure.
func (c *Controller) apply(ctx context.Context, key Key, set *appsv1.StatefulSet, p plan) error {
	for _, stage := range p.stages {
		err := c.carryOut(ctx, key, set, stage, p.ordered)
		if errors.Is(err, errEnding) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Controller) carryOut(ctx context.Context, key Key, set *appsv1.StatefulSet, stage []step, ordered bool) error {
	if !ordered {
		_, err := batch.SlowStart(ctx, len(stage), 1, func(ctx context.Context, i int) error { return c.do(ctx, key, set, stage[i]) })
		return err
	}
	for _, s := range stage {
		if err := c.do(ctx, key, set, s); err != nil {
			return err
		}
	}
	return nil
}

// do takes one step, and tells of it by events on the set.
func (c *Controller) do(ctx context.Context, key Key, set *appsv1.StatefulSet, s step) error {
	if s.verb == remove {
		return c.delete(ctx, key, set, s.pod)
	}
	if err := c.makeClaims(ctx, key, set, s); err != nil {
		if s.verb != keep && !errors.Is(err, errEnding) {
			c.tell(set, s.verb, s.pod, err)
		}
		return fmt.Errorf("claims of pod %s: %w", s.pod.Name, err)
	}
	switch s.verb {
	case create:
		return c.create(ctx, key, set, s)
	case repair:
		return c.repair(ctx, key, set, s)
	}
	return c.handOver(ctx, key, set, s)
}

// makeClaims makes the claims that a pod lacks, and fails if one is in the way.
func (c *Controller) makeClaims(ctx context.Context, key Key, set *appsv1.StatefulSet, s step) error {
	var errs []error
	for _, claim := range s.claims {
		created, err := c.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Create(ctx, claim, metav1.CreateOptions{})
		switch {
		case err == nil:
			c.writes.Wrote(key, claimResource, created)
			c.events.Eventf(set, corev1.EventTypeNormal, succeeded[create], "Create Claim %s Pod %s in StatefulSet %s success", claim.Name, s.pod.Name, set.Name)
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return errEnding
		default:
			if !apierrors.IsAlreadyExists(err) {
				c.events.Eventf(set, corev1.EventTypeWarning, failed[create], "Create Claim %s for Pod %s in StatefulSet %s failed error: %s", claim.Name, s.pod.Name, set.Name, err)
			}
			errs = append(errs, fmt.Errorf("failed to create PVC %s: %w", claim.Name, err))
		}
	}
	return utilerrors.NewAggregate(append(errs, s.blocked))
}

// handOver gives claims other owners. The whole object is sent, which the cache
// holds, because the role allows no patch; its version guards it.
func (c *Controller) handOver(ctx context.Context, key Key, set *appsv1.StatefulSet, s step) error {
	c.tellDisputed(set, s.disputed)
	for _, h := range s.owners {
		claim := h.claim.DeepCopy()
		claim.OwnerReferences = h.refs
		updated, err := c.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, claim, metav1.UpdateOptions{})
		if err == nil {
			c.writes.Wrote(key, claimResource, updated)
		} else if err := c.writes.UnlessGone(ctx, claimResource, claim, err); err != nil {
			return fmt.Errorf("set the owners of claim %s: %w", claim.Name, err)
		}
	}
	return nil
}

func (c *Controller) create(ctx context.Context, key Key, set *appsv1.StatefulSet, s step) error {
	began := c.o.Clock.Now()
	created, err := c.client.CoreV1().Pods(s.pod.Namespace).Create(ctx, s.pod, metav1.CreateOptions{})
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return errEnding
	case apierrors.IsAlreadyExists(err):
		// Another's pod, or one of an attempt whose answer was lost: the cache will tell.
		return fmt.Errorf("create pod %s: %w", s.pod.Name, err)
	case err != nil:
		c.tell(set, create, s.pod, err)
		return fmt.Errorf("create pod %s: %w", s.pod.Name, err)
	}
	c.writes.Wrote(key, podResource, created)
	c.reports.Sent(key, began)
	c.tell(set, create, s.pod, nil)
	if err := c.handOver(ctx, key, set, s); err != nil {
		c.tell(set, repair, s.pod, err)
		return err
	}
	return nil
}

func (c *Controller) repair(ctx context.Context, key Key, set *appsv1.StatefulSet, s step) error {
	err := c.handOver(ctx, key, set, s)
	if err == nil && len(s.labels)+len(s.volumes) > 0 {
		err = c.mend(ctx, key, s)
	}
	c.tell(set, repair, s.pod, err)
	if err != nil {
		return fmt.Errorf("update pod %s: %w", s.pod.Name, err)
	}
	return nil
}

func (c *Controller) mend(ctx context.Context, key Key, s step) error {
	patch, err := json.Marshal(s.patchOf())
	if err != nil {
		return err
	}
	_, err = c.patchPod(ctx, key, s.pod, patch)
	return err
}

// delete deletes the very pod that was looked at. A pod that is gone, or on its
// way out, is no error; a deletion that was refused is, whatever the code.
func (c *Controller) delete(ctx context.Context, key Key, set *appsv1.StatefulSet, pod *corev1.Pod) error {
	err := c.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *metav1.NewPreconditionDeleteOptions(string(pod.UID)))
	switch became, err := c.writes.DeleteAnswered(ctx, key, podResource, pod, err); became {
	case consistency.Deleted:
		c.tell(set, remove, pod, nil)
	case consistency.Failed:
		c.tell(set, remove, pod, err)
		return fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	return nil
}
