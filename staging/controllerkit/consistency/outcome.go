package consistency

import (
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// OutcomeUnknown reports whether a request that failed may have been carried
// out. It was not when the API server itself refused it, when there were too many
// requests, when nobody took the connection, or when it was withheld. All else is unknown:
// a timeout, a stream that was reset, a body that was cut, an error of etcd, an answer of
// a proxy.
func OutcomeUnknown(err error) bool {
	var status apierrors.APIStatus
	switch {
	case err == nil || utilnet.IsConnectionRefused(err) || WasWithheld(err) != nil:
		return false
	case errors.As(err, &status):
		return !refusal(status.Status())
	}
	return true
}

// NotFound reports whether the API server itself says that there is no such object. A 404 of
// something in front of it, of which client-go makes the same error, says nothing.
func NotFound(err error) bool { return apierrors.IsNotFound(err) && !OutcomeUnknown(err) }

// refusal reports whether the API server itself says that it did nothing. So does each
// 429: the API server sends it as plain text when it has too much to do, and something in
// front of it sends it in place of passing the request on.
func refusal(s metav1.Status) bool {
	if s.Code == http.StatusTooManyRequests {
		return true
	}
	if s.Code < http.StatusBadRequest || s.Code >= http.StatusInternalServerError || s.Code == http.StatusRequestTimeout {
		return false
	}
	// client-go makes a status of any answer, and notes the body that was none.
	return !apierrors.HasStatusCause(&apierrors.StatusError{ErrStatus: s}, metav1.CauseTypeUnexpectedServerResponse)
}
