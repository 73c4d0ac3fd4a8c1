package serviceaccounttoken

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func (c *Controller) observeAccount(ctx context.Context, key accountKey) (observedAccount, error) {
	o := observedAccount{key: key}
	account, another, err := c.account(ctx, key.namespace, key.name, key.uid)
	if err != nil || account != nil {
		o.there = account != nil
		return o, err
	}
	o.another = another
	o.secrets, err = cache.Lookup[corev1.Secret](c.secrets, cache.TokensByServiceAccount, key.String())
	return o, err
}

// observeSecret reads a token secret and its service account, and signs the token that
// it lacks: keys are not for a plan.
func (c *Controller) observeSecret(ctx context.Context, key secretKey) (observedSecret, error) {
	o := observedSecret{key: key, rootCA: c.rootCA}
	secret, err := reconcile.Cached[corev1.Secret](c.secrets, key)
	if err != nil || secret.UID != key.uid || !isToken(secret) {
		return o, c.observeGone(ctx, key, &o)
	}
	o.secret = secret
	o.account, _, err = c.account(ctx, secret.Namespace, secret.Annotations[corev1.ServiceAccountNameKey],
		types.UID(secret.Annotations[corev1.ServiceAccountUIDKey]))
	if err == nil && o.account != nil && lacking(secret, c.rootCA).Token {
		o.token, err = c.issuer.token(o.account, secret.Name)
	}
	return o, err
}

// observeGone reads live what may still list a secret that is gone: the cached account may
// not show it yet, and nothing else would wake the key. An account of another UID lists a
// secret of the name that is not this one.
func (c *Controller) observeGone(ctx context.Context, key secretKey, o *observedSecret) error {
	cached, err := c.accounts.ServiceAccounts(key.namespace).Get(key.account)
	if err != nil || key.accountUID != "" && cached.UID != key.accountUID {
		return nil
	}
	account, err := reconcile.Live[corev1.ServiceAccount](ctx, c.live, client.ObjectKeyFromObject(cached))
	switch {
	case err != nil:
		return fmt.Errorf("get service account %s/%s: %w", key.namespace, key.account, err)
	case account == nil || key.accountUID != "" && account.UID != key.accountUID || !refers(account, key.name):
		return nil
	}
	another := &metav1.PartialObjectMetadata{}
	another.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err = c.live.Get(ctx, client.ObjectKey{Namespace: key.namespace, Name: key.name}, another)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("get secret %s: %w", key, err)
	}
	o.account, o.taken = account, err == nil
	return nil
}

// account finds the service account of this name and, if given, this UID; without one it
// is read live, for the cached one may be gone already. What the cache does not have is
// looked up live too: nil means that it is really gone, and another that the name is taken.
func (c *Controller) account(ctx context.Context, namespace, name string, uid types.UID) (of *corev1.ServiceAccount, another bool, err error) {
	cached, err := c.accounts.ServiceAccounts(namespace).Get(name)
	if err == nil && cached.UID == uid {
		return cached, false, nil
	}
	live, err := reconcile.Live[corev1.ServiceAccount](ctx, c.live, client.ObjectKey{Namespace: namespace, Name: name})
	switch {
	case err != nil:
		return nil, false, fmt.Errorf("get service account %s/%s: %w", namespace, name, err)
	case live == nil:
		return nil, false, nil
	case uid != "" && live.UID != uid:
		return nil, true, nil
	}
	return live, false, nil
}
