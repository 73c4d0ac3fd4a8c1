package serviceaccount

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name  = "serviceaccount-controller"
	queue = "serviceaccount"
)

var accountResource = schema.GroupResource{Resource: "serviceaccounts"}

// Options are the settings of the controller.
type Options struct {
	// Workers is how many namespaces are worked on at once; 1 by default.
	Workers int
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// Controller creates missing service accounts; its keys are names of namespaces.
type Controller struct {
	*runner.Runner[string]
	namespaces corelisters.NamespaceLister
	accounts   corelisters.ServiceAccountLister
	client     kubernetes.Interface
	writes     *consistency.Tracker[string]
}

// New returns the controller, which is not running yet.
func New(namespaces coreinformers.NamespaceInformer, accounts coreinformers.ServiceAccountInformer, client kubernetes.Interface, o Options) (*Controller, error) {
	c := &Controller{namespaces: namespaces.Lister(), accounts: accounts.Lister(), client: client}
	c.writes = consistency.NewTracker[string](map[schema.GroupResource]consistency.Store{
		accountResource: accounts.Informer().GetStore(),
	})
	c.Runner = runner.New(runner.Options[string]{
		Name: name, Queue: queue, Workers: o.Workers, Clock: o.Clock, Writes: c.writes,
	}, c.sync)
	err := runner.Watch(c.Runner, namespaces.Informer(), func(change runner.Change[corev1.Namespace], wake runner.Wake[string]) {
		if change.New != nil {
			wake.Add(change.New.Name)
		}
	})
	if err != nil {
		return nil, err
	}
	return c, runner.Watch(c.Runner, accounts.Informer(), func(change runner.Change[corev1.ServiceAccount], wake runner.Wake[string]) {
		if change.New == nil && change.Old.Name == defaultName {
			wake.Add(change.Old.Namespace)
		}
	})
}

func (c *Controller) sync(ctx context.Context, namespaceName string) runner.Result {
	namespace, err := c.namespaces.Get(namespaceName)
	if err != nil && !apierrors.IsNotFound(err) {
		return runner.Done(err)
	}
	if err != nil {
		namespace = nil
		c.writes.Forget(namespaceName)
	}
	do := decide(namespace, func(account string) bool {
		_, err := c.accounts.ServiceAccounts(namespaceName).Get(account)
		return err == nil
	})
	var errs []error
	for _, account := range do.Create {
		errs = append(errs, c.create(ctx, namespaceName, account))
	}
	return runner.Done(errs...).Because(do)
}

func (c *Controller) create(ctx context.Context, namespaceName, account string) error {
	created, err := c.client.CoreV1().ServiceAccounts(namespaceName).Create(ctx, &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: account, Namespace: namespaceName},
	}, metav1.CreateOptions{})
	switch {
	case err == nil:
		c.writes.Wrote(namespaceName, accountResource, created)
		return nil
	case apierrors.IsAlreadyExists(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // somebody was faster, or the namespace began to end
	}
	return fmt.Errorf("create service account %s/%s: %w", namespaceName, account, err)
}
