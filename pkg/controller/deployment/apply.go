package deployment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	eventScaled      = "ScalingReplicaSet"
	eventCreateError = "ReplicaSetCreateError"
)

// apply carries the plan out in the order of its fields. The first failure ends
// it, because what follows was decided on the success of what comes before; only
// clearing the history holds nothing up.
func (c *Controller) apply(ctx context.Context, key types.NamespacedName, d *appsv1.Deployment, p plan) runner.Result {
	if p.create != nil {
		if result, created := c.create(ctx, key, d, p); !created {
			return result
		}
	}
	if err := c.editAll(ctx, key, d, p.edits); err != nil {
		return runner.Done(err)
	}
	if p.rollback != nil {
		if err := c.rollBack(ctx, key, d, p.rollback); err != nil {
			return runner.Done(err)
		}
	}
	if p.tell != nil {
		c.recorder.Event(d, p.tell.kind, p.tell.reason, p.tell.message)
	}
	if p.rollback != nil {
		return runner.Done()
	}
	var errs []error
	for _, set := range p.remove {
		errs = append(errs, c.remove(ctx, key, set))
	}
	if wait := c.spare(key, d, p); wait > 0 && errors.Join(errs...) == nil {
		return runner.Done().LookAgain(wait)
	}
	errs = append(errs, c.writeStatus(ctx, key, d, p.revision, p.status))
	return runner.Done(errs...).LookAgain(p.look)
}

// create makes the new ReplicaSet. When it does not, the result says what the
// Deployment is told and what comes next.
func (c *Controller) create(ctx context.Context, key types.NamespacedName, d *appsv1.Deployment, p plan) (runner.Result, bool) {
	began := c.clock.Now()
	created, err := c.client.AppsV1().ReplicaSets(d.Namespace).Create(ctx, p.create, metav1.CreateOptions{})
	switch {
	case err == nil:
		c.pace.Sent(key, began)
		c.writes.Wrote(key, replicaSetResource, created)
		c.tellScaled(d, created.Name, 0, size(created))
		return runner.Result{}, true
	case apierrors.IsAlreadyExists(err):
		return c.taken(ctx, key, d, p, err), false
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return runner.GiveUp(fmt.Errorf("create replica set %s: %w", p.create.Name, err)), false
	}
	message := createFailure(p.create.Name, err)
	c.recorder.Event(d, corev1.EventTypeWarning, eventCreateError, message)
	told := c.writeStatus(ctx, key, d, "", afterCreateFailure(d, p.begun, message, c.clock.Now()))
	return runner.Done(fmt.Errorf("create replica set %s: %w", p.create.Name, err), told), false
}

// taken deals with a name that is in use: by the very set, which the cache has
// not shown yet, or by another, in which case the hash has to become another.
func (c *Controller) taken(ctx context.Context, key types.NamespacedName, d *appsv1.Deployment, p plan, exists error) runner.Result {
	live, err := c.client.AppsV1().ReplicaSets(d.Namespace).Get(ctx, p.create.Name, metav1.GetOptions{})
	if err != nil {
		return runner.Done(fmt.Errorf("read replica set %s, whose name is taken: %w", p.create.Name, err))
	}
	if metav1.IsControlledBy(live, d) && sameTemplate(&live.Spec.Template, &d.Spec.Template) {
		c.writes.Wrote(key, replicaSetResource, live)
		return runner.Done(fmt.Errorf("create replica set %s, which the cache does not show yet: %w", live.Name, exists))
	}
	// The written status wakes the Deployment again.
	return runner.Done(c.writeStatus(ctx, key, d, "", afterCollision(p.begun)))
}

// editAll sends the edits one after the other. Several may be of one set; each
// is made on the version that the one before has left.
func (c *Controller) editAll(ctx context.Context, key types.NamespacedName, d *appsv1.Deployment, edits []edit) error {
	versions := map[types.UID]string{}
	for _, e := range edits {
		version, again := versions[e.set.UID]
		if !again {
			version = e.set.ResourceVersion
		}
		patch, err := e.patch(version)
		if err != nil {
			return fmt.Errorf("change replica set %s: %w", e.set.Name, err)
		}
		began := c.clock.Now()
		changed, err := c.client.AppsV1().ReplicaSets(d.Namespace).Patch(ctx, e.set.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("change replica set %s: %w", e, err)
		}
		c.pace.Sent(key, began)
		versions[e.set.UID] = changed.ResourceVersion
		c.writes.Wrote(key, replicaSetResource, changed)
		c.tellScaled(d, e.set.Name, e.from, e.to)
	}
	return nil
}

