package serviceaccounttoken

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// account finds the service account of this name and, if given, this UID. What
// the cache does not have is looked up live: nil means that it is really gone.
func (c *Controller) account(ctx context.Context, namespace, name string, uid types.UID) (*corev1.ServiceAccount, error) {
	cached, err := c.accounts.ServiceAccounts(namespace).Get(name)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if err == nil && (uid == "" || cached.UID == uid) {
		return cached, nil
	}
	live, err := c.client.CoreV1().ServiceAccounts(namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get service account %s/%s: %w", namespace, name, err)
	case uid != "" && live.UID != uid:
		return nil, nil
	}
	return live, nil
}

// deleteToken deletes the secret in the state in which it was judged.
func (c *Controller) deleteToken(ctx context.Context, secret *corev1.Secret) error {
	if secret.DeletionTimestamp != nil {
		return nil
	}
	err := c.client.CoreV1().Secrets(secret.Namespace).Delete(ctx, secret.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion},
	})
	if _, err = c.writes.DeleteAnswered(ctx, keyOf(secret), secretResource, secret, err); err != nil {
		return fmt.Errorf("delete token secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

func (c *Controller) fill(ctx context.Context, key secretKey, secret *corev1.Secret, account *corev1.ServiceAccount, missing lack) error {
	var token string
	if missing.Token {
		var err error
		if token, err = c.issuer.token(account, secret.Name); err != nil {
			return err
		}
	}
	updated, err := c.client.CoreV1().Secrets(secret.Namespace).Update(ctx,
		filled(secret, account, missing, c.rootCA, token), metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("fill token secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	c.writes.Wrote(key, secretResource, updated)
	return nil
}

// unlist takes a secret that is gone off the service account that it named.
func (c *Controller) unlist(ctx context.Context, key secretKey) runner.Result {
	account, err := c.accounts.ServiceAccounts(key.namespace).Get(key.account)
	if apierrors.IsNotFound(err) {
		return runner.Done()
	}
	if err != nil {
		return runner.Done(err)
	}
	if !refers(account, key.name) {
		return runner.Done().Because(plan{Why: "the secret is gone and not listed"})
	}
	_, err = c.client.CoreV1().Secrets(key.namespace).Get(ctx, key.name, metav1.GetOptions{})
	if err == nil {
		return runner.Done().Because(plan{Why: "another secret has taken the name"})
	}
	if !apierrors.IsNotFound(err) {
		return runner.Done(fmt.Errorf("get secret %s: %w", key, err))
	}
	do := plan{Unlist: key.name, Why: "the secret is gone"}
	return runner.Done(c.takeOff(ctx, account, key.name)).Because(do)
}

// takeOff updates the account as it was judged: the role of the process has no
// patch. A conflict is judged again.
func (c *Controller) takeOff(ctx context.Context, account *corev1.ServiceAccount, secretName string) error {
	_, err := c.client.CoreV1().ServiceAccounts(account.Namespace).Update(ctx, without(account, secretName), metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("take secret %s off service account %s/%s: %w", secretName, account.Namespace, account.Name, err)
	}
	return nil
}
