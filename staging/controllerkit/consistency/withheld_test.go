package consistency

import (
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
)

func TestWasWithheld(t *testing.T) {
	paused, other := error(&Withheld{Why: "paused"}), errors.New("refused")
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no error":                            {nil, false},
		"another error":                       {other, false},
		"the error itself":                    {paused, true},
		"as an HTTP client returns it":        {&url.Error{Op: "Post", URL: "https://a", Err: paused}, true},
		"wrapped twice":                       {fmt.Errorf("sync: %w", fmt.Errorf("create: %w", paused)), true},
		"several of them":                     {fmt.Errorf("sync: %w", errors.Join(paused, fmt.Errorf("create: %w", paused))), true},
		"one of several is a failure":         {errors.Join(paused, other), false},
		"an aggregate of them":                {utilerrors.NewAggregate([]error{paused, paused}), true},
		"a failure is in the aggregate":       {utilerrors.NewAggregate([]error{other, paused}), false},
		"a joined error that has none within": {errors.Join(), false},
	} {
		t.Run(name, func(t *testing.T) {
			got := WasWithheld(tc.err)
			if (got != nil) != tc.want || got != nil && got.Why != "paused" {
				t.Errorf("got %v", got)
			}
			if tc.want && OutcomeUnknown(tc.err) {
				t.Error("its outcome counts as unknown, although nothing was sent")
			}
		})
	}
}

func TestTheFirstThatMayBeTriedCounts(t *testing.T) {
	at := time.Unix(1000, 0)
	paused, soon, late := &Withheld{Why: "paused"}, &Withheld{Why: "soon", Until: at}, &Withheld{Why: "late", Until: at.Add(time.Minute)}
	for want, errs := range map[*Withheld][]error{
		paused: {paused, &Withheld{Why: "paused too"}},
		soon:   {paused, late, soon, paused},
		late:   {late, paused},
	} {
		if got := WasWithheld(errors.Join(errs...)); got != want {
			t.Errorf("%v: got %v", errs, got)
		}
	}
}
