package storageversionmigrator

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// defined is a definition at generation 4 that stores v2.
func defined(stored []string, migrating ...apiextensionsv1.CustomResourceDefinitionCondition) *definition {
	d := &definition{}
	d.Name, d.Generation, d.UID, d.ResourceVersion = "things.example.com", 4, "d", "9"
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1"}, {Name: "v2", Storage: true}}
	d.Status.StoredVersions, d.Status.Conditions = stored, migrating
	return d
}

func at(generation int64, status apiextensionsv1.ConditionStatus) apiextensionsv1.CustomResourceDefinitionCondition {
	return apiextensionsv1.CustomResourceDefinitionCondition{
		Type: conditionMigrating, Status: status, ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(noon.Add(-1)),
	}
}

func TestEnding(t *testing.T) {
	both, one := []string{"v1", "v2"}, []string{"v2"}
	won, lost := made("m", 0, isRunning, isSucceeded), made("m", 0, isRunning, isFailed)
	for name, tc := range map[string]struct {
		d               *definition
		m               *migration
		reason, message string
		stored          []string
	}{
		"after a success only the storage version is stored": {
			defined(both, at(4, "True")), won, "MigrationSucceeded", "The migration has succeeded and the stored versions have been updated", one},
		"another storage version since then spoils it": {defined(both, at(3, "True")), won, "MigrationSucceeded",
			"The migration has succeeded but the stored versions have not been updated due to a generation mismatch", both},
		"so does a beginning that nobody knows": {defined(both), won, "MigrationSucceeded",
			"The migration has succeeded but the stored versions have not been updated due to a generation mismatch", both},
		"after a failure all are still stored": {defined(both, at(4, "True")), lost, "MigrationFailed", "The migration has failed", both},
	} {
		t.Run(name, func(t *testing.T) {
			want := &report{condition: metav1.Condition{Type: "StorageMigrating", Status: metav1.ConditionFalse, Reason: tc.reason, Message: tc.message,
				ObservedGeneration: 4, LastTransitionTime: metav1.NewTime(noon)}, stored: tc.stored}
			if diff := cmp.Diff(want, ending(tc.d, tc.m, noon), cmp.AllowUnexported(report{})); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := ending(defined(both, at(4, "False")), won, noon); got != nil {
		t.Errorf("what was reported is reported again: %v", got)
	}
}

func TestBeginning(t *testing.T) {
	for name, tc := range map[string]struct {
		d     *definition
		since metav1.Time
	}{
		"the first one":            {defined([]string{"v1", "v2"}), metav1.NewTime(noon)},
		"after an earlier one":     {defined([]string{"v1", "v2"}, at(3, "False")), metav1.NewTime(noon)},
		"one that was interrupted": {defined([]string{"v1", "v2"}, at(4, "True")), metav1.NewTime(noon.Add(-1))},
	} {
		t.Run(name, func(t *testing.T) {
			want := &report{condition: metav1.Condition{Type: "StorageMigrating", Status: metav1.ConditionTrue, Reason: "MigrationRunning",
				Message: "Migration m is running", ObservedGeneration: 4, LastTransitionTime: tc.since}, stored: []string{"v1", "v2"}}
			if diff := cmp.Diff(want, beginning(tc.d, made("m", 0), noon), cmp.AllowUnexported(report{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStatusPatch(t *testing.T) {
	d := defined([]string{"v1", "v2"}, at(4, "True"))
	step := tell(d, ending(d, made("m", 0, isRunning, isSucceeded), noon))
	got, err := json.Marshal(step.Configuration)
	want := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",` +
		`"metadata":{"name":"things.example.com","resourceVersion":"9","uid":"d"},` +
		`"status":{"conditions":[{"type":"StorageMigrating","status":"False","observedGeneration":4,"lastTransitionTime":"2026-01-01T12:00:00Z",` +
		`"reason":"MigrationSucceeded","message":"The migration has succeeded and the stored versions have been updated"}],"storedVersions":["v2"]}}`
	if !step.Force || step.Manager != "migration-runner-controller" || step.Subresource != "status" || step.Of.GetName() != d.Name {
		t.Errorf("applied as %+v", step)
	}
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}
