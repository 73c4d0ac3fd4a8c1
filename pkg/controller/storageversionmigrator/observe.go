package storageversionmigrator

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// nowhere is the name of a namespace that cannot exist: a list in it has the
// present resource version and costs nothing.
const nowhere = "@fake:svm_ns!"

// discover asks for the resource in the versions that serve it, the preferred
// first; nil if none does.
func (c *Controller) discover(m *migration) (*target, error) {
	groups, err := c.client.Discovery().ServerGroups()
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
	list, err := c.client.Discovery().ServerResourcesForGroupVersion(groupVersion)
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
	options := metav1.ListOptions{Limit: 1}
	var list *metav1.PartialObjectMetadataList
	var err error
	if t.namespaced {
		list, err = c.metadata.Resource(t.gvr).Namespace(nowhere).List(ctx, options)
	} else {
		list, err = c.metadata.Resource(t.gvr).List(ctx, options)
	}
	if err != nil {
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
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get custom resource definition %s: %w", name, err)
	}
	return d, nil
}
