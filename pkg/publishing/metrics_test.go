package publishing

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-base/metrics/testutil"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

func TestWhatIsWithheldIsNotCounted(t *testing.T) {
	syncs := NewSyncs("withheld_test", "tests")
	syncs.Register()
	count := func(code string) float64 {
		n, err := testutil.GetCounterMetricValue(syncs.total.WithLabelValues(code))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	syncs.Observe(time.Second, errors.Join(&consistency.Withheld{Why: "maintenance"}))
	if n := count("500"); n != 0 {
		t.Errorf("what was withheld is counted %v times", n)
	}
	syncs.Observe(time.Second, errors.New("refused"))
	if n := count("500"); n != 1 {
		t.Errorf("a failure is counted %v times", n)
	}
}

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
