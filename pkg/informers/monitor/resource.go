package monitor

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is a resource as the API server serves it, at the version that its
// group prefers, or the first one that has it.
type Resource struct {
	schema.GroupVersionResource
	// Kind is the kind of the objects, without its group and version.
	Kind string
	// Namespaced reports whether the objects live in namespaces.
	Namespaced bool
	// Verbs are those that discovery offers.
	Verbs []string
}

// Can reports whether the resource offers all of the verbs.
func (r Resource) Can(verbs ...string) bool {
	return !slices.ContainsFunc(verbs, func(verb string) bool { return !slices.Contains(r.Verbs, verb) })
}

// catalog is what one look at discovery found.
type catalog struct {
	// resources holds each resource once.
	resources map[schema.GroupResource]Resource
	// served are all versions that the API server serves of any resource.
	served map[schema.GroupVersionResource]bool
	// failed are the groups that cannot be discovered.
	failed map[schema.GroupVersion]error
}

// newCatalog reads what discovery answered. Subresources are left out.
func newCatalog(groups []*metav1.APIGroup, lists []*metav1.APIResourceList, failed map[schema.GroupVersion]error) catalog {
	c := catalog{
		resources: map[schema.GroupResource]Resource{},
		served:    map[schema.GroupVersionResource]bool{},
		failed:    failed,
	}
	rank := ranks(groups)
	lists = slices.Clone(lists)
	slices.SortStableFunc(lists, func(a, b *metav1.APIResourceList) int {
		return cmp.Compare(rank[a.GroupVersion], rank[b.GroupVersion])
	})
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			c.add(version, &list.APIResources[i])
		}
	}
	return c
}

// ranks orders the versions of a group: the preferred one, then as they are listed.
func ranks(groups []*metav1.APIGroup) map[string]int {
	rank := map[string]int{}
	for _, group := range groups {
		for i, version := range group.Versions {
			rank[version.GroupVersion] = i + 1
		}
		rank[group.PreferredVersion.GroupVersion] = 0
	}
	return rank
}

func (c *catalog) add(version schema.GroupVersion, r *metav1.APIResource) {
	if strings.Contains(r.Name, "/") {
		return
	}
	gvr := version.WithResource(r.Name)
	c.served[gvr] = true
	if _, known := c.resources[gvr.GroupResource()]; !known {
		c.resources[gvr.GroupResource()] = Resource{gvr, r.Kind, r.Namespaced, r.Verbs}
	}
}

// after completes the catalog with what an earlier one knew of groups that
// cannot be discovered now, and keeps versions that are still served, so that
// no watch is restarted without need.
func (c catalog) after(earlier catalog) catalog {
	c.resources, c.served = maps.Clone(c.resources), maps.Clone(c.served)
	for gvr := range earlier.served {
		if c.failed[gvr.GroupVersion()] != nil {
			c.served[gvr] = true
		}
	}
	for id, before := range earlier.resources {
		unknown := c.failed[before.GroupVersion()] != nil
		if c.served[before.GroupVersionResource] || unknown {
			now, found := c.resources[id]
			if !found {
				now = before
			}
			now.GroupVersionResource = before.GroupVersionResource
			c.resources[id] = now
			c.served[before.GroupVersionResource] = true
		}
	}
	return c
}

// keep adds a resource that was not found.
func (c *catalog) keep(r Resource) {
	c.resources[r.GroupResource()] = r
	c.served[r.GroupVersionResource] = true
}

// knows reports whether anything is known of a version of an API.
func (c *catalog) knows(version schema.GroupVersion) bool {
	for gvr := range c.served {
		if gvr.GroupVersion() == version {
			return true
		}
	}
	return false
}

// sorted returns the resources in a stable order.
func (c catalog) sorted() []Resource {
	return slices.SortedFunc(maps.Values(c.resources), func(a, b Resource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.GroupVersionResource.Resource, b.GroupVersionResource.Resource))
	})
}
