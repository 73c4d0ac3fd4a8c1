package namespace

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func describe(status corev1.NamespaceStatus) string {
	var lines []string
	for _, c := range status.Conditions {
		lines = append(lines, fmt.Sprintf("%s %s %s %s", c.Type, c.Status, c.Reason, c.LastTransitionTime.UTC().Format("15:04")))
	}
	return strings.Join(lines, "\n")
}

const calm = `NamespaceDeletionDiscoveryFailure False ResourcesDiscovered 12:00
NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions 12:00
NamespaceDeletionContentFailure False ContentDeleted 12:00
NamespaceContentRemaining False ContentRemoved 12:00
NamespaceFinalizersRemaining False ContentHasNoFinalizers 12:00`

func TestConditions(t *testing.T) {
	left := map[schema.GroupVersionResource]int{configMaps.gvr: 1}
	held := map[string]int{"a": 1}
	for name, tc := range map[string]struct {
		o    outcome
		want string
	}{
		"a namespace that empties without trouble": {outcome{}, calm},
		"content and finalizers remain": {outcome{remaining: left, finalizers: held}, `NamespaceDeletionDiscoveryFailure False ResourcesDiscovered 12:00
NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions 12:00
NamespaceDeletionContentFailure False ContentDeleted 12:00
NamespaceContentRemaining True SomeResourcesRemain 12:00
NamespaceFinalizersRemaining True SomeFinalizersRemain 12:00`},
		"while the pods go, what remains is not counted": {outcome{remaining: left, finalizers: held, podsFirst: true}, calm},
		"all that can fail fails": {
			outcome{undiscovered: errors.New("x"), unparsed: []error{errors.New("y")}, failed: []error{errors.New("z")}},
			`NamespaceDeletionDiscoveryFailure True DiscoveryFailed 12:00
NamespaceDeletionGroupVersionParsingFailure True GroupVersionParsingFailed 12:00
NamespaceDeletionContentFailure True ContentDeletionFailed 12:00
NamespaceContentRemaining False ContentRemoved 12:00
NamespaceFinalizersRemaining False ContentHasNoFinalizers 12:00`},
	} {
		t.Run(name, func(t *testing.T) {
			got := withConditions(corev1.NamespaceStatus{}, &tc.o, metav1.NewTime(noon))
			if diff := cmp.Diff(tc.want, describe(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestConditionsOverTime(t *testing.T) {
	two := outcome{remaining: map[schema.GroupVersionResource]int{configMaps.gvr: 2}}
	one := outcome{remaining: map[schema.GroupVersionResource]int{configMaps.gvr: 1}}
	own := corev1.NamespaceStatus{Phase: corev1.NamespaceTerminating, Conditions: []corev1.NamespaceCondition{{Type: "example.com/Mine", Status: "True"}}}

	first := withConditions(own, &two, metav1.NewTime(noon))
	second := withConditions(first, &one, metav1.NewTime(noon.Add(time.Minute)))
	third := withConditions(second, &outcome{}, metav1.NewTime(noon.Add(2*time.Minute)))
	again := withConditions(third, &outcome{}, metav1.NewTime(noon.Add(3*time.Minute)))

	if first.Conditions[0].Type != "example.com/Mine" || len(first.Conditions) != 6 {
		t.Errorf("a condition of somebody else is lost: %v", first.Conditions)
	}
	got := second.Conditions[4]
	if got.Message != "Some resources are remaining: configmaps. has 1 resource instances" || !got.LastTransitionTime.Time.Equal(noon) {
		t.Errorf("a message alone moved the transition or was lost: %v", got)
	}
	if got := third.Conditions[4]; got.Status != corev1.ConditionFalse || !got.LastTransitionTime.Time.Equal(noon.Add(2*time.Minute)) {
		t.Errorf("the transition is not of the change of the status: %v", got)
	}
	if diff := cmp.Diff(third, again); diff != "" {
		t.Errorf("nothing happened, yet the status changed: %s", diff)
	}
}

func TestWhatIsLeftIsNamed(t *testing.T) {
	left := map[schema.GroupVersionResource]int{configMaps.gvr: 2, widgets.gvr: 3}
	for want, o := range map[string]outcome{
		"0 objects of 0 kinds are left":                                                                               {},
		"5 objects of 2 kinds are left: widgets.example.com (3), configmaps (2)":                                      {remaining: left},
		"5 objects of 2 kinds are left: widgets.example.com (3), configmaps (2), held by the finalizers a (4), b (1)": {remaining: left, finalizers: map[string]int{"b": 1, "a": 4}},
	} {
		if got := o.why(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	for want, counts := range map[string]map[string]int{
		"g (2), a (1), b (1), c (1), d (1), and 2 more": {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 2},
		"a (1), b (1), c (1), d (1), e (1)":             {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1},
	} {
		if got := mostOf(counts); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
