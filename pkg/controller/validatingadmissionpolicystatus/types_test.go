package validatingadmissionpolicystatus

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestUnserved(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"not there":             {apierrors.NewNotFound(schema.GroupResource{}, ""), true},
		"down":                  {fmt.Errorf("read: %w", apierrors.NewServiceUnavailable("no endpoints")), true},
		"a bad gateway":         {apierrors.NewGenericServerResponse(502, "get", schema.GroupResource{}, "", "", 0, true), true},
		"a gateway that waited": {apierrors.NewTimeoutError("no answer", 0), true},
		"no document":           {fmt.Errorf("read: %w", json.Unmarshal([]byte("<html>"), &struct{}{})), true},
		"another document":      {json.Unmarshal([]byte(`{"a":1}`), &struct{ A string }{}), true},
		"broken":                {apierrors.NewInternalError(errors.New("broken")), false},
		"forbidden":             {apierrors.NewForbidden(schema.GroupResource{}, "", nil), false},
		"no answer of a server": {errors.New("connection refused"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unserved(tc.err); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
