package compare

import (
	"net/http"
	"strings"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// cutOff reports whether the client was killed before it had its answer: how many
// requests a kill hits is chance, and nobody has refused them.
func cutOff(request harness.AuditEvent) bool {
	return request.ResponseStatus.Code == http.StatusGatewayTimeout && strings.HasSuffix(request.ResponseStatus.Message, "context canceled")
}

// overtaken reports whether a change was refused as somebody else had changed the
// object meanwhile. A webhook may answer with the same code.
func overtaken(request harness.AuditEvent) bool {
	return request.ResponseStatus.Code == http.StatusConflict && strings.Contains(request.ResponseStatus.Message, "the object has been modified")
}

// refused marks requests that the server did not carry out, and conflict those of
// them that came too late.
const refused, conflict = " (refused)", " (conflict)"

// carriedOut reports whether a line of writes is about those that the server did.
func carriedOut(what string) bool {
	return !strings.HasSuffix(what, refused) && !strings.HasSuffix(what, conflict)
}
