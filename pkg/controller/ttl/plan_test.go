package ttl

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func TestStagesByTheSizeOfTheCluster(t *testing.T) {
	for name, tc := range map[string]struct{ at, nodes, want int }{
		"none":                              {0, 0, 0},
		"a hundred stay":                    {0, 100, 0},
		"one more":                          {0, 101, 15},
		"ninety on the way down stay":       {1, 90, 15},
		"one less":                          {1, 89, 0},
		"five hundred stay":                 {1, 500, 15},
		"501":                               {1, 501, 30},
		"450 on the way down stay":          {2, 450, 30},
		"449":                               {2, 449, 15},
		"a thousand stay":                   {2, 1000, 30},
		"1001":                              {2, 1001, 60},
		"900 on the way down stay":          {3, 900, 60},
		"899":                               {3, 899, 30},
		"two thousand stay":                 {3, 2000, 60},
		"2001":                              {3, 2001, 300},
		"1800 on the way down stay":         {4, 1800, 300},
		"1799":                              {4, 1799, 60},
		"ten thousand":                      {4, 10000, 300},
		"more than ten thousand":            {4, 10001, 300},
		"9000 on the way down":              {4, 9000, 300},
		"8999":                              {4, 8999, 300},
		"any number more":                   {4, math.MaxInt, 300},
		"all at once on the way up":         {0, 5000, 300},
		"all at once on the way down":       {4, 3, 0},
		"as many as can be, from the start": {0, math.MaxInt, 300},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stages[follow(tc.at, tc.nodes)].seconds; got != tc.want {
				t.Errorf("got %d seconds, want %d", got, tc.want)
			}
		})
	}
}

// TestAWalkThroughSizesKeepsItsStage walks one node at a time, as the watch does.
func TestAWalkThroughSizesKeepsItsStage(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	at, nodes := 0, 0
	for range 200_000 {
		if r.IntN(100) < 52 || nodes == 0 {
			nodes++
		} else {
			nodes--
		}
		before := at
		at = follow(at, nodes)
		if nodes < stages[at].least || nodes > stages[at].most {
			t.Fatalf("%d nodes are in the stage of %d to %d", nodes, stages[at].least, stages[at].most)
		}
		if at != before && nodes >= stages[before].least && nodes <= stages[before].most {
			t.Fatalf("left the stage of %d to %d with %d nodes", stages[before].least, stages[before].most, nodes)
		}
	}
}

func node(name string, annotations map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid", Annotations: annotations}}
}

func annotated(text string) map[string]string {
	return map[string]string{corev1.ObjectTTLAnnotationKey: text}
}

func TestPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		annotations map[string]string
		seconds     int
		want        string
	}{
		"no annotation":              {nil, 0, "0"},
		"another annotation":         {map[string]string{"a": "b"}, 15, "15"},
		"the right time":             {annotated("15"), 15, ""},
		"none is right":              {annotated("0"), 0, ""},
		"too short":                  {annotated("0"), 15, "15"},
		"too long":                   {annotated("600"), 300, "300"},
		"written in another way":     {annotated("015"), 15, ""},
		"empty":                      {annotated(""), 0, "0"},
		"no number":                  {annotated("soon"), 0, "0"},
		"a duration":                 {annotated("15s"), 15, "15"},
		"a number that is too large": {annotated("99999999999999999999"), 30, "30"},
		"negative":                   {annotated("-1"), 0, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			got := plan(observed{node("a", tc.annotations), tc.seconds}, time.Time{})
			want := ""
			if tc.want != "" {
				want = fmt.Sprintf(`patch Node a {"metadata":{"annotations":{"node.alpha.kubernetes.io/ttl":"%s"},"uid":"uid"}}`, tc.want)
			}
			if wants := fixture.Planned(got); wants != want || got.Why == "" {
				t.Errorf("wants %s because %q", wants, got.Why)
			}
		})
	}
}

func TestAPatchLeavesOtherAnnotations(t *testing.T) {
	before := node("a", map[string]string{"a": "b", corev1.ObjectTTLAnnotationKey: "x"})
	patch := plan(observed{before, 15}, time.Time{}).Stages[0].Steps[0].(act.Patch).Data
	original, _ := json.Marshal(before)
	merged, err := strategicpatch.StrategicMergePatch(original, patch, corev1.Node{})
	if err != nil {
		t.Fatal(err)
	}
	var after corev1.Node
	if err := json.Unmarshal(merged, &after); err != nil {
		t.Fatal(err)
	}
	if len(after.Annotations) != 2 || after.Annotations["a"] != "b" || after.Annotations[corev1.ObjectTTLAnnotationKey] != "15" {
		t.Errorf("annotations %v", after.Annotations)
	}
}
