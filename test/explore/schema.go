package explore

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Schemas knows the fields of all kinds, as the API server publishes them.
type Schemas struct {
	root  openapi3.Root
	specs map[schema.GroupVersion]*spec3.OpenAPI
	paths map[string][]Field
}

// Field is a place in an object, and what may stand there.
type Field struct {
	// Path leads from the object to the field.
	Path []string
	// Schema is that of its value.
	Schema *spec.Schema

	api *spec3.OpenAPI
}

// String is the path with dots.
func (f Field) String() string { return strings.Join(f.Path, ".") }

// ReadSchemas asks an API server.
func ReadSchemas(config *rest.Config) (*Schemas, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make the discovery client: %w", err)
	}
	return &Schemas{root: openapi3.NewRoot(client.OpenAPIV3()), specs: map[schema.GroupVersion]*spec3.OpenAPI{}, paths: map[string][]Field{}}, nil
}

// Fields lists the fields below a path of a kind, such as "spec", at any depth
// outside of lists. Their order is fixed.
func (s *Schemas) Fields(gvk schema.GroupVersionKind, under string) ([]Field, error) {
	key := gvk.String() + " " + under
	if known, ok := s.paths[key]; ok {
		return known, nil
	}
	api := s.specs[gvk.GroupVersion()]
	if api == nil {
		var err error
		if api, err = s.root.GVSpec(gvk.GroupVersion()); err != nil {
			return nil, fmt.Errorf("read the fields of %s: %w", gvk.GroupVersion(), err)
		}
		s.specs[gvk.GroupVersion()] = api
	}
	at := kindSchema(api, gvk)
	if at == nil {
		return nil, fmt.Errorf("the API server publishes no fields of %s", gvk)
	}
	path := strings.Split(under, ".")
	for _, step := range path {
		next, ok := resolve(api, at).Properties[step]
		if !ok {
			return nil, fmt.Errorf("%s has no field %s", gvk.Kind, under)
		}
		at = &next
	}
	fields := below(api, at, path, 0)
	s.paths[key] = fields
	return fields, nil
}

func kindSchema(api *spec3.OpenAPI, gvk schema.GroupVersionKind) *spec.Schema {
	for name, candidate := range api.Components.Schemas {
		if !strings.HasSuffix(name, "."+gvk.Kind) {
			continue
		}
		kinds, _ := candidate.Extensions["x-kubernetes-group-version-kind"].([]any)
		for _, k := range kinds {
			k, _ := k.(map[string]any)
			if k["kind"] == gvk.Kind && k["group"] == gvk.Group && k["version"] == gvk.Version {
				return candidate
			}
		}
	}
	return nil
}

// resolve follows references.
func resolve(api *spec3.OpenAPI, s *spec.Schema) *spec.Schema {
	for range 10 {
		ref := s.Ref.String()
		if ref == "" && len(s.AllOf) == 1 {
			s = &s.AllOf[0]
			continue
		}
		if ref == "" {
			return s
		}
		named := api.Components.Schemas[ref[strings.LastIndex(ref, "/")+1:]]
		if named == nil {
			return s
		}
		s = named
	}
	return s
}

// deepest is how far down fields are listed; no kind has any deeper outside of a list.
const deepest = 8

// below lists the fields of an object. The template of a pod, and of a job, is
// gone into as any other.
func below(api *spec3.OpenAPI, at *spec.Schema, path []string, depth int) []Field {
	at = resolve(api, at)
	var fields []Field
	names := make([]string, 0, len(at.Properties))
	for name := range at.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		child := at.Properties[name]
		here := append(slices.Clone(path), name)
		fields = append(fields, Field{Path: here, Schema: &child, api: api})
		if depth < deepest && len(resolve(api, &child).Properties) > 0 {
			fields = append(fields, below(api, &child, here, depth+1)...)
		}
	}
	return fields
}
