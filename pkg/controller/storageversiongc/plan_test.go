package storageversiongc

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	noon    = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	morning = metav1.NewTime(noon.Add(-4 * time.Hour))
)

// version makes a storage version from "server=encoding" words.
func version(entries ...string) *storageVersion {
	sv := &storageVersion{}
	sv.Name, sv.Generation = "g.things", 3
	for _, e := range entries {
		id, encoding, _ := strings.Cut(e, "=")
		sv.Status.StorageVersions = append(sv.Status.StorageVersions, entry{APIServerID: id, EncodingVersion: encoding})
	}
	return sv
}

// saying adds the common version and the condition.
func saying(sv *storageVersion, common string, at metav1.Time) *storageVersion {
	c := apiserverinternalv1alpha1.StorageVersionCondition{
		Type: apiserverinternalv1alpha1.AllEncodingVersionsEqual, Status: apiserverinternalv1alpha1.ConditionTrue, ObservedGeneration: 3,
		Reason: "CommonEncodingVersionSet", Message: "Common encoding version set", LastTransitionTime: at,
	}
	if common == "" {
		c.Status, c.Reason, c.Message = apiserverinternalv1alpha1.ConditionFalse, "CommonEncodingVersionUnset", "Common encoding version unset"
	} else {
		sv.Status.CommonEncodingVersion = &common
	}
	sv.Status.Conditions = append(sv.Status.Conditions, c)
	return sv
}

func TestDecide(t *testing.T) {
	now := metav1.NewTime(noon)
	lone := version("b=v1")
	for name, tc := range map[string]struct {
		sv   *storageVersion
		gone []string
		want plan
	}{
		"one that is gone":                     {nil, []string{"a"}, plan{Why: "the storage version is gone"}},
		"nobody is gone":                       {version("a=v1"), nil, plan{Why: "all its servers are there"}},
		"somebody else is gone":                {version("a=v1"), []string{"b"}, plan{Why: "all its servers are there"}},
		"one without entries is left alone":    {version(), []string{"a"}, plan{Why: "all its servers are there"}},
		"its only server is gone":              {lone, []string{"b"}, plan{remove: lone, Gone: []string{"b"}, Why: "none of its servers is there"}},
		"the rest agrees now":                  {version("a=v1", "b=v2"), []string{"b"}, some(saying(version("a=v1"), "v1", now), "b")},
		"the rest still disagrees":             {version("a=v1", "b=v2", "c=v1"), []string{"c"}, some(saying(version("a=v1", "b=v2"), "", now), "c")},
		"what was true stays so, since when":   {saying(version("a=v1", "b=v1"), "v1", morning), []string{"b"}, some(saying(version("a=v1"), "v1", morning), "b")},
		"disagreement ends now":                {saying(version("a=v1", "b=v2"), "", morning), []string{"a"}, some(saying(version("b=v2"), "v2", now), "a")},
		"another common version is transition": {saying(version("a=v1", "b=v2"), "v1", morning), []string{"a"}, some(saying(version("b=v2"), "v2", now), "a")},
		"two of three are gone":                {version("a=v1", "b=v2", "c=v3"), []string{"a", "c"}, some(saying(version("b=v2"), "v2", now), "a", "c")},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.sv.DeepCopy()
			if diff := cmp.Diff(tc.want, decide(tc.sv, tc.gone, noon), cmp.AllowUnexported(plan{})); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, tc.sv); diff != "" {
				t.Errorf("the cached object was changed: %s", diff)
			}
		})
	}
}

func some(update *storageVersion, gone ...string) plan {
	return plan{update: update, Gone: gone, Why: "some of its servers are gone"}
}

func TestServersAreNamedOnce(t *testing.T) {
	if diff := cmp.Diff([]string{"a", "b"}, servers(version("a=v1", "b=v2", "a=v2"))); diff != "" {
		t.Error(diff)
	}
}
