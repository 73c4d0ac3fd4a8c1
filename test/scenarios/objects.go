package scenarios

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

const fieldManager = "story"

func (r *run) apply(ctx context.Context, step Step) error {
	fields := words(step.Rest)
	filled, err := r.fill(ctx, r.story.Files[fields[0]])
	if err != nil {
		return err
	}
	objects, err := decode(filled)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := r.applyOne(ctx, step, object, fields[1:]); err != nil {
			return err
		}
	}
	return nil
}

// decode reads the YAML documents of a file section.
func decode(text string) ([]*unstructured.Unstructured, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	var objects []*unstructured.Unstructured
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read YAML: %w", err)
		}
		encoded, err := yaml.YAMLToJSONStrict(document)
		if err != nil {
			return nil, fmt.Errorf("read YAML: %w", err)
		}
		object := &unstructured.Unstructured{}
		if string(encoded) == "null" {
			continue
		}
		if err := object.UnmarshalJSON(encoded); err != nil {
			return nil, fmt.Errorf("read object: %w", err)
		}
		objects = append(objects, object)
	}
}

// refused waits until the API server would not take an object. Its admission
// plugins notice quotas, labels and webhooks a moment after they are written.
func (r *run) refused(ctx context.Context, step Step) error {
	filled, err := r.fill(ctx, r.story.Files[step.Rest])
	if err != nil {
		return err
	}
	objects, err := decode(filled)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := r.until(ctx, step.Within, func() (bool, string, error) { return r.refuses(ctx, object) }); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) refuses(ctx context.Context, object *unstructured.Unstructured) (bool, string, error) {
	gvk := object.GroupVersionKind()
	mapping, err := r.suite.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return false, "", err
	}
	namespace := object.GetNamespace()
	if namespace == "" && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace = r.namespace
	}
	_, err = r.suite.resource(mapping.Resource, namespace).Create(ctx, object.DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsForbidden(err) || apierrors.IsInternalError(err) {
		return true, "", nil
	}
	return false, "it is admitted", err
}

// applyOne takes nothing, or "as", a user and groups.
func (r *run) applyOne(ctx context.Context, step Step, object *unstructured.Unstructured, as []string) error {
	gvk := object.GroupVersionKind()
	var mapping *meta.RESTMapping
	if err := r.until(ctx, step.Within, func() (bool, string, error) {
		var err error
		if mapping, err = r.suite.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err != nil {
			r.suite.mapper.Reset()
		}
		return err == nil, "", err
	}); err != nil {
		return err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if object.GetNamespace() == "" {
			object.SetNamespace(r.namespace)
		}
	} else {
		object.SetNamespace("")
	}
	write := r.write
	if len(as) > 0 {
		write = r.createAs(as[1], as[2:])
	}
	name, err := write(ctx, step, mapping, object)
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", gvk.Kind, object.GetName(), err)
	}
	return r.remember(ctx, mapping, object.GetNamespace(), name)
}

// write creates an object without a full name and applies any other. A resource
// that has just been defined is not served at once, and an address of a range that
// has just become ready is not given out at once.
func (r *run) write(ctx context.Context, step Step, mapping *meta.RESTMapping, object *unstructured.Unstructured) (string, error) {
	client := r.suite.resource(mapping.Resource, object.GetNamespace())
	if object.GetName() == "" {
		created, err := client.Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager})
		if err != nil {
			return "", err
		}
		return created.GetName(), nil
	}
	var refused error
	err := r.until(ctx, step.Within, func() (bool, string, error) {
		_, err := client.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) && object.GetKind() == "Service" {
			return false, "", err
		}
		refused = err
		return true, "", nil
	})
	return object.GetName(), errors.Join(err, refused)
}

func (r *run) remember(ctx context.Context, mapping *meta.RESTMapping, namespace, name string) error {
	if mapping.GroupVersionKind.GroupKind() == (corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind()) {
		return r.adoptNamespace(ctx, name)
	}
	for _, own := range r.namespaces {
		if own == namespace {
			return nil
		}
	}
	r.strays = append(r.strays, stray{gvr: mapping.Resource, namespace: namespace, name: name})
	return nil
}

// existing waits for the objects that a command is about.
func (r *run) existing(ctx context.Context, step Step, target string) (reference, []unstructured.Unstructured, error) {
	var ref reference
	var objects []unstructured.Unstructured
	err := r.until(ctx, step.Within, func() (bool, string, error) {
		var err error
		if ref, err = r.resolve(ctx, target); err != nil {
			return false, "", err
		}
		objects, err = r.find(ctx, target)
		return len(objects) > 0, "no such object", err
	})
	return ref, objects, err
}

func (r *run) patchEach(ctx context.Context, step Step, target string, patch []byte, subresources ...string) error {
	ref, objects, err := r.existing(ctx, step, target)
	if err != nil {
		return err
	}
	for _, object := range objects {
		_, err := r.client(ref).Patch(ctx, object.GetName(), types.MergePatchType, patch,
			metav1.PatchOptions{FieldManager: fieldManager}, subresources...)
		if err != nil {
			return fmt.Errorf("patch %s %s: %w", ref.gvr.Resource, object.GetName(), err)
		}
	}
	return nil
}

func (r *run) patch(ctx context.Context, step Step) error {
	target, document := cut(step.Rest)
	return r.patchEach(ctx, step, target, []byte(unquote(document)))
}

// patchStatus takes the status itself, or an object around it.
func (r *run) patchStatus(ctx context.Context, step Step) error {
	return r.patchIn(ctx, step, "status")
}

// patchApproval changes those conditions of a certificate signing request that approve or deny it.
func (r *run) patchApproval(ctx context.Context, step Step) error {
	return r.patchIn(ctx, step, "approval")
}

func (r *run) patchIn(ctx context.Context, step Step, subresource string) error {
	target, document := cut(step.Rest)
	var content map[string]any
	if err := json.Unmarshal([]byte(unquote(document)), &content); err != nil {
		return fmt.Errorf("read the status: %w", err)
	}
	if _, wrapped := content["status"].(map[string]any); !wrapped {
		content = map[string]any{"status": content}
	}
	patch, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encode the status: %w", err)
	}
	return r.patchEach(ctx, step, target, patch, subresource)
}

func (r *run) scale(ctx context.Context, step Step) error {
	target, n := cut(step.Rest)
	ref, err := r.resolve(ctx, target)
	if err != nil {
		return err
	}
	if ref.kind == "Job" {
		return r.patchEach(ctx, step, target, fmt.Appendf(nil, `{"spec":{"parallelism":%s}}`, n))
	}
	return r.patchEach(ctx, step, target, fmt.Appendf(nil, `{"spec":{"replicas":%s}}`, n), "scale")
}

func (r *run) label(ctx context.Context, step Step) error { return r.pairs(ctx, step, "labels") }

func (r *run) annotate(ctx context.Context, step Step) error {
	return r.pairs(ctx, step, "annotations")
}

func (r *run) pairs(ctx context.Context, step Step, field string) error {
	target, rest := cut(step.Rest)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{field: keysAndValues(rest)}})
	if err != nil {
		return fmt.Errorf("encode %s: %w", field, err)
	}
	return r.patchEach(ctx, step, target, patch)
}

// keysAndValues reads k=v and k-, which takes a key away.
func keysAndValues(pairs string) map[string]any {
	values := map[string]any{}
	for _, pair := range words(pairs) {
		if key, value, set := strings.Cut(pair, "="); set {
			values[key] = unquote(value)
		} else {
			values[strings.TrimSuffix(pair, "-")] = nil
		}
	}
	return values
}
