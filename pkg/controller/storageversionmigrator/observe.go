package storageversionmigrator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// nowhere is the name of a namespace that cannot exist: a list in it has the
// present resource version and costs nothing.
const nowhere = "@fake:svm_ns!"

// observeTurn reads a migration and its peers, and the definition live when there is
// something to report.
func (c *Controller) observeTurn(ctx context.Context, key string) (observedTurn, error) {
	m, err := reconcile.Cached[migration](c.migrations, key)
	if err != nil {
		return observedTurn{}, err
	}
	o := observedTurn{m: m}
	if o.unseen, err = c.unseen(m); err != nil {
		return o, err
	}
	if o.peers, err = cache.Lookup[migration](c.migrations, byResource, m.Spec.Resource.String()); err != nil {
		return o, err
	}
	if do, _ := turn(m, o.peers); do != nothing {
		o.definition, err = c.definitionOf(ctx, m)
	}
	return o, err
}

// unseen returns the name of a peer whose last write the cache does not show yet; empty if
// there is none. Peers that are read from the cache after that are up to date.
func (c *Controller) unseen(m *migration) (string, error) {
	peers, err := cache.Lookup[migration](c.migrations, byResource, m.Spec.Resource.String())
	for _, peer := range peers {
		if peer.Name != m.Name && len(c.turns.Behind(peer.Name)) > 0 {
			return peer.Name, err
		}
	}
	return "", err
}

// observeVersion reads a migration, and live what there is of its resource.
func (c *Controller) observeVersion(ctx context.Context, key string) (observedVersion, error) {
	m, err := reconcile.Cached[migration](c.migrations, key)
	o := observedVersion{m: m}
	if err != nil || !wantsVersion(m) {
		return o, err
	}
	if o.found, o.missed, err = c.find(m); o.found != nil && unable(*o.found) == "" {
		o.version, err = c.presentVersion(ctx, *o.found)
	}
	return o, err
}

// observePage reads a migration, and live the next page of its objects.
func (c *Controller) observePage(ctx context.Context, key string) (observedPage, error) {
	m, err := reconcile.Cached[migration](c.migrations, key)
	o := observedPage{m: m}
	if err != nil || !wantsObjects(m) {
		c.places.move(key, nil)
		return o, err
	}
	if o.at = c.places.get(m); o.at == nil {
		found, missed, err := c.find(m)
		if found == nil {
			o.missed = missed
			return o, err
		}
		o.at = &place{uid: m.UID, target: *found}
		c.places.move(key, o.at)
	}
	list := act.ListOf(o.at.target.gvr)
	err = c.live.List(ctx, list, &client.ListOptions{Limit: pageSize, Continue: o.at.next})
	switch {
	case apierrors.IsResourceExpired(err):
		// The snapshot is gone; the token in the answer goes on in the present.
		if status := apierrors.APIStatus(nil); errors.As(err, &status) {
			o.next = status.Status().ListMeta.Continue
		}
		if o.next == "" { // of another server: from the beginning, after a pause
			c.places.move(key, &place{uid: m.UID, target: o.at.target, migrated: o.at.migrated})
			return o, fmt.Errorf("list %s: %w", o.at.target.gvr.GroupResource(), err)
		}
		o.expired = true
		return o, nil
	case apierrors.IsNotFound(err):
		c.places.move(key, nil) // the resource may be gone, or served in another version
	}
	if err != nil {
		return o, fmt.Errorf("list %s: %w", o.at.target.gvr.GroupResource(), err)
	}
	o.objects, o.next = list.Items, list.Continue
	return o, nil
}

// find asks discovery for the resource, and says since when it does not have it.
func (c *Controller) find(m *migration) (found *target, missed time.Time, err error) {
	if found, err = c.discover(m); err == nil {
		missed = c.places.seen(m.Name, found != nil, c.turns.Clock().Now())
	}
	return found, missed, err
}

// discover asks for the resource in the versions that serve it, the preferred
// first; nil if none does.
func (c *Controller) discover(m *migration) (*target, error) {
	groups, err := c.discovery.ServerGroups()
	if err != nil {
		return nil, fmt.Errorf("discover the API groups: %w", err)
	}
	for i := range groups.Groups {
		group := &groups.Groups[i]
		if group.Name != m.Spec.Resource.Group {
			continue
		}
		versions := append([]metav1.GroupVersionForDiscovery{group.PreferredVersion}, group.Versions...)
		for _, version := range versions {
			found, err := c.discoverIn(version.GroupVersion, m.Spec.Resource.Resource)
			if found != nil || err != nil {
				return found, err
			}
		}
	}
	return nil, nil
}

func (c *Controller) discoverIn(groupVersion, resource string) (*target, error) {
	gv, err := schema.ParseGroupVersion(groupVersion)
	if err != nil || gv.Version == "" {
		return nil, nil
	}
	list, err := c.discovery.ServerResourcesForGroupVersion(groupVersion)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("discover the resources of %s: %w", groupVersion, err)
	}
	for _, r := range list.APIResources {
		if r.Name == resource {
			return &target{gvr: gv.WithResource(resource), kind: r.Kind, namespaced: r.Namespaced, verbs: r.Verbs}, nil
		}
	}
	return nil, nil
}

// presentVersion is the resource version of the resource at this moment.
func (c *Controller) presentVersion(ctx context.Context, t target) (string, error) {
	options := &client.ListOptions{Limit: 1}
	if t.namespaced {
		options.Namespace = nowhere
	}
	list := act.ListOf(t.gvr)
	if err := c.live.List(ctx, list, options); err != nil {
		return "", fmt.Errorf("list %s: %w", t.gvr.GroupResource(), err)
	}
	return list.ResourceVersion, nil
}

// definitionOf is the definition of a custom resource; nil for any other one.
func (c *Controller) definitionOf(ctx context.Context, m *migration) (*definition, error) {
	if !strings.Contains(m.Spec.Resource.Group, ".") {
		return nil, nil
	}
	name := m.Spec.Resource.Resource + "." + m.Spec.Resource.Group
	d, err := c.definitions.Get(ctx, name, metav1.GetOptions{})
	if consistency.NotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get custom resource definition %s: %w", name, err)
	}
	return d, nil
}
