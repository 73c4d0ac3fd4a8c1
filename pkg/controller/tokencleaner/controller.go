package tokencleaner

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/bootstraptokens"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name  = "token-cleaner-controller"
	queue = "token_cleaner"
)

var secretResource = schema.GroupResource{Resource: "secrets"}

// Options are the settings of the controller.
type Options struct {
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// Controller deletes expired tokens; its keys are their secrets.
type Controller struct {
	*runner.Runner[types.NamespacedName]
	secrets corelisters.SecretLister
	client  kubernetes.Interface
	writes  *consistency.Tracker[types.NamespacedName]
	clock   clock.PassiveClock
}

// New returns the controller, which is not running yet. The secrets may be those
// of bootstraptokens.Informers.
func New(secrets coreinformers.SecretInformer, client kubernetes.Interface, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{
		secrets: secrets.Lister(), client: client, clock: o.Clock,
		writes: consistency.NewTracker[types.NamespacedName](map[schema.GroupResource]consistency.Store{
			secretResource: secrets.Informer().GetStore(),
		}),
	}
	c.Runner = runner.New(runner.Options[types.NamespacedName]{Name: name, Queue: queue, Clock: o.Clock, Writes: c.writes}, c.sync)
	return c, runner.Watch(c.Runner, secrets.Informer(), func(change runner.Change[corev1.Secret], wake runner.Wake[types.NamespacedName]) {
		if secret := change.New; secret != nil && bootstraptokens.Is(secret) {
			wake.Add(types.NamespacedName{Namespace: secret.Namespace, Name: secret.Name})
		}
	})
}

func (c *Controller) sync(ctx context.Context, key types.NamespacedName) runner.Result {
	secret, err := c.secrets.Secrets(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.writes.Forget(key)
		return runner.Done().Because(plan{Why: "it is gone"})
	}
	if err != nil {
		return runner.Done(err)
	}
	do := decide(secret, c.clock.Now())
	if do.Delete {
		return runner.Done(c.deleteToken(ctx, key, secret, do.Why)).Because(do)
	}
	return runner.Done().LookAgain(do.Again).Because(do)
}

// deleteToken deletes the secret in the version that was judged: its expiration
// may have been put off since. That makes a second deletion harmless, so that
// nothing waits for one whose answer does not say what became of it.
func (c *Controller) deleteToken(ctx context.Context, key types.NamespacedName, secret *corev1.Secret, why string) error {
	err := c.client.CoreV1().Secrets(key.Namespace).Delete(ctx, key.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion},
	})
	done := consistency.Failed
	if !consistency.OutcomeUnknown(err) {
		done, err = c.writes.DeleteAnswered(ctx, key, secretResource, secret, err)
	}
	if err != nil {
		return fmt.Errorf("delete bootstrap token %s: %w", key, err)
	}
	if done == consistency.Deleted {
		klog.FromContext(ctx).V(3).Info("Deleted a bootstrap token", "secret", key, "why", why)
	}
	return nil
}
