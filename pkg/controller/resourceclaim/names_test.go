package resourceclaim

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/validation"
)

func TestHowTheNamesOfClaimsBegin(t *testing.T) {
	for name, tc := range map[string]struct{ owner, claim, want string }{
		"a short one is whole":                {"web", "gpu", "web-gpu-"},
		"57 characters are short":             {strings.Repeat("p", 40), strings.Repeat("c", 15), strings.Repeat("p", 40) + "-" + strings.Repeat("c", 15) + "-"},
		"58 are cut, and end without hyphen":  {strings.Repeat("p", 40), strings.Repeat("c", 16), strings.Repeat("p", 39) + "-" + strings.Repeat("c", 15)},
		"each part loses by its length":       {strings.Repeat("p", 200), strings.Repeat("c", 60), strings.Repeat("p", 43) + "-" + strings.Repeat("c", 13)},
		"the longest":                         {strings.Repeat("p", 253), strings.Repeat("c", 63), strings.Repeat("p", 45) + "-" + strings.Repeat("c", 11)},
		"a name of one character stays":       {"p", strings.Repeat("c", 56), "p-" + strings.Repeat("c", 54)},
		"a part that would end in a dot":      {strings.Repeat("p", 38) + ".p", strings.Repeat("c", 16), strings.Repeat("p", 38) + "-" + strings.Repeat("c", 15)},
		"a part that would end in two":        {strings.Repeat("p", 37) + "..p", strings.Repeat("c", 16), strings.Repeat("p", 37) + "-" + strings.Repeat("c", 15)},
		"a dot in the middle stays":           {strings.Repeat("p", 20) + "." + strings.Repeat("p", 19), strings.Repeat("c", 16), strings.Repeat("p", 20) + "." + strings.Repeat("p", 18) + "-" + strings.Repeat("c", 15)},
		"a dot at the end of a whole is kept": {"a.b", "gpu", "a.b-gpu-"},
	} {
		t.Run(name, func(t *testing.T) {
			got := generateName(tc.owner, tc.claim)
			if got != tc.want {
				t.Errorf("got %s, %d long", got, len(got))
			}
			if len(got) > 58 {
				t.Error("the API server would cut it")
			}
			if !strings.Contains(tc.owner, "..") && len(validation.NameIsDNSSubdomain(got+strings.Repeat("a", 5), false)) > 0 {
				t.Error("it begins no valid name")
			}
		})
	}
}
