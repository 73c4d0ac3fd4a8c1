package legacytokencleaner

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/pager"
)

var (
	secretsResource = corev1.SchemeGroupVersion.WithResource("secrets")
	tokensOnly      = fields.OneTermEqualSelector("type", string(corev1.SecretTypeServiceAccountToken)).String()
)

// paged lists without reading many pages ahead: a page of pods is large.
func paged(list pager.ListPageFunc) *pager.ListPager {
	p := pager.New(list)
	p.PageBufferSize = 1
	return p
}

// eachToken calls visit with the metadata of every token secret of a namespace.
func (c *Controller) eachToken(ctx context.Context, namespace string, visit func(*metav1.PartialObjectMetadata)) error {
	list := paged(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return c.metadata.Resource(secretsResource).Namespace(namespace).List(ctx, o)
	})
	err := list.EachListItem(ctx, metav1.ListOptions{FieldSelector: tokensOnly}, func(item runtime.Object) error {
		if secret, ok := item.(*metav1.PartialObjectMetadata); ok {
			visit(secret)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("list token secrets: %w", err)
	}
	return nil
}

// secretsOfPods returns the names of the secrets that pods of a namespace refer to.
func (c *Controller) secretsOfPods(ctx context.Context, namespace string) (sets.Set[string], error) {
	names := sets.New[string]()
	list := paged(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return c.reader.CoreV1().Pods(namespace).List(ctx, o)
	})
	err := list.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		if pod, ok := item.(*corev1.Pod); ok {
			addSecretsOf(pod, names)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the pods of namespace %s: %w", namespace, err)
	}
	return names, nil
}

// cachedAccount returns the service account that a secret names, nil if the cache has none.
func (c *Controller) cachedAccount(secret metav1.Object) *corev1.ServiceAccount {
	account, err := c.accounts.ServiceAccounts(secret.GetNamespace()).Get(secret.GetAnnotations()[corev1.ServiceAccountNameKey])
	if err != nil {
		return nil // a lister's only error is that it has none
	}
	return account
}

// liveAccount is cachedAccount from the API server.
func (c *Controller) liveAccount(ctx context.Context, secret metav1.Object) (*corev1.ServiceAccount, error) {
	name := secret.GetAnnotations()[corev1.ServiceAccountNameKey]
	account, err := c.reader.CoreV1().ServiceAccounts(secret.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get service account %s/%s: %w", secret.GetNamespace(), name, err)
	}
	return account, nil
}
