package explore

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Mend takes the fields out of the script's objects that the API server does not
// admit, as far as its answer names them. What stays invalid is refused in the play.
func (p *Pair) Mend(ctx context.Context, s *Script) {
	for _, o := range s.Objects {
		for range 12 {
			err := p.stages[0].Check(ctx, &unstructured.Unstructured{Object: deepCopy(o)})
			if !apierrors.IsInvalid(err) || !prune(o, err) {
				break
			}
		}
	}
}

// prune removes what an answer complains of, and reports whether there was anything.
func prune(o Object, err error) bool {
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Details == nil {
		return false
	}
	removed := false
	for _, cause := range status.Status().Details.Causes {
		path := fieldPath(cause.Field)
		// What is missing below a field goes with the field.
		if cause.Type == metav1.CauseTypeFieldValueRequired && len(path) > 2 {
			path = path[:len(path)-1]
		}
		for ; len(path) > 1; path = path[:len(path)-1] {
			if _, there := Get(o, path); there && !kept(path) {
				Remove(o, path)
				removed = true
				break
			}
		}
	}
	return removed
}

// fieldPath is the part of a field's name before the first list.
func fieldPath(field string) []string {
	field, _, _ = strings.Cut(field, "[")
	return strings.Split(field, ".")
}

// kept reports whether an object is nothing without a field.
func kept(path []string) bool {
	switch strings.Join(path, ".") {
	case "spec", "metadata", "metadata.name", "spec.template", "spec.template.spec", "spec.template.spec.containers", "spec.selector",
		"spec.template.metadata", "spec.jobTemplate", "spec.jobTemplate.spec":
		return true
	}
	return false
}
