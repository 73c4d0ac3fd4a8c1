package harness

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// AuditLog is what the controller manager and its controllers asked of the API
// server: users of kube-system and system:kube-controller-manager.
type AuditLog struct {
	path string
}

// AuditEvent is one request that the API server has answered.
type AuditEvent struct {
	// AuditID is that of the request; a policy may keep several stages of one.
	AuditID    string `json:"auditID"`
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	// Received is when the API server took the request.
	Received  time.Time `json:"requestReceivedTimestamp"`
	UserAgent string    `json:"userAgent"`
	ObjectRef *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
		APIGroup    string `json:"apiGroup"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
	Annotations map[string]string `json:"annotations"`
	// RequestObject and ResponseObject are there for writes on a control plane
	// that records bodies.
	RequestObject  json.RawMessage `json:"requestObject"`
	ResponseObject json.RawMessage `json:"responseObject"`
}

// Mark is the present end of the log.
func (l *AuditLog) Mark() int64 { return size(l.path) }

// Since returns the events after a mark. A line that is still being written is
// left out.
func (l *AuditLog) Since(mark int64) []AuditEvent {
	var events []AuditEvent
	for line := range strings.Lines(readFrom(l.path, mark)) {
		var event AuditEvent
		if strings.HasSuffix(line, "\n") && json.Unmarshal([]byte(line), &event) == nil {
			events = append(events, event)
		}
	}
	return events
}

// Controller is who asked: the name of a controller's service account, or
// "kube-controller-manager" for the process itself.
func (e AuditEvent) Controller() string {
	return e.User.Username[strings.LastIndex(e.User.Username, ":")+1:]
}

// Forbidden says whether the authorizer refused the request. An admission
// plugin (a quota, a namespace that is going away) answers 403 too; that is no
// lack of a role.
func (e AuditEvent) Forbidden() bool {
	return e.Annotations["authorization.k8s.io/decision"] == "forbid"
}

// Write says whether the request could change something that a user sees.
func (e AuditEvent) Write() bool {
	if ref := e.ObjectRef; ref != nil && (ref.Subresource == "token" || strings.HasSuffix(ref.Resource, "reviews")) {
		return false
	}
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, e.Verb)
}

// String is one line for a failure message.
func (e AuditEvent) String() string {
	return fmt.Sprintf("%s %s %s -> %d %s", e.User.Username, e.Verb, e.RequestURI, e.ResponseStatus.Code, e.ResponseStatus.Message)
}
