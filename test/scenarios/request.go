package scenarios

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// reads and writes are the verbs of an expect-request line.
var (
	reads  = []string{"get", "list", "watch"}
	writes = []string{"create", "update", "patch", "delete", "deletecollection"}
)

// parseRequest reads read|write RES[/NAME] [CODE].
func parseRequest(c condition, rest string) (condition, error) {
	fields := words(rest)
	if len(fields) < 2 || len(fields) > 3 || fields[0] != "read" && fields[0] != "write" {
		return c, fmt.Errorf("expect-request takes read|write RES[/NAME] [CODE], not %q", rest)
	}
	c.op, c.target = fields[0], fields[1]
	if len(fields) == 3 {
		c.value = fields[2]
		if _, err := strconv.Atoi(c.value); err != nil {
			return c, fmt.Errorf("expect-request needs a code such as 403, not %q", c.value)
		}
	}
	return c, nil
}

// request looks for a request of the controllers since the last command.
func (c condition) request(ctx context.Context, r *run) (bool, string, error) {
	ref, err := r.resolve(ctx, c.target)
	if err != nil {
		return false, "", err
	}
	seen := "none of that resource"
	for _, event := range r.suite.cp.Audit.Since(r.acted) {
		if !ref.names(event) || !slices.Contains(map[string][]string{"read": reads, "write": writes}[c.op], event.Verb) {
			continue
		}
		seen = event.String()
		if c.value == "" || c.value == strconv.Itoa(event.ResponseStatus.Code) {
			return true, seen, nil
		}
	}
	return false, seen, nil
}

// names reports whether a request is about what the reference stands for. Reads
// are mostly of all namespaces, and a creation does not name its object.
func (r reference) names(event harness.AuditEvent) bool {
	about := event.ObjectRef
	return about != nil && about.Resource == r.gvr.Resource && about.APIGroup == r.gvr.Group &&
		(about.Namespace == "" || about.Namespace == r.namespace) &&
		(r.name == "" || about.Name == "" || r.matches(about.Name))
}
