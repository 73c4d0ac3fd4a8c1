package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const source = `package p

import "k8s.io/x"

type box[T any] struct{}

func (b *box[T]) less(n int) bool {
	if n <= 3 && n != -1 {
		return n-1 < 2
	}
	return false
}
`

func TestMutantsAreNamedByTheirCode(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "p/a.go", source)
	write(t, "found.json", `{"files":[{"file_name":"a.go","mutations":[
		{"type":"CONDITIONALS_BOUNDARY","status":"LIVED","line":8,"column":7},
		{"type":"INVERT_LOGICAL","status":"KILLED","line":8,"column":12},
		{"type":"ARITHMETIC_BASE","status":"LIVED","line":8,"column":20},
		{"type":"ARITHMETIC_BASE","status":"TIMED OUT","line":9,"column":11}]}]}`)
	var out strings.Builder
	if err := convert(&out, "p", "found.json"); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"p\ta.go\tbox.less\tARITHMETIC_BASE\tif n <= 3 && n != «-»1 {\tLIVED\t8",
		"p\ta.go\tbox.less\tARITHMETIC_BASE\treturn n«-»1 < 2\tTIMED OUT\t9",
		"p\ta.go\tbox.less\tCONDITIONALS_BOUNDARY\tif n «<=» 3 && n != -1 {\tLIVED\t8",
		"p\ta.go\tbox.less\tINVERT_LOGICAL\tif n <= 3 «&&» n != -1 {\tKILLED\t8",
	}, "\n") + "\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestTheTableCountsAndExplains(t *testing.T) {
	for name, tc := range map[string]struct {
		killed  int
		reasons string
		row     string
		remark  string
		fails   bool
	}{
		"nine of ten are enough": {killed: 9,
			row: "| p | 11 | 9 | 1 | 1 | 0 | 1 | 90.0% |", remark: "lives: p/a.go:7: f T: a «<» b"},
		"eight of nine are not": {killed: 8, fails: true,
			row: "| p | 10 | 8 | 1 | 1 | 0 | 1 | 88.9% |"},
		"what is listed lives without a remark": {killed: 9, reasons: "p\ta.go\tf\tT\ta «<» b\tthe same\n",
			row: "| p | 11 | 9 | 1 | 1 | 1 | 1 | 90.0% |"},
		"what is listed and dead is remarked": {killed: 9, reasons: "p\ta.go\tf\tT\ta «>» b\tgone\n",
			row: "| p | 11 | 9 | 1 | 1 | 0 | 1 | 90.0% |", remark: "listed, and does not live: p a.go f T a «>» b"},
		"a reason is needed": {killed: 9, reasons: "p\ta.go\tf\tT\ta «>» b\t\n", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			write(t, packages, "# comment\np\nq\n")
			write(t, survivors, tc.reasons)
			write(t, kept+"/p.tsv", strings.Repeat("p\ta.go\tf\tT\tx\tKILLED\t1\n", tc.killed)+
				"p\ta.go\tf\tT\ta «<» b\tLIVED\t7\np\ta.go\tf\tT\tx\tTIMED OUT\t1\np\ta.go\tf\tT\tx\tNOT COVERED\t1\n")
			var table, remarks strings.Builder
			if err := report(&table, &remarks); (err != nil) != tc.fails {
				t.Fatalf("error %v, wanted one: %v", err, tc.fails)
			}
			if !strings.Contains(table.String(), tc.row) || !tc.fails && !strings.Contains(table.String(), "Not measured: q\n") {
				t.Errorf("no row %q, or q missing, in\n%s", tc.row, &table)
			}
			if !strings.Contains(remarks.String(), tc.remark) || tc.remark == "" && !tc.fails && remarks.Len() > 0 {
				t.Errorf("wanted %q, got remarks %q", tc.remark, &remarks)
			}
		})
	}
}

func TestNothingMeasured(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, packages, "p\n")
	if err := report(io.Discard, io.Discard); err == nil {
		t.Error("no error without a list of survivors")
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
