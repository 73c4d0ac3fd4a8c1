package serviceaccounttoken

import (
	"context"
	"crypto"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name = "serviceaccount-token-controller"
	// queue names both queues: their metrics are one series.
	queue = "serviceaccount_tokens_service"

	maxRetries = 10
)

var secretResource = schema.GroupResource{Resource: "secrets"}

// Informers returns informers whose secrets are only those of the token type.
// The caller starts them.
func Informers(client kubernetes.Interface, resync time.Duration) informers.SharedInformerFactory {
	return cache.Filtered(client, resync, fields.OneTermEqualSelector("type", string(corev1.SecretTypeServiceAccountToken)).String())
}

// Options are the settings of the controller.
type Options struct {
	// Key signs the tokens; an RSA or ECDSA private key, see LoadKey.
	Key crypto.Signer
	// RootCA is the PEM bundle put into the secrets; none if empty.
	RootCA []byte
	// Workers is how many service accounts and how many secrets are worked on at once; 1 by default.
	Workers int
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// accountKey is a service account that was seen under a UID.
type accountKey struct {
	namespace, name string
	uid             types.UID
}

func (k accountKey) String() string { return k.namespace + "/" + k.name }

// secretKey is a token secret that was seen under a UID, and the service account it names.
type secretKey struct {
	namespace, name string
	uid             types.UID
	account         string
}

func (k secretKey) String() string { return k.namespace + "/" + k.name }

func keyOf(secret *corev1.Secret) secretKey {
	return secretKey{
		namespace: secret.Namespace, name: secret.Name, uid: secret.UID,
		account: secret.Annotations[corev1.ServiceAccountNameKey],
	}
}

// Controller fills and deletes token secrets.
type Controller struct {
	*runner.Group
	accounts corelisters.ServiceAccountLister
	secrets  corelisters.SecretLister
	indexer  toolscache.Indexer
	client   kubernetes.Interface
	issuer   *issuer
	rootCA   []byte
	writes   *consistency.Tracker[secretKey]
}

// New returns the controller, which is not running yet. The secrets may be those of Informers.
func New(accounts coreinformers.ServiceAccountInformer, secrets coreinformers.SecretInformer, client kubernetes.Interface, o Options) (*Controller, error) {
	issuer, err := newIssuer(o.Key)
	if err != nil {
		return nil, err
	}
	if err := cache.Ensure(secrets.Informer(), cache.TokensByServiceAccount); err != nil {
		return nil, err
	}
	c := &Controller{
		accounts: accounts.Lister(), secrets: secrets.Lister(), indexer: secrets.Informer().GetIndexer(),
		client: client, issuer: issuer, rootCA: o.RootCA,
		writes: consistency.NewTracker[secretKey](map[schema.GroupResource]consistency.Store{
			secretResource: secrets.Informer().GetStore(),
		}),
	}
	ready := []toolscache.InformerSynced{accounts.Informer().HasSynced, secrets.Informer().HasSynced}
	byAccount := runner.New(runner.Options[accountKey]{
		Name: name + "/accounts", Queue: queue, Workers: o.Workers, Clock: o.Clock, MaxRetries: maxRetries, Synced: ready,
	}, c.syncAccount)
	bySecret := runner.New(runner.Options[secretKey]{
		Name: name + "/secrets", Queue: queue, Workers: o.Workers, Clock: o.Clock, MaxRetries: maxRetries, Synced: ready, Writes: c.writes,
	}, c.syncSecret)
	if err := runner.Watch(byAccount, accounts.Informer(), wakeAccount); err != nil {
		return nil, err
	}
	if err := runner.Watch(bySecret, secrets.Informer(), wakeSecret); err != nil {
		return nil, err
	}
	c.Group = runner.NewGroup(name, byAccount, bySecret)
	return c, nil
}

func wakeAccount(change runner.Change[corev1.ServiceAccount], wake runner.Wake[accountKey]) {
	account := change.Now()
	wake.Add(accountKey{account.Namespace, account.Name, account.UID})
	if change.Old != nil && change.Old.UID != account.UID {
		// A relist hid the deletion of the account whose name this one took.
		wake.Add(accountKey{change.Old.Namespace, change.Old.Name, change.Old.UID})
	}
}

func wakeSecret(change runner.Change[corev1.Secret], wake runner.Wake[secretKey]) {
	secret := change.Now()
	if !isToken(secret) {
		return
	}
	wake.Add(keyOf(secret))
}

// plan is shown at the debug endpoint.
type plan struct {
	Fill   *lack    `json:"fill,omitempty"`
	Delete []string `json:"delete,omitempty"`
	Unlist string   `json:"unlist,omitempty"`
	Why    string   `json:"why"`
}

// syncAccount deletes the tokens of a service account that is gone.
func (c *Controller) syncAccount(ctx context.Context, key accountKey) runner.Result {
	account, err := c.account(ctx, key.namespace, key.name, key.uid)
	if err != nil {
		return runner.Done(err)
	}
	if account != nil {
		return runner.Done().Because(plan{Why: "the service account is there"})
	}
	secrets, err := cache.Lookup[corev1.Secret](c.indexer, cache.TokensByServiceAccount, key.namespace+"/"+key.name)
	if err != nil {
		return runner.Done(err)
	}
	do := plan{Why: "the service account is gone"}
	gone := &corev1.ServiceAccount{}
	gone.Namespace, gone.Name, gone.UID = key.namespace, key.name, key.uid
	var errs []error
	for _, secret := range secrets {
		if belongs(secret, gone) {
			do.Delete = append(do.Delete, secret.Name)
			errs = append(errs, c.deleteToken(ctx, secret))
		}
	}
	return runner.Done(errs...).Because(do)
}

// syncSecret fills a token secret, deletes it when its service account is gone,
// or takes a deleted one off its service account.
func (c *Controller) syncSecret(ctx context.Context, key secretKey) runner.Result {
	secret, err := c.secrets.Secrets(key.namespace).Get(key.name)
	if err != nil && !apierrors.IsNotFound(err) {
		return runner.Done(err)
	}
	if err != nil || secret.UID != key.uid || !isToken(secret) {
		c.writes.Forget(key)
		return c.unlist(ctx, key)
	}
	account, err := c.account(ctx, secret.Namespace, secret.Annotations[corev1.ServiceAccountNameKey],
		types.UID(secret.Annotations[corev1.ServiceAccountUIDKey]))
	if err != nil {
		return runner.Done(err)
	}
	if account == nil {
		do := plan{Delete: []string{secret.Name}, Why: "its service account is gone"}
		return runner.Done(c.deleteToken(ctx, secret)).Because(do)
	}
	missing := lacking(secret, c.rootCA)
	if missing == (lack{}) {
		return runner.Done().Because(plan{Why: "nothing is missing"})
	}
	return runner.Done(c.fill(ctx, key, secret, account, missing)).Because(plan{Fill: &missing, Why: "the secret is not complete"})
}
