package compare

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// written is a deployment after a write at that second of a minute.
func written(t *testing.T, second int, status string) harness.AuditEvent {
	return request(t, fmt.Sprintf(`{"verb":"update",%s,"requestReceivedTimestamp":"2026-01-02T03:04:%02d.500000Z","objectRef":{"resource":"deployments","subresource":"status"},
		"responseStatus":{"code":200},"responseObject":{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","uid":"u","creationTimestamp":"2026-01-02T03:04:00Z"},
		"status":%s}}`, user, second, status))
}

// labelled is the deployment after a write to itself at that second.
func labelled(t *testing.T, second int, status string) harness.AuditEvent {
	event := written(t, second, status)
	event.ObjectRef.Subresource = ""
	return event
}

func condition(status, reason string, moved int) string {
	return fmt.Sprintf(`{"conditions":[{"type":"Ready","status":%q,"reason":%q,"lastTransitionTime":"2026-01-02T03:04:%02dZ"}]}`, status, reason, moved)
}

func TestTimesAreKeptByWhatTheyFollow(t *testing.T) {
	const ready = "status.conditions[Ready].lastTransitionTime"
	first := []string{"at metadata.creationTimestamp", "set at the write", "written as <time>"}
	for name, c := range map[string]struct {
		writes []harness.AuditEvent
		field  string
		want   []string
	}{
		"a first write":           {[]harness.AuditEvent{written(t, 1, condition("False", "a", 1))}, ready, first},
		"it moves with a status":  {[]harness.AuditEvent{written(t, 1, condition("False", "a", 1)), written(t, 4, condition("True", "b", 4))}, ready, append(first, "moves when the status changes")},
		"it stays with a status":  {[]harness.AuditEvent{written(t, 1, condition("False", "a", 1)), written(t, 4, condition("True", "b", 1))}, ready, append(first, "stays when the status changes")},
		"it may have moved":       {[]harness.AuditEvent{written(t, 1, condition("False", "a", 1)), written(t, 2, condition("True", "b", 1))}, ready, first},
		"it moves with a reason":  {[]harness.AuditEvent{written(t, 1, condition("False", "a", 1)), written(t, 4, condition("False", "b", 4))}, ready, append(first, "moves when the reason changes")},
		"it moves alone":          {[]harness.AuditEvent{written(t, 1, condition("False", "a", 1)), written(t, 4, condition("False", "a", 4))}, ready, append(first, "moves when nothing changes")},
		"it stays, as all does":   {[]harness.AuditEvent{written(t, 1, condition("False", "a", 1)), written(t, 4, condition("False", "a", 1))}, ready, first},
		"it is set to long ago":   {[]harness.AuditEvent{written(t, 30, condition("False", "a", 7))}, ready, []string{"after metadata.creationTimestamp", "set before the write", "written as <time>"}},
		"another time moves":      {[]harness.AuditEvent{written(t, 1, `{"startTime":"2026-01-02T03:04:01Z"}`), written(t, 3, `{"startTime":"2026-01-02T03:04:03Z"}`)}, "status.startTime", append(first, "moves")},
		"another time goes":       {[]harness.AuditEvent{written(t, 1, `{"startTime":"2026-01-02T03:04:01Z"}`), written(t, 3, `{}`)}, "status.startTime", append(first, "goes")},
		"two times of one object": {[]harness.AuditEvent{written(t, 30, `{"endTime":"2026-01-02T03:04:30Z","startTime":"2026-01-02T03:04:20Z"}`)}, "status.endTime", []string{"after metadata.creationTimestamp", "after status.startTime", "set at the write", "written as <time>"}},
		"times with fractions":    {[]harness.AuditEvent{written(t, 1, `{"startTime":"2026-01-02T03:04:01.000000Z"}`)}, "status.startTime", []string{"at metadata.creationTimestamp", "set at the write", "written as <time micro>"}},
		"others have moved it":    {[]harness.AuditEvent{written(t, 1, condition("False", "a", 1)), labelled(t, 4, condition("False", "a", 3))}, ready, first},
		"others, and then it":     {[]harness.AuditEvent{written(t, 1, condition("False", "a", 1)), labelled(t, 4, condition("False", "a", 3)), written(t, 9, condition("True", "a", 9))}, ready, append(first, "moves when the status changes", "after metadata.creationTimestamp")},
		"others have taken it":    {[]harness.AuditEvent{written(t, 1, `{"startTime":"2026-01-02T03:04:01Z"}`), labelled(t, 3, `{}`)}, "status.startTime", first},
		"words around a time":     {[]harness.AuditEvent{written(t, 1, `{"startTime":"at 2026-01-02T03:04:01Z"}`)}, "status.startTime", nil},
	} {
		r := NewRecord("story-0001", nil, c.writes, nil)
		got := map[string]bool{}
		for _, what := range r.Times["Deployment web"][c.field] {
			got[what] = true
		}
		want := map[string]bool{}
		for _, what := range c.want {
			want[what] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestWhatIsSaidOfATimeOfOursIsTrueOfTheReference(t *testing.T) {
	record := func(all string) *Record {
		if all == "" {
			return &Record{}
		}
		return &Record{Times: map[string]map[string][]string{"Job j": {"f": strings.Split(all, ", ")}}}
	}
	for name, c := range map[string]struct{ reference, ours, want string }{
		"the same":                          {"moves, set at the write", "moves, set at the write", ""},
		"no time of the reference":          {"", "moves", ""},
		"less":                              {"moves, set at the write", "set at the write", ""},
		"it moves":                          {"set at the write", "moves, set at the write", "moves"},
		"it goes":                           {"set at the write", "goes, set at the write", "goes"},
		"it lies elsewhere":                 {"set at the write", "set before the write", "set before the write"},
		"another form":                      {"written as <time>", "written as <time micro>", "written as <time micro>"},
		"before, not after":                 {"after x", "before x", "before x"},
		"nearer":                            {"after x", "at x", ""},
		"a later write":                     {"at metadata.creationTimestamp, set at the write", "after metadata.creationTimestamp, set at the write", ""},
		"a later end":                       {"at status.startTime, set at the write", "after status.startTime, set at the write", ""},
		"later, and not that of the write":  {"at metadata.creationTimestamp, set before the write", "after metadata.creationTimestamp", "after metadata.creationTimestamp"},
		"it moves alone":                    {"set at the write", "moves when nothing changes", "moves when nothing changes"},
		"it stays where it should move":     {"moves when the status changes", "stays when the status changes", "stays when the status changes"},
		"it moves where it should stay":     {"stays when the reason changes", "moves when the reason changes", "moves when the reason changes"},
		"it moves with what was not seen":   {"moves when the status changes", "moves when the reason changes", ""},
		"it does both, as the reference so": {"moves when the status changes, stays when the status changes", "stays when the status changes", ""},
	} {
		got := ""
		for _, f := range Compare("s", record(c.reference), record(c.ours)) {
			got += f.Kind + ": " + f.Subject + "\n" + f.Detail
		}
		want := ""
		if c.want != "" {
			want = "time: Job j f\nours:\n" + steps([]string{c.want}) + "\nthe reference:\n" + steps(strings.Split(c.reference, ", "))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
