package devicetainteviction

import (
	"slices"
	"testing"
)

func TestTheReportOfARule(t *testing.T) {
	m := newMemory()
	book := func(pod string, evicted bool, rules ...ruleID) {
		m.book(key{Namespace: "ns", Name: pod}, &appointment{rules: rules, evicted: evicted, counted: evicted})
	}
	first, second, other := ruleID{name: "r", uid: "1"}, ruleID{name: "r", uid: "2"}, ruleID{name: "other", uid: "3"}
	book("a", false, first)
	book("b", false, other)
	book("c", true, first, other)
	book("d", true, first)
	report, waiting := m.reportOf("r")
	if report.uid != "1" || report.evicted != 2 || !slices.Equal(waiting, []key{{Namespace: "ns", Name: "a"}}) {
		t.Errorf("reports %+v, and %v wait", report, waiting)
	}
	if report, _ := m.reportOf("other"); report.evicted != 1 {
		t.Errorf("the other rule reports %+v", report)
	}
	book("e", true, second)
	if report, _ := m.reportOf("r"); report.uid != "2" || report.evicted != 1 {
		t.Errorf("the rule that took the name reports %+v", report)
	}
}
