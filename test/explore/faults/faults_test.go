package faults

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The items of the faults that were mended once.
var mended = []string{"1", "2", "3", "8", "15", "16", "17", "19", "20", "21"}

func TestThereAreAllFaults(t *testing.T) {
	all, err := List(".")
	if err != nil {
		t.Fatal(err)
	}
	var items []string
	own := 0
	for i, f := range all {
		if want := fmt.Sprintf("%02d", i+1); f.Number() != want {
			t.Errorf("%s is not number %s", f.Name, want)
		}
		if f.Item == Own {
			own++
		} else {
			items = append(items, f.Item)
		}
	}
	if !slices.Equal(items, mended) || own != 14 {
		t.Errorf("there are the items %v and %d of our own; want %v and 14", items, own, mended)
	}
}

// A fault whose code has changed is no fault any more: its patch has to be made
// again.
func TestFaultsApplyToTheTree(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	all, err := List(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		patch, err := filepath.Abs(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		check := exec.Command("git", "apply", "--check", patch)
		check.Dir = root
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", f.Name, err, out)
		}
	}
}

func TestParse(t *testing.T) {
	const head, diff = "# fault: It is wrong: always.\n# item: own\n# family: job\n", "\ndiff --git a/x b/x\n"
	for name, tc := range map[string]struct{ content, fails string }{
		"whole":                  {head + diff, ""},
		"a line is missing":      {"# fault: a\n# item: own\n" + diff, "have to come before the diff"},
		"a line is there twice":  {head + "# item: 3\n" + diff, "odd line"},
		"a line of another kind": {head + "# author: me\n" + diff, "odd line"},
		"words without a mark":   {head + "fault: b\n" + diff, "odd line"},
		"a family of its own":    {strings.Replace(head, "job", "jobs", 1) + diff, `no family "jobs"`},
		"nothing to apply":       {head, "no diff"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := parse("x/07-a-b.patch", tc.content)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("got %v, want %q", err, tc.fails)
				}
				return
			}
			if want := (Fault{"07-a-b", "x/07-a-b.patch", "It is wrong: always.", Own, "job"}); err != nil || f != want || f.Number() != "07" {
				t.Errorf("got %+v, %v; want %+v", f, err, want)
			}
		})
	}
}
