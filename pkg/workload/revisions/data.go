package revisions

import (
	"bytes"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// DataOf returns what a revision of this template holds: a strategic merge patch
// of the owner that replaces its template, with sorted keys.
func DataOf(template *corev1.PodTemplateSpec) ([]byte, error) {
	encoded, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("encode a pod template: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(encoded, &fields); err != nil {
		return nil, fmt.Errorf("encode a pod template: %w", err)
	}
	fields["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": fields}})
}

// Restored returns a template with the data of a revision applied to it. What the data
// leaves out, as one that somebody wrote by hand may, stays as it is.
func Restored(template *corev1.PodTemplateSpec, data []byte) (*corev1.PodTemplateSpec, error) {
	var owner appsv1.StatefulSet
	owner.Spec.Template = *template
	before, err := json.Marshal(&owner)
	if err != nil {
		return nil, fmt.Errorf("encode a pod template: %w", err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, data, owner)
	if err != nil {
		return nil, fmt.Errorf("apply the data of a revision: %w", err)
	}
	var restored appsv1.StatefulSet
	if err := json.Unmarshal(after, &restored); err != nil {
		return nil, fmt.Errorf("apply the data of a revision: %w", err)
	}
	return &restored.Spec.Template, nil
}

// Same reports whether two revisions hold the same. By meaning, a field that is
// null, empty or left out is as good as one with the API's default: which defaults
// are spelt out has changed from release to release, and is no change of a template.
func Same(a, b []byte, byMeaning bool) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if !byMeaning {
		return false
	}
	x, err := meaning(a)
	if err != nil {
		return false
	}
	y, err := meaning(b)
	return err == nil && apiequality.Semantic.DeepEqual(x, y)
}

// meaning is the template in the data, with the API's defaults spelt out.
func meaning(data []byte) (*corev1.PodTemplateSpec, error) {
	var owner struct {
		Spec struct {
			Template *corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(data, &owner); err != nil {
		return nil, fmt.Errorf("read the data of a revision: %w", err)
	}
	if owner.Spec.Template == nil {
		return nil, fmt.Errorf("read the data of a revision: it holds no pod template")
	}
	setDefaults(owner.Spec.Template)
	return owner.Spec.Template, nil
}
