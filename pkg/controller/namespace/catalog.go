package namespace

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// resource is a kind of object that a namespace can hold and that can be deleted.
type resource struct {
	gvr              schema.GroupVersionResource
	list             bool
	deleteCollection bool
}

// catalog is what discovery said at one time. Two passes that see the same APIs
// share one, and with it what was learnt about verbs that do not work.
type catalog struct {
	resources []resource
	// incomplete is why some groups are missing, nil if none are.
	incomplete error
	// failing counts the groups that are missing, zero if it is not known.
	failing int
	// unparsed are the group versions that are not understood.
	unparsed []error

	unsupported sync.Map // verbOf → struct{}
}

type verbOf struct {
	gvr  schema.GroupVersionResource
	verb string
}

// can tells whether a verb is offered and has not been refused as unknown.
func (c *catalog) can(r resource, verb string) bool {
	offered := (verb == "list" && r.list) || (verb == "deletecollection" && r.deleteCollection)
	_, refused := c.unsupported.Load(verbOf{r.gvr, verb})
	return offered && !refused
}

// cannot remembers that the server does not know the verb.
func (c *catalog) cannot(r resource, verb string) {
	c.unsupported.Store(verbOf{r.gvr, verb}, struct{}{})
}

// same tells whether two catalogs hold the same kinds.
func (c *catalog) same(other *catalog) bool {
	return c.incomplete == nil && other.incomplete == nil && len(c.unparsed) == 0 && len(other.unparsed) == 0 &&
		slices.Equal(c.resources, other.resources)
}

// newCatalog keeps what can be deleted, in a stable order. If discovery failed
// for some groups only, failing says for how many.
func newCatalog(lists []*metav1.APIResourceList, incomplete error, failing int) *catalog {
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
				list:             slices.Contains(deletable[i].Verbs, "list"),
				deleteCollection: slices.Contains(deletable[i].Verbs, "deletecollection"),
			})
		}
	}
	slices.SortFunc(c.resources, func(a, b resource) int {
		return compareResources(a.gvr, b.gvr)
	})
	slices.SortFunc(c.unparsed, compareErrors)
	return c
}
