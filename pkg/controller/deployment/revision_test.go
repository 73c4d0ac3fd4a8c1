package deployment

import (
	"fmt"
	"math"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestPromoted(t *testing.T) {
	long := strings.TrimSuffix(strings.Repeat("123456789,", 200), ",")
	for name, tc := range map[string]struct {
		d        *appsv1.Deployment
		set      *appsv1.ReplicaSet
		revision int64
		want     map[string]string
	}{
		"the set of this revision stays as it is": {
			deploy(3), set(2, "v2", 3, 3), 2, map[string]string{}},
		"a higher revision is kept": {
			deploy(3), set(7, "v2", 3, 3), 2, map[string]string{}},
		"coming back is a new revision, and the old one is history": {
			deploy(3), set(1, "v1", 0, 0), 4, map[string]string{revisionAnnotation: "4", historyAnnotation: "1"}},
		"history grows at its end": {
			deploy(3), set(4, "v1", 0, 0, noted(historyAnnotation, "1,2")), 6, map[string]string{revisionAnnotation: "6", historyAnnotation: "1,2,4"}},
		"a long history loses its beginning": {
			deploy(3), set(4, "v1", 0, 0, noted(historyAnnotation, long)), 6,
			map[string]string{revisionAnnotation: "6", historyAnnotation: strings.TrimPrefix(long, "123456789,") + ",4"}},
		"a history that just fits is kept whole": {
			deploy(3), set(4, "v1", 0, 0, noted(historyAnnotation, long[1:])), 6,
			map[string]string{revisionAnnotation: "6", historyAnnotation: long[1:] + ",4"}},
		"a set without a revision gets one and no history": {
			deploy(3), set(4, "v1", 0, 0, func(rs *appsv1.ReplicaSet) { rs.Annotations = nil }), 6, map[string]string{revisionAnnotation: "6"}},
		"an empty revision is none, and leaves an empty history": {
			deploy(3), set(4, "v1", 0, 0, noted(revisionAnnotation, "")), 6, map[string]string{revisionAnnotation: "6", historyAnnotation: ""}},
		"a revision that is no number is left alone, with all else": {
			deploy(3, annotated("team", "a")), set(4, "v1", 0, 0, noted(revisionAnnotation, "x")), 6, nil},
		"annotations are copied, but those that mean something else": {
			deploy(3, annotated("team", "a", corev1.LastAppliedConfigAnnotation, "{}", desiredAnnotation, "1", mostAnnotation, "1",
				historyAnnotation, "1", appsv1.DeprecatedRollbackTo, "1")),
			set(2, "v2", 3, 3), 2, map[string]string{"team": "a"}},
		"an annotation that the set has is not copied again": {
			deploy(3, annotated("team", "a", "tier", "new")), set(2, "v2", 3, 3, noted("team", "a", "tier", "old")), 2, map[string]string{"tier": "new"}},
		"an empty annotation is copied too": {
			deploy(3, annotated("team", "")), set(2, "v2", 3, 3), 2, map[string]string{"team": ""}},
	} {
		t.Run(name, func(t *testing.T) { check(t, promoted(tc.d, tc.set, tc.revision), tc.want) })
	}
}

func TestTopRevisions(t *testing.T) {
	for name, tc := range map[string]struct {
		sets []*appsv1.ReplicaSet
		want [2]int64
	}{
		"none":                         {nil, [2]int64{0, 0}},
		"one":                          {sets(set(3, "a", 0, 0)), [2]int64{3, 0}},
		"in any order":                 {sets(set(3, "a", 0, 0), set(9, "b", 0, 0), set(5, "c", 0, 0)), [2]int64{9, 5}},
		"unreadable ones do not count": {sets(set(3, "a", 0, 0, noted(revisionAnnotation, "9x")), set(2, "b", 0, 0)), [2]int64{2, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			highest, second := topRevisions(tc.sets)
			check(t, [2]int64{highest, second}, tc.want)
		})
	}
}

func TestObsolete(t *testing.T) {
	limit := func(n int32) deploymentOption {
		return func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = ptr.To(n) }
	}
	leaving := func(rs *appsv1.ReplicaSet) { at := metav1.NewTime(noon); rs.DeletionTimestamp = &at }
	unseen := func(rs *appsv1.ReplicaSet) { rs.Generation = 2 }
	busy := func(rs *appsv1.ReplicaSet) { rs.Status.Replicas = 1 }
	three := sets(set(1, "a", 0, 0), set(2, "b", 0, 0), set(3, "c", 0, 0))
	for name, tc := range map[string]struct {
		d    *appsv1.Deployment
		old  []*appsv1.ReplicaSet
		want []string
	}{
		"within the limit all stay":                        {deploy(1, limit(3)), three, nil},
		"the lowest revisions go":                          {deploy(1, limit(1)), three, []string{"web-1", "web-2"}},
		"a limit of zero keeps none":                       {deploy(1, limit(0)), three, []string{"web-1", "web-2", "web-3"}},
		"the largest number is no limit":                   {deploy(1, limit(math.MaxInt32)), three, nil},
		"no number is no limit":                            {deploy(1, func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = nil }), three, nil},
		"a revision that came back is young":               {deploy(1, limit(2)), sets(set(1, "a", 0, 0, noted(revisionAnnotation, "9")), three[1], three[2]), []string{"web-2"}},
		"unreadable revisions go by age":                   {deploy(1, limit(2)), sets(three[1], three[2], set(1, "a", 0, 0, noted(revisionAnnotation, "x"))), []string{"web-1"}},
		"a young one with an unreadable revision stays":    {deploy(1, limit(2)), sets(three[0], three[1], set(3, "c", 0, 0, noted(revisionAnnotation, "x"))), []string{"web-1"}},
		"one with pods stays, and nothing goes instead":    {deploy(1, limit(2)), sets(set(1, "a", 0, 0, busy), three[1], three[2]), nil},
		"one that asks for pods stays":                     {deploy(1, limit(2)), sets(set(1, "a", 1, 1), three[1], three[2]), nil},
		"one whose last change was not seen stays":         {deploy(1, limit(2)), sets(set(1, "a", 0, 0, unseen), three[1], three[2]), nil},
		"one on its way out does not count and goes alone": {deploy(1, limit(2)), sets(set(1, "a", 0, 0, leaving), three[1], three[2]), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, rs := range obsolete(tc.d, tc.old) {
				got = append(got, rs.Name)
			}
			check(t, got, tc.want)
		})
	}
}

