package main

import (
	"fmt"
	"slices"
	"testing"
)

func TestEveryDifferenceNamesATest(t *testing.T) {
	t.Chdir("testdata/differences")
	var findings []string
	found := func(format string, args ...any) { findings = append(findings, fmt.Sprintf(format, args...)) }
	differences(load(found), found)
	want := []string{
		"docs/differences.md:7: there is no test web.TestGone",
		"docs/differences.md:8: there is no test store.TestRows",
		"docs/differences.md:9: there is no test web.TestRows/a row without",
		"docs/differences.md:10: there is no test web-gone",
		"docs/differences.md:11: there is no test web.TestMethod",
		"docs/differences.md:12: there is no test data.TestData",
		"docs/differences.md:13: there is no test web.Rows",
		"docs/differences.md:14: names no test; name one, or say none",
		"docs/differences.md:15: names no test; name one, or say none",
		"docs/differences.md:16: 5 columns in a table of 4",
		`docs/differences.md:22: the last column of a table is "why"; it names the test`,
	}
	if !slices.Equal(findings, want) {
		t.Errorf("found\n%q\nwant\n%q", findings, want)
	}
}
