package revisions

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func check[T any](t *testing.T, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
}

func template(image string) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
	}
}

func data(t *testing.T, image string) []byte {
	t.Helper()
	raw, err := DataOf(template(image))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestTheDataOfARevisionReplacesTheTemplate(t *testing.T) {
	raw := data(t, "a&b:1")
	check(t, string(raw), `{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"a\u0026b:1","name":"c","resources":{}}]}}}}`)
	back, err := Restored(template("other"), raw)
	if err != nil {
		t.Fatal(err)
	}
	check(t, back, template("a&b:1"))
}

func TestWhatTheDataLeavesOutStays(t *testing.T) {
	more := template("c:2")
	more.Labels["tier"] = "a"
	for raw, want := range map[string]*corev1.PodTemplateSpec{
		`{}`:          template("c:1"),
		`{"spec":{}}`: template("c:1"),
		`{"metadata":{"labels":{"a":"b"}},"spec":{"replicas":7}}`:                                                       template("c:1"),
		`{"spec":{"template":{"metadata":{"labels":{"tier":"a"}},"spec":{"containers":[{"name":"c","image":"c:2"}]}}}}`: more,
	} {
		got, err := Restored(template("c:1"), []byte(raw))
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		check(t, got, want)
	}
}

func TestDataThatIsNoPatchIsRefused(t *testing.T) {
	for _, raw := range []string{``, `[`, `7`, `{"spec":7}`} {
		if _, err := Restored(template("c:1"), []byte(raw)); err == nil {
			t.Errorf("%s is taken for a revision", raw)
		}
		if Same([]byte(raw), data(t, "c:1"), true) {
			t.Errorf("%s is taken for a template", raw)
		}
	}
}

func TestRevisionsAreComparedByBytesOrByMeaning(t *testing.T) {
	now := string(data(t, "v1"))
	before := strings.Replace(now, `"metadata":{`, `"metadata":{"creationTimestamp":null,`, 1)
	for name, tc := range map[string]struct {
		a, b           string
		bytes, meaning bool
	}{
		"the same bytes":                   {now, now, true, true},
		"a null of an earlier release":     {now, before, false, true},
		"another image":                    {now, string(data(t, "v2")), false, false},
		"what cannot be read":              {now, "{", false, false},
		"what cannot be read, but is same": {"{", "{", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, Same([]byte(tc.a), []byte(tc.b), false), tc.bytes)
			check(t, Same([]byte(tc.a), []byte(tc.b), true), tc.meaning)
		})
	}
}

func TestNamesAndHashes(t *testing.T) {
	raw := data(t, "v1")
	zero, one := Hash(raw, ptr.To[int32](0)), Hash(raw, ptr.To[int32](1))
	if zero == one || zero == Hash(raw, nil) {
		t.Errorf("collisions do not change the hash: %s %s", zero, one)
	}
	check(t, Name("web", "abc"), "web-abc")
	check(t, Name(strings.Repeat("a", 250), "abc"), strings.Repeat("a", 223)+"-abc")
}

// revision is named by its number, and older the lower that is.
func revision(number int64, image string) *appsv1.ControllerRevision {
	raw, err := DataOf(template(image))
	if err != nil {
		panic(err)
	}
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("web-", number), Namespace: "ns", CreationTimestamp: metav1.NewTime(noon.Add(time.Duration(number) * time.Minute))},
		Revision:   number, Data: runtime.RawExtension{Raw: raw},
	}
}

func names(revisions []*appsv1.ControllerRevision) string {
	var all []string
	for _, r := range revisions {
		all = append(all, r.Name)
	}
	return strings.Join(all, " ")
}

func TestTheNextNumberIsAfterTheLast(t *testing.T) {
	check(t, Next(nil), 1)
	check(t, Next([]*appsv1.ControllerRevision{revision(7, "a"), revision(3, "b")}), 8)
}

func TestTheOrderIsByNumberThenAgeThenName(t *testing.T) {
	young, old, alike := revision(4, "a"), revision(4, "a"), revision(4, "a")
	young.Name, young.CreationTimestamp = "young", metav1.NewTime(noon.Add(time.Hour))
	old.Name, alike.Name = "old", "alike"
	check(t, names(Sorted([]*appsv1.ControllerRevision{revision(5, "a"), young, old, alike, revision(3, "a")})), "web-3 alike old young web-5")
}

func TestHoldingFindsAllOfATemplate(t *testing.T) {
	history := []*appsv1.ControllerRevision{revision(1, "a"), revision(2, "b"), revision(3, "a")}
	check(t, names(Holding(history, data(t, "a"), false)), "web-1 web-3")
	check(t, names(Holding(history, data(t, "c"), true)), "")
}

func TestObsoleteKeepsTheLatestAndThoseInUse(t *testing.T) {
	history := []*appsv1.ControllerRevision{revision(4, "d"), revision(1, "a"), revision(3, "c"), revision(2, "b")}
	for _, tc := range []struct {
		limit int
		used  string
		want  string
	}{
		{10, "", ""}, {4, "", ""}, {3, "", "web-1"}, {2, "", "web-1 web-2"}, {0, "", "web-1 web-2 web-3 web-4"}, {-1, "", "web-1 web-2 web-3 web-4"},
		{2, "web-1", "web-2 web-3"}, {0, "web-1 web-4", "web-2 web-3"}, {3, "web-1 web-2 web-3 web-4", ""},
	} {
		t.Run(fmt.Sprintf("limit %d, in use %q", tc.limit, tc.used), func(t *testing.T) {
			inUse := func(r *appsv1.ControllerRevision) bool { return strings.Contains(tc.used, r.Name) }
			check(t, names(Obsolete(history, tc.limit, inUse)), tc.want)
		})
	}
}