func TestRolledBack(t *testing.T) {
	history := sets(set(1, "v1", 0, 0, noted("team", "then")), set(2, "v2", 0, 0), set(3, "v3", 3, 3))
	present := func(to string) *appsv1.Deployment {
		return deploy(3, image("v3"), annotated(revisionAnnotation, "3", "team", "now", corev1.LastAppliedConfigAnnotation, "{}", appsv1.DeprecatedRollbackTo, to))
	}
	kept := map[string]string{revisionAnnotation: "3", "team": "now", corev1.LastAppliedConfigAnnotation: "{}"}
	for name, tc := range map[string]struct {
		sets        []*appsv1.ReplicaSet
		to          string
		image       string
		annotations map[string]string
		told        string
	}{
		"to a revision, with its annotations": {history, "1", "v1",
			map[string]string{revisionAnnotation: "3", "team": "then", corev1.LastAppliedConfigAnnotation: "{}"}, `DeploymentRollback Rolled back deployment "web" to revision 1`},
		"zero is the last one": {history, "0", "v2",
			map[string]string{revisionAnnotation: "3", corev1.LastAppliedConfigAnnotation: "{}"}, `DeploymentRollback Rolled back deployment "web" to revision 2`},
		"without a last one nothing changes": {history[2:], "0", "v3", kept, "DeploymentRollbackRevisionNotFound Unable to find last revision."},
		"an unknown revision changes nothing": {history, "8", "v3", kept,
			"DeploymentRollbackRevisionNotFound Unable to find the revision to rollback to."},
		"the present one changes nothing": {history, "3", "v3", kept,
			`DeploymentRollbackTemplateUnchanged The rollback revision contains the same template as current deployment "web"`},
	} {
		t.Run(name, func(t *testing.T) {
			d := present(tc.to)
			before := d.DeepCopy()
			revision, _ := rollbackWanted(d)
			after, told := rolledBack(d, tc.sets, revision)
			check(t, after.Spec.Template, template(tc.image))
			check(t, after.Annotations, tc.annotations)
			check(t, fmt.Sprintf("%s %s", told.Reason, told.Message), tc.told)
			check(t, d, before)
		})
	}
}

func TestARollbackToNonsenseIsNone(t *testing.T) {
	_, wanted := rollbackWanted(deploy(3, annotated(appsv1.DeprecatedRollbackTo, "yesterday")))
	check(t, wanted, false)
}
