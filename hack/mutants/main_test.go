package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const source = `package p

import "x/q"

type box[T any] struct{ sum int }

const two = 1 + 1

func (b *box[T]) less(n int) bool {
	if n <= 3 && n != -1 { // a comment
		return q.Minute-q.Second*two > 0
	}
	for i := range n {
		if i > 0 {
			b.sum--
		}
	}
	return "a"+"b" == "c"
}
`

const itsTest = `package p

import "testing"

func TestBox(t *testing.T) {
	var b box[string]
	if !b.less(3) || b.less(4) || b.sum != -3 {
		t.Error(b)
	}
}
`

func TestMutantsAreTriedAndNamedByTheirCode(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("GOWORK", "off")
	write(t, "go.mod", "module x\n\ngo 1.26\n")
	write(t, "q/q.go", "package q\n\ntype D int64\n\nconst Minute, Second D = 60, 1\n")
	write(t, "p/p.go", source)
	write(t, "p/p_test.go", itsTest)
	write(t, "p/doc.go", "package p\n\nfunc unseen(a int) bool { return a > 0 }\n")
	if err := mutate("p", false); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"INVERT_LOGICAL\tif n <= 3 «&&» n != -1 { // a comment\tKILLED\t10",
		"CONDITIONALS_BOUNDARY\tif n «<=» 3 && n != -1 { // a comment\tKILLED\t10",
		"CONDITIONALS_NEGATION\tif n «<=» 3 && n != -1 { // a comment\tKILLED\t10",
		"CONDITIONALS_NEGATION\tif n <= 3 && n «!=» -1 { // a comment\tKILLED\t10",
		"ARITHMETIC_BASE\tif n <= 3 && n != «-»1 { // a comment\tLIVED\t10",
		"CONDITIONALS_BOUNDARY\treturn q.Minute-q.Second*two «>» 0\tLIVED\t11",
		"CONDITIONALS_NEGATION\treturn q.Minute-q.Second*two «>» 0\tKILLED\t11",
		"ARITHMETIC_BASE\treturn q.Minute«-»q.Second*two > 0\tLIVED\t11",
		"ARITHMETIC_BASE\treturn q.Minute-q.Second«*»two > 0\tLIVED\t11",
		"CONDITIONALS_BOUNDARY\tif i «>» 0 {\tKILLED\t14",
		"CONDITIONALS_NEGATION\tif i «>» 0 {\tKILLED\t14",
		"INCREMENT_DECREMENT\tb.sum«--»\tKILLED\t15",
		"CONDITIONALS_NEGATION\treturn \"a\"+\"b\" «==» \"c\"\tKILLED\t18",
	}, "\n") + "\n"
	if got := found(t); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	write(t, "p/p_test.go", strings.Replace(itsTest, "t.Error", "t.Log", 1))
	if err := mutate("p", true); err != nil {
		t.Fatal(err)
	}
	if got := found(t); got != want {
		t.Errorf("what was killed is tried again: got\n%swant\n%s", got, want)
	}
	write(t, "p/p_test.go", itsTest+"func TestEnd(t *testing.T) { t.Error() }\n")
	if err := mutate("p", true); err == nil {
		t.Error("no error for tests that fail as they are")
	}
}

// found are the mutants of box.less as they are kept.
func found(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(keptOf("p"))
	if err != nil {
		t.Fatal(err)
	}
	_, lines, _ := strings.Cut(string(content), "\n")
	return strings.ReplaceAll(lines, "p\tp.go\tbox.less\t", "")
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
