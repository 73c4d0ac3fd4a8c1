package resourcequota

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/quota"
)

// ledger has an account for each namespace that has a quota.
type ledger struct {
	mu       sync.RWMutex
	accounts map[string]*account
}

func newLedger() *ledger { return &ledger{accounts: map[string]*account{}} }

// account is what one namespace uses of what its quotas count.
type account struct {
	mu     sync.Mutex
	quotas map[string]reader
	books  map[schema.GroupResource]*quota.Book
	// growth outlives the books.
	growth map[schema.GroupResource]quota.Growth
	// opened is when the oldest book was made.
	opened time.Time
	// claims are the device claims by the pod that they were made for, and by name.
	claims map[string]map[string]*resourceapi.ResourceClaim
}

// reader is a quota: the resources that it counts, and the scope of their objects.
type reader struct {
	counts map[schema.GroupResource]bool
	scope  quota.Scope
}

// of returns the account of a namespace, nil if no quota is there.
func (l *ledger) of(namespace string) *account {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.accounts[namespace]
}

// register notes what a quota counts, and closes the books that nobody reads any more.
func (l *ledger) register(key types.NamespacedName, r reader) *account {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[key.Namespace]
	if a == nil {
		a = &account{
			quotas: map[string]reader{}, books: map[schema.GroupResource]*quota.Book{}, growth: map[schema.GroupResource]quota.Growth{},
			claims: map[string]map[string]*resourceapi.ResourceClaim{},
		}
		l.accounts[key.Namespace] = a
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.quotas[key.Name].same(r) {
		a.quotas[key.Name] = r
		a.prune()
	}
	return a
}

func (r reader) same(as reader) bool {
	return r.scope.Same(as.scope) && maps.Equal(r.counts, as.counts)
}

// forget drops a quota, and the account with the last one.
func (l *ledger) forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.accounts[key.Namespace]
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.quotas, key.Name)
	a.prune()
	if len(a.quotas) == 0 {
		delete(l.accounts, key.Namespace)
	}
}

// readers returns the quotas that count a resource, in one namespace or, without
// one, in all.
func (l *ledger) readers(namespace string, of schema.GroupResource) []types.NamespacedName {
	l.mu.RLock()
	defer l.mu.RUnlock()
	accounts := l.accounts
	if namespace != "" {
		accounts = map[string]*account{}
		if a := l.accounts[namespace]; a != nil {
			accounts[namespace] = a
		}
	}
	var keys []types.NamespacedName
	for in, a := range accounts {
		a.mu.Lock()
		for name, r := range a.quotas {
			if r.counts[of] {
				keys = append(keys, types.NamespacedName{Namespace: in, Name: name})
			}
		}
		a.mu.Unlock()
	}
	return keys
}

// counted returns every resource that some quota counts.
func (l *ledger) counted() map[schema.GroupResource]bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	all := map[schema.GroupResource]bool{}
	for _, a := range l.accounts {
		a.mu.Lock()
		for _, r := range a.quotas {
			maps.Copy(all, r.counts)
		}
		a.mu.Unlock()
	}
	return all
}

// close closes the books of a resource everywhere; they are opened again when they are read.
func (l *ledger) close(of schema.GroupResource) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, a := range l.accounts {
		a.mu.Lock()
		a.closeBook(of)
		a.mu.Unlock()
	}
}

// closeBook closes one book, and with it what is known of claims: one that goes while it is
// closed would not be missed.
func (a *account) closeBook(of schema.GroupResource) {
	delete(a.books, of)
	if of == quota.DeviceClaims {
		clear(a.claims)
	}
}

// prune closes what nobody reads.
func (a *account) prune() {
	for of, book := range a.books {
		var scopes []quota.Scope
		for _, r := range a.quotas {
			if r.counts[of] {
				scopes = append(scopes, r.scope)
			}
		}
		if len(scopes) == 0 {
			a.closeBook(of)
			delete(a.growth, of)
			continue
		}
		book.Keep(scopes)
	}
}

// age closes all books when they have been open for a period, and returns when
// that is due next. A period of zero never does.
func (a *account) age(now time.Time, period time.Duration) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if period <= 0 {
		return 0
	}
	if a.opened.IsZero() || now.Sub(a.opened) >= period {
		clear(a.books)
		clear(a.claims)
		a.opened = now
	}
	return a.opened.Add(period).Sub(now)
}

// counted is what the objects of a resource use within a scope.
type counted struct {
	sum corev1.ResourceList
	// grown is by how much the sum has ever grown, without what it shrank by.
	grown corev1.ResourceList
	// next is when the sum changes by itself, zero if it does not.
	next time.Time
}

// measure measures an object of a resource.
type measure func(schema.GroupResource, metav1.Object) quota.Usage

// count adds up what the objects of a resource use within a scope. load lists
// the objects when the book has to be opened; measure measures one. The account is locked.
func (a *account) count(of schema.GroupResource, scope quota.Scope, now time.Time, load func() ([]metav1.Object, error), measure measure) (counted, error) {
	book := a.books[of]
	if book == nil {
		objects, err := load()
		if err != nil {
			return counted{}, err
		}
		if a.growth[of] == nil {
			a.growth[of] = quota.Growth{}
		}
		book = quota.NewBook(of, a.growth[of])
		a.books[of] = book
		for _, object := range objects {
			a.link(object) // all of them: a measure may ask which was first
		}
		for _, object := range objects {
			book.Put(object.GetName(), measure(of, object))
		}
	}
	next := book.Expire(now)
	return counted{book.Sum(scope).DeepCopy(), a.growth[of].Within(scope).DeepCopy(), next}, nil
}

// open reports whether there is a book of the resource. The account is locked.
func (a *account) open(of schema.GroupResource) bool { return a.books[of] != nil }

// changed notes a change to an object, nil when it is gone, where there is a book for it,
// and returns the resources whose usage has changed. The claims that were made for a pod are
// measured again with it: between the two, neither or both would count.
func (a *account) changed(of schema.GroupResource, old, now metav1.Object, measure measure) []schema.GroupResource {
	a.mu.Lock()
	defer a.mu.Unlock()
	var changed []schema.GroupResource
	if a.put(of, old, now, measure) {
		changed = append(changed, of)
	}
	again := false
	for _, pod := range podsOf(of, old, now) {
		for name, claim := range a.claims[pod] {
			again = a.books[quota.DeviceClaims].Again(name, measure(quota.DeviceClaims, claim)) || again
		}
	}
	if again && !slices.Contains(changed, quota.DeviceClaims) {
		changed = append(changed, quota.DeviceClaims)
	}
	return changed
}

// put notes a change to one object, and reports whether what it uses has changed.
func (a *account) put(of schema.GroupResource, old, now metav1.Object, measure measure) bool {
	book := a.books[of]
	if book == nil {
		return false
	}
	if old != nil {
		a.unlink(old)
	}
	if now == nil {
		return book.Remove(old.GetName())
	}
	a.link(now)
	return book.Put(now.GetName(), measure(of, now))
}
