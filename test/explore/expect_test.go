package explore

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
)

func TestExpectSaysWhatTheReferenceHas(t *testing.T) {
	record := func(job string, pods int, events map[string]int) *compare.Record {
		r := &compare.Record{Objects: map[string][]string{}, Events: map[string]map[string]int{"job-controller": events}}
		if job != "" {
			r.Objects["Job.batch j"] = []string{job}
		}
		for range pods {
			r.Objects["Pod j-*"] = append(r.Objects["Pod j-*"], "kind: Pod")
		}
		return r
	}
	failed := "status:\n  failed: 1\n  completionTime: <time>\n  conditions:\n  - {type: Failed, reason: A}"
	for _, test := range []struct {
		name            string
		reference, ours *compare.Record
		want            []string
	}{
		{"alike", record(failed, 1, nil), record(failed, 1, nil), nil},
		{"other fields", record(failed, 1, nil), record("status:\n  failed: 2\n  ready: 1\n  conditions:\n  - {type: Failed, reason: B}", 1, nil), []string{
			`expect job.batch/j .status.conditions[?(@.type=="Failed")].reason == "A"`,
			`expect job.batch/j .status.failed == "1"`, `expect job.batch/j .status.ready absent`}},
		{"gone", record("", 0, nil), record(failed, 0, nil), []string{"expect-gone job.batch/j"}},
		{"there", record(failed, 0, nil), record("", 0, nil), []string{"expect job.batch/j .metadata.name exists"}},
		{"more pods", record("", 2, nil), record("", 1, nil), []string{"expect-count pod == 2"}},
		{"an event", record("", 0, map[string]int{"Job j: Warning BackoffLimitExceeded: #": 1}), record("", 0, nil),
			[]string{"expect-event job/j Warning BackoffLimitExceeded ."}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Expect(test.reference, test.ours)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
