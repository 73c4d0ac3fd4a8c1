package serviceaccount

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// Controller creates missing service accounts; its keys are names of namespaces.
type Controller struct {
	*reconcile.Controller[string]
	namespaces, accounts toolscache.Store
}

// New returns the controller, which is not running yet.
func New(namespaces coreinformers.NamespaceInformer, accounts coreinformers.ServiceAccountInformer, hand reconcile.Hand) (*Controller, error) {
	c := &Controller{namespaces: namespaces.Informer().GetStore(), accounts: accounts.Informer().GetStore()}
	c.Controller = reconcile.New(reconcile.Options[string]{
		Runner: runner.Options[string]{Name: "serviceaccount-controller", Queue: "serviceaccount", Namespace: func(key string) string { return key }},
		Hand:   hand, Caches: reconcile.Caches{corev1.Resource("serviceaccounts"): c.accounts},
	}, c.observe, plan)
	return c, errors.Join(
		runner.Watch(c.Runner, namespaces.Informer(), func(change runner.Change[corev1.Namespace], wake runner.Wake[string]) {
			if change.New != nil {
				wake.Add(change.New.Name)
			}
		}),
		runner.Watch(c.Runner, accounts.Informer(), func(change runner.Change[corev1.ServiceAccount], wake runner.Wake[string]) {
			if change.New == nil && change.Old.Name == defaultName {
				wake.Add(change.Old.Namespace)
			}
		}),
	)
}

func (c *Controller) observe(_ context.Context, key string) (observed, error) {
	namespace, err := reconcile.Cached[corev1.Namespace](c.namespaces, key)
	if err != nil {
		return observed{}, err
	}
	_, has, err := c.accounts.GetByKey(key + "/" + defaultName)
	return observed{namespace, has}, err
}
