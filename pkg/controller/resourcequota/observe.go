package resourcequota

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/monitor"
	"github.com/kube-kcm/kube-controller-manager/pkg/quota"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// observed is what a plan is made from: what is known of a quota, and of what it counts.
type observed struct {
	known
	usage
	// began is when it was looked at.
	began time.Time
}

// usage is what a quota counts, as far as it can be read.
type usage struct {
	used corev1.ResourceList
	// grown is by how much used has ever grown, without what it shrank by.
	grown   corev1.ResourceList
	frozen  []frozen
	loading bool
	// next is when to look again without an event.
	next time.Duration
}

// observe reads what is known of the quota, and counts what it limits.
func (c *Controller) observe(_ context.Context, key types.NamespacedName) (observed, error) {
	o := observed{began: c.now()}
	// The cache is read last. If it is behind what is known, and that is no write of ours, it
	// was filled from an API server that was restored from a backup.
	unseen, was := len(c.primary.Behind(key)) > 0, c.notes.followed(key)
	cached, err := c.quotas.ResourceQuotas(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.forget(key, was)
		return o, reconcile.ErrAbsent
	}
	if err != nil {
		return o, err
	}
	if was == nil || !unseen && older(cached, was) {
		c.notes.begin(key, was, cached, o.began)
	}
	// The cache may be ahead of what is known of charges: only the version is
	// looked at up to which they are.
	o.quota = c.notes.followed(key)
	if o.usage = c.count(o.quota, o.began); !o.loading {
		o.known = c.notes.known(key, o.used, o.grown, o.began)
	}
	return o, nil
}

// wants returns which resources a quota can count: those whose objects come and go
// in namespaces. Events go by themselves.
func wants(r monitor.Resource) bool {
	return r.Namespaced && r.Can("create", "list", "watch", "delete") &&
		(r.GroupVersionResource.Resource != "events" || r.Group != "" && r.Group != "events.k8s.io")
}

// discovered reports whether the served resources are known.
func (c *Controller) discovered() bool { return len(c.followed.States()) > 0 }

// source returns how the objects of a resource can be read now.
func (c *Controller) source(of schema.GroupResource) source {
	state, known := c.followed.State(of)
	var undiscovered map[schema.GroupVersion]error
	if !known {
		undiscovered = c.followed.Undiscovered()
	}
	s := sourceOf(of, state, known, undiscovered)
	if s.health == broken && s.since.IsZero() {
		s.since = c.states.since(of, c.now())
	}
	return s
}

// countable reports whether a name can be counted now.
func (c *Controller) countable(name corev1.ResourceName) bool {
	return slices.ContainsFunc(quota.CountedFor(name, c.isOffered), func(of schema.GroupResource) bool {
		return c.source(of).health == served
	})
}

// count counts what the quota limits, as far as it can be read.
func (c *Controller) count(q *corev1.ResourceQuota, now time.Time) usage {
	counts := quota.Counted(q.Spec.Hard, c.isOffered)
	r := reader{counts: map[schema.GroupResource]bool{}, scope: quota.ScopeOf(&q.Spec)}
	for _, resources := range counts {
		for _, of := range resources {
			r.counts[of] = true
		}
	}
	account := c.ledger.register(types.NamespacedName{Namespace: q.Namespace, Name: q.Name}, r)
	seen := usage{next: account.age(now, c.period)}
	sums, grown := map[schema.GroupResource]corev1.ResourceList{}, map[schema.GroupResource]corev1.ResourceList{}
	stuck := map[schema.GroupResource]*frozen{}
	account.mu.Lock() // for all resources: what a claim uses depends on its pod
	defer account.mu.Unlock()
	for of := range r.counts {
		s := c.source(of)
		if s.health == absent && !account.open(of) {
			continue
		}
		if s.health == served || s.health == absent {
			is, err := account.count(of, r.scope, now, c.load(q.Namespace, of), c.measure(account))
			if err == nil {
				sums[of], grown[of] = is.sum, is.grown
				if !is.next.IsZero() {
					seen.next = act.Soonest(seen.next, is.next.Sub(now)+time.Millisecond)
				}
				continue
			}
			s = source{health: broken, err: err, since: c.states.since(of, now)}
		}
		stuck[of] = &frozen{of: of, err: s.err, since: s.since, broken: s.health == broken}
		seen.loading = seen.loading || s.health == loading && now.Sub(s.since) < loadingFor
	}
	seen.used, seen.grown = total(counts, sums, stuck), total(counts, grown, nil)
	for _, f := range stuck {
		slices.Sort(f.names)
		seen.frozen = append(seen.frozen, *f)
		seen.next = act.Soonest(seen.next, max(f.since.Add(loadingFor).Sub(now), 0))
	}
	slices.SortFunc(seen.frozen, func(a, b frozen) int { return cmp.Compare(a.of.String(), b.of.String()) })
	return seen
}

// load returns how the objects of a resource in a namespace are listed.
func (c *Controller) load(namespace string, of schema.GroupResource) func() ([]metav1.Object, error) {
	return func() ([]metav1.Object, error) {
		store, ok := c.followed.Store(of)
		if !ok {
			return nil, fmt.Errorf("%s are not watched", of)
		}
		items, err := store.ByIndex(cache.NamespaceIndex, namespace)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", of, err)
		}
		objects := make([]metav1.Object, 0, len(items))
		for _, item := range items {
			object, ok := item.(metav1.Object)
			if !ok || !quota.Measurable(of, object) {
				return nil, fmt.Errorf("%s are served in a version that this binary does not know", of)
			}
			objects = append(objects, object)
		}
		return objects, nil
	}
}

// measure returns how objects are measured for an account.
func (c *Controller) measure(account *account) measure {
	rules := c.rules
	rules.MadeFor = account.claimsFor
	return func(of schema.GroupResource, object metav1.Object) quota.Usage {
		return rules.Measure(of, object, c.now())
	}
}

// objectChanged is called for each change of any namespaced object.
func (c *Controller) objectChanged(r monitor.Resource, old, now metav1.Object, _ bool) {
	object := now
	if object == nil {
		object = old
	}
	namespace := object.GetNamespace()
	account := c.ledger.of(namespace)
	if account == nil {
		return
	}
	for _, of := range account.changed(r.GroupResource(), old, now, c.measure(account)) {
		c.changes.Add(change{namespace, of})
	}
}

// pod finds a pod; an error of a cache is that there is none.
func (c *Controller) pod(namespace, name string) *corev1.Pod {
	pod, err := c.pods.Pods(namespace).Get(name)
	if err != nil {
		return nil
	}
	return pod
}

// extendedResource is what the device class offers.
func (c *Controller) extendedResource(class string) string {
	if c.classes == nil {
		return ""
	}
	found, err := c.classes.Get(class)
	if err != nil {
		return ""
	}
	return offered(found)
}

// isOffered reports whether any device class offers the extended resource, or is the one
// that it stands for.
func (c *Controller) isOffered(extended string) bool {
	if c.classes == nil {
		return false
	}
	if class, is := strings.CutPrefix(extended, resourceapi.ResourceDeviceClassPrefix); is {
		_, err := c.classes.Get(class)
		return err == nil
	}
	classes, err := c.classes.List(labels.Everything())
	return err == nil && slices.ContainsFunc(classes, func(class *resourceapi.DeviceClass) bool { return offered(class) == extended })
}
