package serviceaccounttoken

import (
	"crypto"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name = "serviceaccount-token-controller"
	// queue names both queues: their metrics are one series.
	queue = "serviceaccount_tokens_service"

	maxRetries = 10
)

// Informers makes informers whose secrets are only those of the token type.
var Informers = cache.Only(metav1.NamespaceAll, "type", string(corev1.SecretTypeServiceAccountToken))

// Options are the settings of the controller.
type Options struct {
	// Key signs the tokens; an RSA or ECDSA private key, see LoadKey.
	Key crypto.Signer
	// RootCA is the PEM bundle put into the secrets; none if empty.
	RootCA []byte
	// Workers is how many service accounts and how many secrets are worked on at once; 1 by default.
	Workers int
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
	// accountUID is empty when the secret does not say it.
	accountUID types.UID
}

func (k secretKey) String() string { return k.namespace + "/" + k.name }

func keyOf(secret *corev1.Secret) secretKey {
	return secretKey{
		namespace: secret.Namespace, name: secret.Name, uid: secret.UID,
		account: secret.Annotations[corev1.ServiceAccountNameKey], accountUID: types.UID(secret.Annotations[corev1.ServiceAccountUIDKey]),
	}
}

// Controller fills and deletes token secrets.
type Controller struct {
	*runner.Group
	byAccount *reconcile.Controller[accountKey]
	bySecret  *reconcile.Controller[secretKey]
	accounts  corelisters.ServiceAccountLister
	secrets   toolscache.Indexer
	live      client.Reader
	issuer    *issuer
	rootCA    []byte
}

// New returns the controller, which is not running yet. The secrets may be those of Informers.
func New(accounts coreinformers.ServiceAccountInformer, secrets coreinformers.SecretInformer, hand reconcile.Hand, o Options) (*Controller, error) {
	issuer, err := newIssuer(o.Key)
	if err != nil {
		return nil, err
	}
	if err := cache.Ensure(secrets.Informer(), cache.TokensByServiceAccount); err != nil {
		return nil, err
	}
	c := &Controller{
		accounts: accounts.Lister(), secrets: secrets.Informer().GetIndexer(), live: hand.Reader(), issuer: issuer, rootCA: o.RootCA,
	}
	ready := []toolscache.InformerSynced{accounts.Informer().HasSynced, secrets.Informer().HasSynced}
	written := reconcile.Caches{corev1.Resource("secrets"): c.secrets}
	c.byAccount = reconcile.New(reconcile.Options[accountKey]{
		Runner: runner.Options[accountKey]{Name: name + "/accounts", Queue: queue, Workers: o.Workers, MaxRetries: maxRetries, Synced: ready},
		Hand:   hand, Name: name, Caches: written,
	}, c.observeAccount, planAccount)
	c.bySecret = reconcile.New(reconcile.Options[secretKey]{
		Runner: runner.Options[secretKey]{Name: name + "/secrets", Queue: queue, Workers: o.Workers, MaxRetries: maxRetries, Synced: ready},
		Hand:   hand, Name: name, Caches: written,
	}, c.observeSecret, planSecret)
	c.Group = runner.NewGroup(name, c.byAccount, c.bySecret)
	return c, errors.Join(
		runner.Watch(c.byAccount.Runner, accounts.Informer(), wakeAccount),
		runner.Watch(c.bySecret.Runner, secrets.Informer(), wakeSecret),
	)
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
	if secret := change.Now(); isToken(secret) {
		wake.Add(keyOf(secret))
	}
}
