package testrig

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// ErrAway is what Unreachable answers.
var ErrAway = errors.New("the API server is away")

// Unreachable is a live read that fails.
func Unreachable(context.Context, schema.GroupResource, string, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	return nil, ErrAway
}

// Live reads what a fake API server holds of the built-in kinds.
func Live(client Fake) consistency.List {
	return LiveOf(func(resource schema.GroupResource, namespace string) ([]metav1.Object, error) {
		var live []metav1.Object
		for _, kind := range kindsOf(resource) {
			list, err := client.Tracker().List(kind.GroupVersion().WithResource(resource.Resource), kind, namespace)
			if err != nil {
				return nil, err
			}
			objects, err := meta.ExtractList(list)
			if err != nil {
				return nil, err
			}
			for _, object := range objects {
				m, err := meta.Accessor(object)
				if err != nil {
					return nil, err
				}
				live = append(live, m)
			}
		}
		return live, nil
	})
}

// LiveOf reads what objects returns, by the selectors of the request.
func LiveOf(objects func(resource schema.GroupResource, namespace string) ([]metav1.Object, error)) consistency.List {
	return func(_ context.Context, resource schema.GroupResource, namespace string, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		byLabel, err := labels.Parse(o.LabelSelector)
		if err != nil {
			return nil, err
		}
		byField, err := fields.ParseSelector(o.FieldSelector)
		if err != nil {
			return nil, err
		}
		all, err := objects(resource, namespace)
		if err != nil {
			return nil, err
		}
		list := &metav1.PartialObjectMetadataList{}
		for _, m := range all {
			named := fields.Set{metav1.ObjectNameField: m.GetName()}
			if byLabel.Matches(labels.Set(m.GetLabels())) && byField.Matches(named) {
				list.Items = append(list.Items, *meta.AsPartialObjectMetadata(m))
			}
		}
		return list, nil
	}
}

// LiveAmong reads these objects, whatever is asked for, under the lock.
func LiveAmong[T metav1.Object](lock sync.Locker, byName map[string]T) consistency.List {
	return LiveOf(func(schema.GroupResource, string) ([]metav1.Object, error) {
		lock.Lock()
		defer lock.Unlock()
		var all []metav1.Object
		for _, object := range byName {
			all = append(all, object)
		}
		return all, nil
	})
}

func kindsOf(resource schema.GroupResource) []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for kind := range scheme.Scheme.AllKnownTypes() {
		if guess, _ := meta.UnsafeGuessKindToResource(kind); guess.GroupResource() == resource {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// HoldForLong has key wait, for minutes already at that time, for a write that no
// cache shows.
func HoldForLong[K comparable](writes *consistency.Tracker[K], key K, resource schema.GroupResource, now time.Time) {
	writes.SetClock(clocktesting.NewFakePassiveClock(now.Add(-5 * time.Minute)))
	writes.Wrote(key, resource, &metav1.ObjectMeta{Namespace: "ns", Name: "late", ResourceVersion: "1000000000"})
}

// Held does what the runner does with a key whose writes the caches have not
// shown, some seconds on: it looks live, and reports whether the key still waits.
func Held[K comparable](ctx context.Context, writes *consistency.Tracker[K], key K) bool {
	behind := writes.Behind(key)
	if len(behind) == 0 {
		return false
	}
	later := behind[0].Since
	for _, b := range behind {
		if b.Since.After(later) {
			later = b.Since
		}
	}
	writes.SetClock(clocktesting.NewFakePassiveClock(later.Add(10 * time.Second)))
	_ = writes.Look(ctx, key) // what could not be asked stays held
	return len(writes.Behind(key)) > 0
}
