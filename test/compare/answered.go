package compare

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

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

// kinds are those of the built-in resources, by "resource.group".
var kinds = func() map[string]schema.GroupVersionKind {
	all := map[string]schema.GroupVersionKind{}
	for kind := range scheme.Scheme.AllKnownTypes() {
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		all[resource.GroupResource().String()] = kind
	}
	return all
}()

// answer is the object that a write was answered with. One of which only the metadata was
// asked for has the kind of the resource too.
func answer(request harness.AuditEvent) map[string]any {
	o := decoded(request.ResponseObject)
	if o["kind"] != "PartialObjectMetadata" {
		return o
	}
	if kind, known := kinds[schema.GroupResource{Group: request.ObjectRef.APIGroup, Resource: request.ObjectRef.Resource}.String()]; known {
		o["apiVersion"], o["kind"] = kind.ToAPIVersionAndKind()
	}
	return o
}
