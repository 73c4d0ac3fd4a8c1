package rejections

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestHold(t *testing.T) {
	const why = "nodes reject the pods (5 in a row, the last with reason OutOfcpu)"
	until := noon.Add(10 * time.Second)
	for name, tc := range map[string]struct {
		verdict *Verdict
		wanted  int
		now     int
		until   time.Time
		why     string
		over    bool
	}{
		"without a verdict all are made":  {nil, 3, 3, time.Time{}, "", true},
		"all may be made":                 {&Verdict{Allowed: 3}, 3, 3, time.Time{}, "", true},
		"some may":                        {&Verdict{Allowed: 1, InARow: 5, Reason: "OutOfcpu"}, 3, 1, time.Time{}, why, false},
		"none may":                        {&Verdict{InARow: 5, Reason: "OutOfcpu", Until: until}, 3, 0, until, why, false},
		"none is wanted, so none is held": {&Verdict{InARow: 5, Reason: "OutOfcpu", Until: until}, 0, 0, time.Time{}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			now, until, why := tc.verdict.Hold(tc.wanted)
			if now != tc.now || until != tc.until || why != tc.why || tc.verdict.Over() != tc.over {
				t.Errorf("%d now, until %s because %q, over: %v", now, until, why, tc.verdict.Over())
			}
		})
	}
	if got := (&Verdict{InARow: 5, Reason: "OutOfcpu"}).Message(noon); got != why+"; the next pod is created at 2026-03-01T12:00:00Z" {
		t.Errorf("the message is %q", got)
	}
}

func TestHoldPlaces(t *testing.T) {
	since := noon.Add(-30 * time.Second)
	marked := func(p *corev1.Pod) { MarkSince(p, since) }
	leaving := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }
	for name, tc := range map[string]struct {
		places []Place
		since  time.Time
		next   string
		wait   time.Duration
		keeps  bool
		over   bool
		marks  bool
	}{
		"none rejected":                        {[]Place{{Pod: pod("a", 0, running)}}, time.Time{}, "", 0, false, true, false},
		"no pod yet":                           {[]Place{{}}, time.Time{}, "", 0, false, false, false},
		"one whose condition is not written":   {[]Place{{Pod: pod("a", 0, refused)}}, time.Time{}, "a", 0, true, false, false},
		"the first goes at once after that":    {[]Place{{Pod: pod("a", 0, refused)}}, since, "a", 0, false, false, true},
		"the next waits":                       {[]Place{{Pod: pod("a", 0, marked, refused)}}, since, "a", 40 * time.Second, true, false, true},
		"unless another pod is made":           {[]Place{{Pod: pod("a", 0, marked, refused), Renewed: true}}, since, "a", 0, false, false, true},
		"one that leaves is waited for":        {[]Place{{Pod: pod("a", 0, refused, leaving)}}, since, "", 0, false, false, true},
		"the one that is due first goes first": {[]Place{{Pod: pod("a", 0, marked, refused)}, {Pod: pod("b", 5*time.Second, marked, refused)}}, since, "b", 15 * time.Second, true, false, true},
		"one that was accepted ends it":        {[]Place{{Pod: pod("a", 0, marked, running)}, {}}, since, "", 0, false, true, false},
		"an empty place does not":              {[]Place{{Pod: pod("a", 0, running)}, {}}, since, "", 0, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := HoldPlaces(tc.places, tc.since)
			next, fresh := "", pod("new", 0)
			if h.Next != nil {
				next = h.Next.Name
			}
			h.Mark(fresh)
			_, marks := SinceOf(fresh)
			if next != tc.next || h.Wait(noon) != tc.wait || h.Ended() != tc.over || marks != tc.marks || (h.Message() == "") != (next == "") {
				t.Errorf("next %q after %s, over: %v, marks: %v, tells %q", next, h.Wait(noon), h.Ended(), marks, h.Message())
			}
			if h.Next != nil && (h.Keeps(h.Next, noon) != "") != tc.keeps {
				t.Errorf("keeps it: %q", h.Keeps(h.Next, noon))
			}
		})
	}
	var none *Held
	fresh := pod("new", 0)
	if none.Mark(fresh); none.Keeps(fresh, noon) != "" || none.Wait(noon) != 0 || none.Message() != "" || !none.Ended() || fresh.Annotations != nil {
		t.Error("nothing is held back for an owner that replaces all at once")
	}
}
