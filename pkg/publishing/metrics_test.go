package publishing

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestCode(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"success is 200":                           {nil, "200"},
		"an answer of the server keeps its code":   {apierrors.NewConflict(corev1.Resource("configmaps"), "x", nil), "409"},
		"a wrapped answer keeps its code":          {errors.Join(apierrors.NewNotFound(corev1.Resource("configmaps"), "x")), "404"},
		"an error without an answer counts as 500": {errors.New("refused"), "500"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := code(tc.err); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
