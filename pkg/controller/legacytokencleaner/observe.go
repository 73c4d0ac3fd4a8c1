package legacytokencleaner

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/pager"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

var (
	tokensOnly = fields.OneTermEqualSelector("type", string(corev1.SecretTypeServiceAccountToken)).String()
	tracking   = client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: TrackingConfigMap}
)

func (c *Controller) observe(ctx context.Context, k key) (observed, error) {
	if k == pass {
		return c.observeAll(ctx)
	}
	return c.observeNamespace(ctx, k.namespace)
}

// observeAll looks for the namespaces in which tokens may be to retire, if uses are
// recorded for long enough.
func (c *Controller) observeAll(ctx context.Context) (observed, error) {
	o := observed{pass: true, unused: c.unused}
	recorded := &corev1.ConfigMap{}
	if err := c.own.Get(ctx, tracking, recorded); err != nil {
		return o, fmt.Errorf("get config map %s: %w", tracking, err)
	}
	from, err := trackedFrom(recorded)
	if err != nil {
		return o, err
	}
	o.due = from.Add(c.unused)
	now := c.Clock().Now()
	if now.Before(o.due) {
		return o, nil
	}
	namespaces := sets.New[string]()
	err = c.eachUnusedToken(ctx, metav1.NamespaceAll, now, func(secret metav1.ObjectMeta) { namespaces.Insert(secret.Namespace) })
	o.namespaces = sets.List(namespaces)
	return o, err
}

// observeNamespace looks for the tokens to retire in a namespace, by what is there now.
func (c *Controller) observeNamespace(ctx context.Context, namespace string) (observed, error) {
	o := observed{unused: c.unused}
	err := c.eachUnusedToken(ctx, namespace, c.Clock().Now(), func(secret metav1.ObjectMeta) {
		o.tokens = append(o.tokens, token{secret: &corev1.Secret{ObjectMeta: secret}})
	})
	if err != nil || len(o.tokens) == 0 {
		return o, err
	}
	referred, err := c.secretsOfPods(ctx, namespace)
	if err != nil {
		return o, err
	}
	for i := range o.tokens {
		t := &o.tokens[i]
		if t.inUse = referred.Has(t.secret.Name); !t.inUse {
			t.account, t.unknown = c.liveAccount(ctx, t.secret)
		}
	}
	return o, nil
}

// each calls visit with every object of a namespace, page by page, and does not read
// many pages ahead: a page of pods is large.
func each[T any](ctx context.Context, live client.Reader, namespace, selector string, empty func() client.ObjectList, visit func(*T)) error {
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		list := empty()
		err := live.List(ctx, list, &client.ListOptions{Namespace: namespace, Limit: o.Limit, Continue: o.Continue, Raw: &o})
		return list, err
	})
	pages.PageBufferSize = 1
	return pages.EachListItem(ctx, metav1.ListOptions{FieldSelector: selector}, func(item runtime.Object) error {
		if object, is := any(item).(*T); is {
			visit(object)
		}
		return nil
	})
}

// eachUnusedToken calls visit with the metadata of every token secret of a namespace
// that would be retired, as far as the cached service accounts and no pod are asked.
func (c *Controller) eachUnusedToken(ctx context.Context, namespace string, now time.Time, visit func(metav1.ObjectMeta)) error {
	metadata := func() client.ObjectList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		return list
	}
	err := each(ctx, c.live, namespace, tokensOnly, metadata, func(secret *metav1.PartialObjectMetadata) {
		if decide(secret, c.cachedAccount(secret), c.unused, now).Do != keep {
			visit(secret.ObjectMeta)
		}
	})
	if err != nil {
		return fmt.Errorf("list token secrets: %w", err)
	}
	return nil
}

// secretsOfPods returns the names of the secrets that pods of a namespace refer to.
func (c *Controller) secretsOfPods(ctx context.Context, namespace string) (sets.Set[string], error) {
	names := sets.New[string]()
	err := each(ctx, c.live, namespace, "", func() client.ObjectList { return &corev1.PodList{} },
		func(pod *corev1.Pod) { addSecretsOf(pod, names) })
	if err != nil {
		return nil, fmt.Errorf("list the pods of namespace %s: %w", namespace, err)
	}
	return names, nil
}

// cachedAccount returns the service account that a secret names, nil if the cache has none.
func (c *Controller) cachedAccount(secret metav1.Object) *corev1.ServiceAccount {
	account, _ := c.accounts.ServiceAccounts(secret.GetNamespace()).Get(secret.GetAnnotations()[corev1.ServiceAccountNameKey])
	return account
}

// liveAccount is cachedAccount from the API server.
func (c *Controller) liveAccount(ctx context.Context, secret metav1.Object) (*corev1.ServiceAccount, error) {
	name := client.ObjectKey{Namespace: secret.GetNamespace(), Name: secret.GetAnnotations()[corev1.ServiceAccountNameKey]}
	account, err := reconcile.Live[corev1.ServiceAccount](ctx, c.live, name)
	if err != nil {
		return nil, fmt.Errorf("get service account %s: %w", name, err)
	}
	return account, nil
}
