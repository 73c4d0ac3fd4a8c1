package namespace

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resource is a kind of object that a namespace can hold and that can be deleted.
type resource struct {
	gvr              schema.GroupVersionResource
	list             bool
	deleteCollection bool
}

// catalog is what discovery said at one time, its kinds in order. Two passes that see the same APIs
// share one. What a kind can do is what discovery says of it: an answer to one
// request says nothing about the next.
type catalog struct {
	resources []resource
	// incomplete is why some groups are missing, nil if none are.
	incomplete error
	// failing names the groups that are missing; none if that is not known.
	failing []string
	// unparsed are the group versions that are not understood.
	unparsed []error
}

// The verbs of a kind that matter here.
const (
	list             = "list"
	deleteCollection = "deletecollection"
)

// lists reports whether a kind can be listed.
func (c *catalog) lists(kind schema.GroupVersionResource) bool {
	i, found := slices.BinarySearchFunc(c.resources, kind, func(r resource, kind schema.GroupVersionResource) int { return compareResources(r.gvr, kind) })
	return found && c.resources[i].list
}

// serves reports whether a kind is served in some version, as far as is known.
func (c *catalog) serves(kind schema.GroupResource) bool {
	return !c.whole() || slices.ContainsFunc(c.resources, func(r resource) bool { return r.gvr.GroupResource() == kind })
}

// with returns the catalog with kinds that discovery lacks.
func (c *catalog) with(more []resource) *catalog {
	if len(more) == 0 {
		return c
	}
	all := *c
	all.resources = append(slices.Clone(c.resources), more...)
	all.sort()
	return &all
}

func (c *catalog) sort() {
	slices.SortFunc(c.resources, func(a, b resource) int { return compareResources(a.gvr, b.gvr) })
}

// same reports whether two catalogs hold the same kinds.
func (c *catalog) same(other *catalog) bool {
	return c.whole() && other.whole() && slices.Equal(c.resources, other.resources)
}

// whole reports whether no kind is missing.
func (c *catalog) whole() bool { return c.incomplete == nil && len(c.unparsed) == 0 }

// troubles distinguishes two catalogs that lack different groups.
func (c *catalog) troubles() string {
	what := strings.Join(c.failing, ",")
	if c.incomplete != nil && len(c.failing) == 0 {
		what = "all"
	}
	return what + ";" + joined(c.unparsed)
}

// newCatalog keeps what can be deleted, in a stable order. If discovery failed
// for some groups only, failing names them.
func newCatalog(lists []*metav1.APIResourceList, incomplete error, failing []string) *catalog {
	c := &catalog{incomplete: incomplete, failing: failing}
	for _, l := range lists {
		deletable := slices.DeleteFunc(slices.Clone(l.APIResources), func(r metav1.APIResource) bool {
			return !slices.Contains(r.Verbs, "delete")
		})
		gv, err := schema.ParseGroupVersion(l.GroupVersion)
		if err != nil && len(deletable) > 0 {
			c.unparsed = append(c.unparsed, err)
			continue
		}
		for i := range deletable {
			c.resources = append(c.resources, resource{
				gvr:              gv.WithResource(deletable[i].Name),
				list:             slices.Contains(deletable[i].Verbs, list),
				deleteCollection: slices.Contains(deletable[i].Verbs, deleteCollection),
			})
		}
	}
	c.sort()
	return c
}
