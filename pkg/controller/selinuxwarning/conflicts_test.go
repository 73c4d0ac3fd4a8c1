package selinuxwarning

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConflicts(t *testing.T) {
	policies := conflict{changePolicy, "MountOption", "Recursive"}
	for name, tc := range map[string]struct {
		own, others label
		want        []conflict
	}{
		"one label":                                {":::s0", ":::s0", nil},
		"no label on both":                         {"", "", nil},
		"levels differ":                            {":::s0:c1,c2", ":::s0:c98,c99", []conflict{{seLinuxLabel, ":::s0:c1,c2", ":::s0:c98,c99"}}},
		"levels in another order differ":           {":::s0:c1,c2", ":::s0:c2,c1", []conflict{{seLinuxLabel, ":::s0:c1,c2", ":::s0:c2,c1"}}},
		"a level and none differ":                  {"::t:s0", "::t:", []conflict{{seLinuxLabel, "::t:s0", "::t:"}}},
		"a type and none do not differ":            {"::a_t:s0", ":::s0", nil},
		"types differ":                             {"::a_t:s0", "::b_t:s0", []conflict{{seLinuxLabel, "::a_t:s0", "::b_t:s0"}}},
		"users differ":                             {"a:::s0", "b:::s0", []conflict{{seLinuxLabel, "a:::s0", "b:::s0"}}},
		"roles differ":                             {":a::s0", ":b::s0", []conflict{{seLinuxLabel, ":a::s0", ":b::s0"}}},
		"a user and none do not differ":            {"a:::s0", ":::s0", nil},
		"labelled and not, by policy and by level": {":::s0", "", []conflict{policies, {seLinuxLabel, ":::s0", ""}}},
		"a type without a level, and no label, differ by policy only": {"::a_t:", "", []conflict{policies}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, conflicts(tc.own, tc.others), cmp.AllowUnexported(conflict{})); diff != "" {
				t.Error(diff)
			}
			var turned []conflict
			for _, c := range tc.want {
				turned = append(turned, c.turned())
			}
			if diff := cmp.Diff(turned, conflicts(tc.others, tc.own), cmp.AllowUnexported(conflict{})); diff != "" {
				t.Errorf("the other way round: %s", diff)
			}
		})
	}
}

func TestTheEventNamesNothingOfAnotherNamespace(t *testing.T) {
	const end = " If both pods land on the same node, only one of them may access the volume."
	c := conflict{seLinuxLabel, ":::s0", ":::s1"}
	for other, want := range map[string]string{
		"a": `SELinuxLabel ":::s0" conflicts with pod other that uses the same volume as this pod with SELinuxLabel ":::s1".` + end,
		"b": `SELinuxLabel":::s0" conflicts with another pod that uses the same volume as this pod with a different SELinuxLabel.` + end,
	} {
		if reason, got := c.event(aPod("a", "web", nil), aPod(other, "other", nil)); got != want || reason != "SELinuxLabelConflict" {
			t.Errorf("%s\n%s\nwant\n%s", reason, got, want)
		}
	}
}