// patch returns the merge patch, which the server refuses when the set is not
// the one that was decided on.
func (e edit) patch(version string) ([]byte, error) {
	metadata := map[string]any{"uid": e.set.UID, "resourceVersion": version}
	if len(e.annotations) > 0 {
		metadata["annotations"] = e.annotations
	}
	spec := map[string]any{}
	if e.from != e.to {
		spec["replicas"] = e.to
	}
	if e.minReadySeconds != nil {
		spec["minReadySeconds"] = *e.minReadySeconds
	}
	patch := map[string]any{"metadata": metadata}
	if len(spec) > 0 {
		patch["spec"] = spec
	}
	return json.Marshal(patch)
}

func (c *Controller) tellScaled(d *appsv1.Deployment, name string, from, to int32) {
	switch {
	case from < to:
		c.recorder.Eventf(d, corev1.EventTypeNormal, eventScaled, "Scaled up replica set %s from %d to %d", name, from, to)
	case from > to:
		c.recorder.Eventf(d, corev1.EventTypeNormal, eventScaled, "Scaled down replica set %s from %d to %d", name, from, to)
	}
}

// rollBack replaces the Deployment, which the cache holds whole.
func (c *Controller) rollBack(ctx context.Context, key types.NamespacedName, d, after *appsv1.Deployment) error {
	updated, err := c.client.AppsV1().Deployments(d.Namespace).Update(ctx, after, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("roll back deployment %s: %w", key, err)
	}
	c.writes.Wrote(key, deploymentResource, updated)
	return nil
}

// remove deletes a set of the history, in the version that was judged. One that
// has changed since, or whose deletion was refused, is judged again.
func (c *Controller) remove(ctx context.Context, key types.NamespacedName, set *appsv1.ReplicaSet) error {
	precondition := metav1.Preconditions{UID: &set.UID, ResourceVersion: &set.ResourceVersion}
	answer := c.client.AppsV1().ReplicaSets(set.Namespace).Delete(ctx, set.Name, metav1.DeleteOptions{Preconditions: &precondition})
	if became, err := c.writes.DeleteAnswered(ctx, key, replicaSetResource, set, answer); became == consistency.Failed {
		return fmt.Errorf("delete replica set %s beyond the history limit: %w", set.Name, err)
	}
	return nil
}

// spare says how long the status can wait because it is only a step of a rollout.
func (c *Controller) spare(key types.NamespacedName, d *appsv1.Deployment, p plan) time.Duration {
	if p.revision != "" && d.Annotations[revisionAnnotation] != p.revision || !underWay(d, &p.status) {
		return 0
	}
	return c.pace.Wait(key)
}

// writeStatus writes the status and the revision in one request, if they changed.
func (c *Controller) writeStatus(ctx context.Context, key types.NamespacedName, d *appsv1.Deployment, revision string, status appsv1.DeploymentStatus) error {
	same := revision == "" || d.Annotations[revisionAnnotation] == revision
	if same && apiequality.Semantic.DeepEqual(d.Status, status) {
		return nil
	}
	after := d.DeepCopy()
	after.Status = status
	if !same {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, revisionAnnotation, revision)
	}
	began := c.clock.Now()
	written, err := c.client.AppsV1().Deployments(d.Namespace).UpdateStatus(ctx, after, metav1.UpdateOptions{})
	if err != nil {
		if err = c.writes.UnlessGone(ctx, deploymentResource, d, err); err != nil {
			return fmt.Errorf("write the status of deployment %s: %w", key, err)
		}
		return nil
	}
	c.writes.Wrote(key, deploymentResource, written)
	c.pace.Sent(key, began)
	return nil
}
