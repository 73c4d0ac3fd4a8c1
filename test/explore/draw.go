package explore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Draw makes the choices of a script. All follow from its seed.
type Draw struct {
	random  *rand.Rand
	schemas *Schemas
}

// NewDraw begins with a seed.
func NewDraw(schemas *Schemas, seed int) *Draw {
	return &Draw{random: rand.New(rand.NewPCG(uint64(seed), 36)), schemas: schemas}
}

// Int returns a number from least to most.
func (d *Draw) Int(least, most int) int { return least + d.random.IntN(most-least+1) }

// Chance is true in so many cases of a hundred.
func (d *Draw) Chance(percent int) bool { return d.random.IntN(100) < percent }

// One returns one of the values.
func One[T any](d *Draw, values ...T) T { return values[d.random.IntN(len(values))] }

// Sprintf fills a format with numbers, each from 0 to the one given.
func (d *Draw) Sprintf(format string, most ...int) string {
	numbers := make([]any, len(most))
	for i, n := range most {
		numbers[i] = d.Int(0, n)
	}
	return fmt.Sprintf(format, numbers...)
}

// Field draws one of the fields below a path, all as likely, except those below
// the paths given.
func (d *Draw) Field(gvk schema.GroupVersionKind, under string, except ...string) Field {
	all, err := d.schemas.Fields(gvk, under)
	if err != nil {
		panic(err)
	}
	fields := slices.DeleteFunc(slices.Clone(all), func(f Field) bool {
		return slices.ContainsFunc(except, func(e string) bool { return f.String() == e || strings.HasPrefix(f.String(), e+".") })
	})
	return fields[d.random.IntN(len(fields))]
}

// Value draws a value for a field.
func (d *Draw) Value(f Field) any {
	if draw := hint(f.Path); draw != nil {
		return draw(d)
	}
	return d.value(f.api, f.Path[len(f.Path)-1], f.Schema, 0)
}

func (d *Draw) value(api *spec3.OpenAPI, name string, s *spec.Schema, depth int) any {
	reference := s.Ref.String()
	if len(s.AllOf) == 1 {
		reference = s.AllOf[0].Ref.String()
	}
	s = resolve(api, s)
	if len(s.Enum) > 0 {
		return s.Enum[d.random.IntN(len(s.Enum))]
	}
	if values, ok := words[name]; ok && !s.Type.Contains("object") && !s.Type.Contains("array") {
		return values[d.random.IntN(len(values))]
	}
	switch {
	case strings.HasSuffix(reference, ".Quantity"):
		return One(d, "0", "1", "100m", "1Gi", "2")
	case s.Format == "int-or-string" || s.Extensions["x-kubernetes-int-or-string"] == true:
		return One[any](d, 0, 1, 2, 3, "0%", "1%", "25%", "50%", "99%", "100%")
	case s.Type.Contains("boolean"):
		return d.Chance(50)
	case s.Type.Contains("integer"), s.Type.Contains("number"):
		return One(d, 0, 1, 2, 3, 5, 10, 30)
	case s.Type.Contains("array"):
		return d.list(api, name, s, depth)
	case s.Type.Contains("string"):
		return d.text(name, s)
	}
	return d.object(api, s, depth)
}

func (d *Draw) text(name string, s *spec.Schema) string {
	switch {
	case s.Format == "date-time":
		return One(d, "2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z")
	case strings.HasSuffix(strings.ToLower(name), "name"):
		return One(d, "a", "web", "b-1")
	}
	return One(d, "a", "web", "x.example/y", "")
}

func (d *Draw) list(api *spec3.OpenAPI, name string, s *spec.Schema, depth int) any {
	items := []any{}
	if s.Items == nil || s.Items.Schema == nil || depth > deepest {
		return items
	}
	for range d.Int(0, 2) {
		items = append(items, d.value(api, strings.TrimSuffix(name, "s"), s.Items.Schema, depth+1))
	}
	return items
}

// object has what is required, and a third of the rest.
func (d *Draw) object(api *spec3.OpenAPI, s *spec.Schema, depth int) any {
	o := Object{}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		for range d.Int(0, 2) {
			key := One(d, "app", "cpu", "memory", "pods", "x.example/y")
			o[key] = d.value(api, key, s.AdditionalProperties.Schema, depth+1)
		}
		return o
	}
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		child := s.Properties[name]
		if !slices.Contains(s.Required, name) && (depth >= deepest || !d.Chance(35)) {
			continue
		}
		if draw := hint([]string{name}); draw != nil {
			o[name] = draw(d)
		} else {
			o[name] = d.value(api, name, &child, depth+1)
		}
	}
	return o
}

// Set puts a value into an object, and makes the objects on the way.
func Set(o Object, path []string, value any) {
	for _, step := range path[:len(path)-1] {
		next, ok := o[step].(map[string]any)
		if !ok {
			next = Object{}
			o[step] = next
		}
		o = next
	}
	o[path[len(path)-1]] = value
}

// Get finds a value in an object.
func Get(o Object, path []string) (any, bool) {
	for _, step := range path[:len(path)-1] {
		next, ok := o[step].(map[string]any)
		if !ok {
			return nil, false
		}
		o = next
	}
	value, ok := o[path[len(path)-1]]
	return value, ok
}

// Remove takes a field out of an object.
func Remove(o Object, path []string) {
	for _, step := range path[:len(path)-1] {
		next, ok := o[step].(map[string]any)
		if !ok {
			return
		}
		o = next
	}
	delete(o, path[len(path)-1])
}
