package revisions

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
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

// TemplateIn returns the template that the data of a revision holds. To apply a
// revision to its owner is to take this template.
func TemplateIn(data []byte) (*corev1.PodTemplateSpec, error) {
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
	return owner.Spec.Template, nil
}

// Same tells whether two revisions hold the same. By meaning, fields that are
// null or empty count as left out, as earlier releases wrote some of them.
func Same(a, b []byte, byMeaning bool) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if !byMeaning {
		return false
	}
	x, err := TemplateIn(a)
	if err != nil {
		return false
	}
	y, err := TemplateIn(b)
	return err == nil && apiequality.Semantic.DeepEqual(x, y)
}
