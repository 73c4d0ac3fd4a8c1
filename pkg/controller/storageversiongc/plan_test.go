package storageversiongc

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
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

// wants is what is to be written: the status of one, or its deletion.
type wants struct{ update, remove *storageVersion }

func TestPlan(t *testing.T) {
	now := metav1.NewTime(noon)
	lone := version("b=v1")
	for name, tc := range map[string]struct {
		sv   *storageVersion
		gone []string
		want wants
	}{
		"nobody is gone":                       {version("a=v1"), nil, wants{}},
		"somebody else is gone":                {version("a=v1"), []string{"b"}, wants{}},
		"one without entries is left alone":    {version(), []string{"a"}, wants{}},
		"its only server is gone":              {lone, []string{"b"}, wants{remove: lone}},
		"the rest agrees now":                  {version("a=v1", "b=v2"), []string{"b"}, wants{update: saying(version("a=v1"), "v1", now)}},
		"the rest still disagrees":             {version("a=v1", "b=v2", "c=v1"), []string{"c"}, wants{update: saying(version("a=v1", "b=v2"), "", now)}},
		"what was true stays so, since when":   {saying(version("a=v1", "b=v1"), "v1", morning), []string{"b"}, wants{update: saying(version("a=v1"), "v1", morning)}},
		"disagreement ends now":                {saying(version("a=v1", "b=v2"), "", morning), []string{"a"}, wants{update: saying(version("b=v2"), "v2", now)}},
		"another common version is transition": {saying(version("a=v1", "b=v2"), "v1", morning), []string{"a"}, wants{update: saying(version("b=v2"), "v2", now)}},
		"two of three are gone":                {version("a=v1", "b=v2", "c=v3"), []string{"a", "c"}, wants{update: saying(version("b=v2"), "v2", now)}},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.sv.DeepCopy()
			p := plan(observed{[]*storageVersion{tc.sv}, tc.gone}, noon)
			var got wants
			for _, stage := range p.Stages {
				switch s := stage.Steps[0].(type) {
				case act.Update:
					got.update = s.Object.(*storageVersion)
				case act.Delete:
					got.remove = s.Of.(*storageVersion)
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(wants{})); diff != "" {
				t.Error(diff)
			}
			why := "every entry belongs to an API server that exists"
			if tc.want != (wants{}) {
				why = "1 storage versions name servers that are gone: " + strings.Join(tc.gone, ", ")
			}
			if p.Why != why {
				t.Errorf("because %q", p.Why)
			}
			if diff := cmp.Diff(before, tc.sv); diff != "" {
				t.Errorf("the cached object was changed: %s", diff)
			}
		})
	}
}

func TestServersAreNamedOnce(t *testing.T) {
	if diff := cmp.Diff([]string{"a", "b"}, servers(version("a=v1", "b=v2", "a=v2"))); diff != "" {
		t.Error(diff)
	}
}
