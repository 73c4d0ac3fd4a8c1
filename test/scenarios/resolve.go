package scenarios

import (
	"context"
	"encoding/base64"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kube-kcm/kube-controller-manager/test/certs"
)

// reference is what a RES/NAME of a story stands for.
type reference struct {
	gvr  schema.GroupVersionResource
	kind string
	// namespace is empty for what is cluster-wide.
	namespace string
	// name may be a pattern with "*", or empty for all.
	name, selector string
}

func (r reference) exact() bool { return r.name != "" && !strings.Contains(r.name, "*") }

func (r reference) matches(name string) bool {
	ok, err := path.Match(r.name, name)
	return ok && err == nil
}

// foreign says whether a cluster-wide object belongs to someone else. Nodes and
// volumes are the story's, because stories clear them away and run one after the
// other; a trust bundle that a controller publishes is for all of them.
func (r reference) foreign(run *run, name string) bool {
	return r.namespace == "" && !slices.Contains(anyName, r.gvr.Resource) && r.gvr.Resource != "clustertrustbundles" &&
		!strings.Contains(name, run.namespace) && !run.applied(r.gvr, name)
}

// resolve reads RES/NAME, RES/NAMESPACE/NAME, RES,selector or RES. RES is a
// plural, singular or short name, qualified with a group where needed.
func (r *run) resolve(_ context.Context, target string) (reference, error) {
	var ref reference
	resource, rest, named := strings.Cut(target, "/")
	if comma := strings.Index(target, ","); comma >= 0 && (!named || comma < len(resource)) {
		resource, ref.selector, named = target[:comma], target[comma+1:], false
	}
	mapping, err := r.suite.mapping(resource)
	if err != nil {
		return ref, err
	}
	ref.gvr, ref.kind = mapping.Resource, mapping.GroupVersionKind.Kind
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		ref.namespace = r.namespace
	}
	if !named {
		return ref, nil
	}
	ref.name = rest
	if namespace, name, ok := strings.Cut(rest, "/"); ok {
		ref.namespace, ref.name = namespace, name
	}
	return ref, nil
}

// mapping finds a resource by the name that a story uses for it.
func (s *suite) mapping(resource string) (*meta.RESTMapping, error) {
	full, group := schema.ParseResourceArg(resource)
	var gvk schema.GroupVersionKind
	err := error(&meta.NoResourceMatchError{})
	if full != nil {
		gvk, err = s.mapper.KindFor(*full)
	}
	if err != nil {
		gvk, err = s.mapper.KindFor(group.WithVersion(""))
	}
	if err != nil {
		// It may come with a custom resource definition at any moment.
		s.mapper.Reset()
		return nil, fmt.Errorf("find resource %q: %w", resource, err)
	}
	return s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
}

func (r *run) client(ref reference) dynamic.ResourceInterface {
	return r.suite.resource(ref.gvr, ref.namespace)
}

func (s *suite) resource(gvr schema.GroupVersionResource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return s.dynamic.Resource(gvr)
	}
	return s.dynamic.Resource(gvr).Namespace(namespace)
}

var lookup = regexp.MustCompile(`\$\(([^\s()]+)\s+([^()]+)\)`)

var requests = regexp.MustCompile(`\$CSR\(([^()]*)\)`)

// fill puts the story's namespace in the place of $NS, a field of an existing
// object in the place of $(RES/NAME JSONPATH), and a certificate request in the
// place of $CSR(KEY=value ...).
func (r *run) fill(ctx context.Context, text string) (string, error) {
	text = strings.ReplaceAll(text, "$NS", r.namespace)
	var failed error
	text = requests.ReplaceAllStringFunc(text, func(match string) string {
		request, err := certs.Request(requests.FindStringSubmatch(match)[1])
		if err != nil && failed == nil {
			failed = err
		}
		return base64.StdEncoding.EncodeToString(request)
	})
	text = lookup.ReplaceAllStringFunc(text, func(match string) string {
		parts := lookup.FindStringSubmatch(match)
		value, err := r.field(ctx, parts[1], parts[2])
		if err != nil && failed == nil {
			failed = err
		}
		return value
	})
	return text, failed
}

func (r *run) field(ctx context.Context, target, path string) (string, error) {
	objects, err := r.find(ctx, target)
	if err != nil {
		return "", err
	}
	if len(objects) != 1 {
		return "", fmt.Errorf("$(%s %s): %d objects, want one", target, path, len(objects))
	}
	values, err := evaluate(path, objects[0].Object)
	if err != nil {
		return "", err
	}
	if len(values) == 0 {
		return "", fmt.Errorf("$(%s %s): no such field", target, path)
	}
	return text(values), nil
}
