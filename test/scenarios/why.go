package scenarios

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// why compares a field of what the manager answers to the question about an object. The
// kind is asked for in the word of the story.
func (c condition) why(r *run) (bool, string, error) {
	if r.suite.manager == nil {
		return false, "", fmt.Errorf("no controller manager is running")
	}
	kind, name, _ := strings.Cut(c.target, "/")
	namespace := r.namespace
	if in, of, ok := strings.Cut(name, "/"); ok {
		namespace, name = in, of
	}
	question := url.Values{"kind": {kind}, "namespace": {namespace}, "name": {name}}
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
