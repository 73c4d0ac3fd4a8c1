package persistentvolumebinder

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// addOperations makes the loop of operations.
func (c *Controller) addOperations(hand reconcile.Hand, written reconcile.Caches) {
	o := runner.Options[operation]{
		Name: controllerName + "-operations", Queue: operationQueue, Workers: atOnce, FixedWorkers: true, Clock: hand.Clock,
		Writes: consistency.NewTracker[operation](written), StuckAfter: longestOperation,
	}
	c.actor = reconcile.NewActor(reconcile.Options[operation]{Name: controllerName, Runner: o, Hand: hand})
	c.operations = runner.New(o, c.perform)
}

// start begins an operation, unless it runs or has failed a moment ago. The next look at
// its volume or claim tries again then.
func (c *Controller) start(op operation) {
	if !c.shadow && c.ledger.begin(op, c.clock.Now()) {
		c.operations.Add(op)
	}
}

// perform carries out an operation. One that fails is not retried here.
func (c *Controller) perform(ctx context.Context, op operation) runner.Result {
	ended := false
	c.ledger.run(op)
	defer func() {
		if !ended {
			c.ledger.end(op, true, c.clock.Now()) // a panic, which the runner reports
		}
	}()
	err := c.carryOut(ctx, op)
	c.ledger.end(op, err != nil && consistency.WasWithheld(err) == nil && op.Kind != recycles, c.clock.Now())
	ended = true
	if err != nil {
		return runner.Terminal(fmt.Errorf("%s: %w", op, err))
	}
	return runner.Done()
}

func (c *Controller) carryOut(ctx context.Context, op operation) error {
	switch op.Kind {
	case deletes:
		return c.deleteVolume(ctx, op)
	case recycles:
		return c.recycleVolume(ctx, op)
	}
	return c.provisionVolume(ctx, op)
}

// released reads a volume and its claim live; the plugin is nil if there is nothing to
// reclaim any more.
func (c *Controller) released(ctx context.Context, op operation) (*corev1.PersistentVolume, *Plugin) {
	pv := &corev1.PersistentVolume{}
	if err := c.live.Get(ctx, types.NamespacedName{Name: op.Volume}, pv); err != nil {
		return nil, nil
	}
	plugin := reclaims(op, pv, c.plugins)
	if plugin == nil {
		return nil, nil
	}
	ref := pv.Spec.ClaimRef
	claim, err := c.liveClaim(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, ref.UID)
	if err != nil || claim != nil && mayHave(claim, pv) {
		return nil, nil
	}
	return pv, plugin
}

// deleteVolume deletes the backend of a volume, and then the volume. The backend waits for
// the turn of the volume: a brake or a pause that came after the data would save nothing.
func (c *Controller) deleteVolume(ctx context.Context, op operation) error {
	pv, plugin := c.released(ctx, op)
	if plugin == nil {
		return nil
	}
	var err error
	backend := act.Call{Of: pv, What: "delete the backend of", Do: func(ctx context.Context) (any, error) {
		if err = plugin.Delete(ctx, pv); err == nil {
			err = c.unprotect(ctx, op)
		}
		return nil, err
	}}
	taken := c.actor.Take(ctx, op, act.Part{Of: pv, Stages: act.Stages(backend, act.Delete{Of: pv, MayRepeat: true})})
	switch {
	case consistency.WasWithheld(taken.Err) != nil:
		return taken.Err // it is no failure to wait
	case err != nil:
		countError(plugin.Name, deletes)
		c.report(op, pv, failure{failedDelete, err.Error()})
		return err
	case taken.Err != nil:
		klog.FromContext(ctx).Error(taken.Err, "The backend of a volume is deleted and the volume is not; the next look at it tries again", "volume", pv.Name)
	}
	return nil
}

// report has the key of a volume report a failure.
func (c *Controller) report(op operation, pv *corev1.PersistentVolume, f failure) {
	c.ledger.failed(pv.UID, pv.Spec.ClaimRef.UID, f)
	c.volumes.Add(op.Volume)
}

// unprotect takes off the finalizer that has kept a volume until its backend was deleted.
func (c *Controller) unprotect(ctx context.Context, op operation) error {
	for try := 1; ; try++ {
		pv := &corev1.PersistentVolume{}
		if err := c.live.Get(ctx, types.NamespacedName{Name: op.Volume}, pv); client.IgnoreNotFound(err) != nil {
			return err
		} else if err != nil || pv.UID != op.UID || !slices.Contains(pv.Finalizers, deletionProtection) {
			return nil
		}
		pv.Finalizers = without(pv.Finalizers, deletionProtection)
		if err := c.actor.Take(ctx, op, act.Update{Object: pv}).Err; !apierrors.IsConflict(err) || try == tries {
			return err // a conflict says only that somebody else has written
		}
	}
}

// recycleVolume empties a volume once after each claim, and has its key take the claim off.
func (c *Controller) recycleVolume(ctx context.Context, op operation) error {
	pv, plugin := c.released(ctx, op)
	if plugin == nil {
		return nil
	}
	if _, emptied := c.ledger.of(pv.UID, pv.Spec.ClaimRef.UID); emptied {
		// The look that has started this is older: the next claim may have the volume already.
		c.volumes.Add(op.Volume)
		return nil
	}
	say := func(eventType, message string) {
		c.actor.Take(ctx, op, act.Event{On: pv, Type: eventType, Reason: "RecyclerPod", Message: message})
	}
	if err := plugin.Recycle(ctx, pv, say); consistency.WasWithheld(err) != nil {
		return err // it is no failure to wait
	} else if err != nil {
		c.report(op, pv, failure{failedRecycle, fmt.Sprintf("Recycle failed: %v", err)})
		return err
	}
	c.ledger.empty(pv.UID, pv.Spec.ClaimRef.UID)
	c.volumes.Add(op.Volume)
	return nil
}
