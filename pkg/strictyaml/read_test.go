package strictyaml

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryMistakeIsFoundWithItsLine(t *testing.T) {
	for name, tc := range map[string]struct {
		document string
		want     []Problem
	}{
		"what a configuration needs is fine": {"a: {b: [x, 'y']}\nc: 1\nd: 1.5\ne: true\nf: \"\"\n", nil},
		"JSON is YAML":                       {`{"a": {"b": ["x"], "c": 1}}`, nil},
		"a key twice":                        {"a: 1\nb: 2\na: 3\n", []Problem{{3, `duplicate field "a": line 1 has it already`}}},
		"a key twice, further in":            {"x:\n  a: 1\n  a: 1\ny:\n  a: 1\n", []Problem{{3, `duplicate field "a": line 2 has it already`}}},
		"a key that is no string":            {"1: a\n", []Problem{{1, `the name of a field must be a string: "1"`}}},
		"a value that is missing": {"a:\nb: ~\nc: null\n", []Problem{
			{1, "a value is missing: leave the field out, or give it one"},
			{2, "a value is missing: leave the field out, or give it one"},
			{3, "a value is missing: leave the field out, or give it one"}}},
		"an item that is missing": {"a:\n- b\n-\n", []Problem{{3, "a value is missing: leave the field out, or give it one"}}},
		"a date":                  {"a: 2026-01-01\n", []Problem{{1, "2026-01-01: put this value in quotes"}}},
		"an alias and its anchor": {"a: &x 1\nb: *x\n", []Problem{
			{1, "anchors (&x) are not accepted: write the value where it is used"},
			{2, "aliases (*x) are not accepted: write the value where it is used"}}},
		"a merge": {"a: {c: 1}\nb:\n  <<: {c: 2}\n", []Problem{{3, "merges (<<) are not accepted: write the fields where they are used"}}},
		"a tag":   {"a: !!str 1\n", []Problem{{1, "tags (!!str) are not accepted"}}},
		"a second document": {"a: 1\n---\nb: 2\n", []Problem{
			{2, "there must be one document only, and here begins another"}}},
		"several at once, those of a duplicate included": {"a: 1\na:\n  b:\nc:\n", []Problem{
			{2, `duplicate field "a": line 1 has it already`},
			{3, "a value is missing: leave the field out, or give it one"},
			{4, "a value is missing: leave the field out, or give it one"}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, got, err := Read([]byte(tc.document))
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%v; problems (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestWhatCannotBeReadSaysWhere(t *testing.T) {
	for name, tc := range map[string]struct {
		document string
		want     Problem
	}{
		"nothing":           {"", Problem{0, "the document is empty"}},
		"comments alone":    {"# nothing\n", Problem{0, "the document is empty"}},
		"a list":            {"# a list\n- a\n", Problem{2, "the document must be a mapping of fields"}},
		"a word":            {"word\n", Problem{1, "the document must be a mapping of fields"}},
		"a missing colon":   {"a: 1\nb: 2\nc 2\nd: 3\n", Problem{3, "not YAML: could not find expected ':'"}},
		"an open bracket":   {"a:\n- [b,", Problem{2, "not YAML: did not find expected node content"}},
		"a tab for a blank": {"a:\n\tb: 1\n", Problem{2, "not YAML: found character that cannot start any token"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, got, err := Read([]byte(tc.document))
			if diff := cmp.Diff([]Problem{tc.want}, got); diff != "" || !errors.Is(err, ErrSyntax) {
				t.Errorf("%v; problems (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	v := Value{}
	v.Put([]string{"kind"}, Text("Sample"))
	v.Put([]string{"texts", "list"}, Texts([]string{"a", "", "true", "1", "1e3", "~", "0x1f", "2026-01-01", "a: b", "- c", "#d", "'", "*", "&a", "y", "no", "a,b", " e ", "ä", "line\nline"}))
	v.Put([]string{"texts", "none"}, Value{Kind: List})
	v.Put([]string{"map", "names"}, Value{Kind: Map, Fields: []Field{{Name: "true", Value: Truth(false)}, {Name: "b,c", Value: Text("d=e")}}})
	v.Put([]string{"map", "none"}, Value{Kind: Map})
	v.Put([]string{"numbers", "int"}, Value{Kind: Int, Text: "-7"})
	v.Put([]string{"numbers", "float"}, Value{Kind: Float, Text: "1e+06"})
	v.Put([]string{"kind"}, Text("Other"))
	data, err := Write(v)
	if err != nil {
		t.Fatal(err)
	}
	got, problems, err := Read(data)
	if err != nil || len(problems) > 0 {
		t.Fatalf("%v %v of\n%s", err, problems, data)
	}
	if diff := cmp.Diff(fmt.Sprint(plain(v)), fmt.Sprint(plain(got))); diff != "" {
		t.Errorf("(-written +read):\n%s\n%s", diff, data)
	}
}

// plain is a value without lines.
func plain(v Value) Value {
	v.Line = 0
	for i := range v.Items {
		v.Items[i] = plain(v.Items[i])
	}
	for i := range v.Fields {
		v.Fields[i].Line, v.Fields[i].Value = 0, plain(v.Fields[i].Value)
	}
	return v
}
