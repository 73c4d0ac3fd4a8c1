package explore

import (
	"context"
	"encoding/json"
	"regexp"
	"strconv"
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
			err := p.stages[0].Check(ctx, &unstructured.Unstructured{Object: standing(o)})
			if !apierrors.IsInvalid(err) || !prune(o, err) {
				break
			}
		}
	}
}

// lookups are the fields of other objects, and the certificate requests, in a script's text.
var lookups = regexp.MustCompile(`\$(CSR)?\([^()]*\)`)

// standing is an object with something in the place of what only a play knows.
func standing(o Object) Object {
	text := strings.ReplaceAll(jsonOf(o), "$NS", "ns")
	text = lookups.ReplaceAllString(text, "00000000-0000-0000-0000-000000000000")
	var out Object
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		panic(err)
	}
	return out
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
			if !kept(path) && removeAt(o, path) {
				removed = true
				break
			}
		}
	}
	return removed
}

// fieldPath splits the name of a field; items of lists and keys in brackets are steps.
func fieldPath(field string) []string {
	return strings.FieldsFunc(field, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
}

// removeAt takes out what a path leads to, through lists too, and reports whether it was there.
func removeAt(at any, path []string) bool {
	switch at := at.(type) {
	case map[string]any:
		child, there := at[path[0]]
		if !there {
			return false
		}
		if len(path) > 1 {
			return removeAt(child, path[1:])
		}
		delete(at, path[0])
		return true
	case []any:
		// An item goes with its list, unless only a field of it is wrong.
		if i, err := strconv.Atoi(path[0]); err == nil && i < len(at) && len(path) > 1 {
			return removeAt(at[i], path[1:])
		}
	}
	return false
}

// kept reports whether an object is nothing without a field.
func kept(path []string) bool {
	switch strings.Join(path, ".") {
	case "spec", "metadata", "metadata.name", "spec.template", "spec.template.spec", "spec.template.spec.containers", "spec.selector",
		"spec.template.metadata", "spec.schedule", "spec.jobTemplate", "spec.jobTemplate.spec", "spec.jobTemplate.spec.template",
		"spec.jobTemplate.spec.template.spec", "spec.jobTemplate.spec.template.spec.containers":
		return true
	}
	return false
}
