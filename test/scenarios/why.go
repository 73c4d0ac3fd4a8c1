package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
)

// why compares a field of what the manager answers to the question about an object.
func (c condition) why(ctx context.Context, r *run) (bool, string, error) {
	if r.suite.manager == nil {
		return false, "", fmt.Errorf("no controller manager is running")
	}
	ref, err := r.resolve(ctx, c.target)
	if err != nil {
		return false, "", err
	}
	question := url.Values{"kind": {ref.gvr.GroupResource().String()}, "name": {ref.name}}
	if ref.namespace != "" {
		question.Set("namespace", ref.namespace)
	}
	code, body, err := r.suite.manager.GetAsAdmin("/debug/why?" + question.Encode())
	if err != nil || code != http.StatusOK {
		return false, fmt.Sprintf("/debug/why answers %d %s, %v", code, body, err), nil
	}
	var answer map[string]any
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		return false, "", fmt.Errorf("read the answer: %w", err)
	}
	values, err := evaluate(c.path, answer)
	if err != nil {
		return false, "", err
	}
	return compare(c, values), fmt.Sprintf("%s, in the answer %q", show(values), answer["sentence"]), nil
}
