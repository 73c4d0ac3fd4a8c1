package consistency

import (
	"context"
	"fmt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/klog/v2"
)

// Look reads live what key has been waiting for long enough, and forgets what
// did not happen: a deletion whose object is there, untouched; a create whose
// answer was lost and that made nothing; a write that a restored API server does
// not know. What did happen stays until the caches show it.
func (t *Tracker[K]) Look(ctx context.Context, key K) error {
	for _, due := range t.due(key) {
		if err := due(ctx); err != nil {
			return fmt.Errorf("read live what the caches do not show yet: %w", err)
		}
	}
	return nil
}

// looksAtOnce bounds the looks for one key, so that a cache that is far behind does not
// keep the workers and the API server busy. The others come at the next hold.
const looksAtOnce = 50

// due returns the looks whose time has come, as many as are made at once.
func (t *Tracker[K]) due(key K) []func(context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.keys[key]
	if r == nil || t.list == nil {
		return nil
	}
	now := t.clock.Now()
	var looks []func(context.Context) error
	for resource, lost := range r.lost {
		if now.Sub(lost.at) >= settleAfter {
			looks = append(looks, func(ctx context.Context) error { return t.lookForLost(ctx, key, resource, lost) })
		}
	}
	for resource, deletions := range r.deleted {
		for uid, d := range deletions {
			if wait := min(now.Sub(d.at), now.Sub(d.looked)); wait >= lookAfter || d.uncertain && wait >= settleAfter {
				looks = append(looks, func(ctx context.Context) error { return t.lookAtDeleted(ctx, key, resource, uid, d) })
			}
		}
	}
	for resource, w := range r.versions {
		if min(now.Sub(w.at), now.Sub(w.looked)) >= lookAfter {
			looks = append(looks, func(ctx context.Context) error { return t.lookAtVersion(ctx, key, resource, w) })
		}
	}
	return looks[:min(len(looks), looksAtOnce)]
}

func (t *Tracker[K]) lookForLost(ctx context.Context, key K, resource schema.GroupResource, lost lostCreate) error {
	if err := t.controlled(ctx, key, resource, lost.namespace, lost.owner, lost.selector); err != nil {
		return err
	}
	t.change(key, func(r *record) {
		if r.lost[resource] == lost {
			delete(r.lost, resource)
		}
	})
	return nil
}

// LookFor reads live what owner controls of what selector selects, whoever made it,
// and reports whether the caches do not show all of it, so that key waits. Without
// live reads what the caches show is all there is.
func (t *Tracker[K]) LookFor(ctx context.Context, key K, resource schema.GroupResource, owner metav1.Object, selector string) (bool, error) {
	if t.list == nil {
		return false, nil
	}
	if err := t.controlled(ctx, key, resource, owner.GetNamespace(), owner.GetUID(), selector); err != nil {
		return false, fmt.Errorf("list live what the caches do not show yet: %w", err)
	}
	return len(t.Behind(key)) > 0, nil
}

// controlled reads live what owner controls and has key wait for it.
func (t *Tracker[K]) controlled(ctx context.Context, key K, resource schema.GroupResource, namespace string, owner types.UID, selector string) error {
	list, err := t.list(ctx, resource, namespace, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return err
	}
	for i := range list.Items {
		if ref := metav1.GetControllerOfNoCopy(&list.Items[i]); ref != nil && ref.UID == owner {
			t.Wrote(key, resource, &list.Items[i])
		}
	}
	return nil
}

func (t *Tracker[K]) lookAtDeleted(ctx context.Context, key K, resource schema.GroupResource, uid types.UID, d deletion) error {
	live, err := t.live(ctx, resource, d.namespace, d.name)
	if err != nil {
		return err
	}
	there := live != nil && live.UID == uid && (live.DeletionTimestamp == nil || d.vanished)
	if there {
		klog.FromContext(ctx).Info("An object that was deleted is still there; the deletion did not take place", "key", key, "resource", resource, "object", d.key(), "answerLost", d.uncertain)
	}
	t.change(key, func(r *record) {
		if there {
			delete(r.deleted[resource], uid)
		} else if known, ok := r.deleted[resource][uid]; ok {
			// Now it is certain; the cache shows it in time.
			known.looked, known.uncertain = t.clock.Now(), false
			r.deleted[resource][uid] = known
		}
	})
	return nil
}

func (t *Tracker[K]) lookAtVersion(ctx context.Context, key K, resource schema.GroupResource, w write) error {
	list, err := t.list(ctx, resource, w.namespace, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, w.name).String()})
	if err != nil {
		return err
	}
	c, err := resourceversion.CompareResourceVersion(list.ResourceVersion, w.version)
	restored := err == nil && c < 0
	if restored {
		klog.FromContext(ctx).Info("The API server has an older version than was written; it was probably restored from a backup", "key", key, "resource", resource, "wrote", w.version, "now", list.ResourceVersion)
	}
	t.change(key, func(r *record) {
		known, ok := r.versions[resource]
		if !ok || known.version != w.version {
			return
		}
		if restored {
			delete(r.versions, resource)
			return
		}
		known.looked = t.clock.Now()
		r.versions[resource] = known
	})
	return nil
}

func (t *Tracker[K]) change(key K, do func(*record)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.keys[key]; r != nil {
		do(r)
	}
}
