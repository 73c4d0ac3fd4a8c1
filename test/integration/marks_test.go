package integration

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const (
	// mark is in each value of the Secrets of the test, and nowhere else.
	mark = "hushhush"
	// open is in names and in a flag: a search that does not find it looks at nothing.
	open = "openopen"
)

// forms are how a text may show up: as it is, within base64 that begins anywhere, in hex,
// and as Go prints bytes.
func forms(text string) []string {
	all := []string{text, hex.EncodeToString([]byte(text)), strings.ToUpper(hex.EncodeToString([]byte(text))),
		strings.Trim(fmt.Sprint([]byte(text)), "[]"), strings.Trim(fmt.Sprintf("%#v", []byte(text)), "[]byte{}")}
	for before := range 3 {
		encoded := base64.StdEncoding.EncodeToString(append(make([]byte, before), text...))
		all = append(all, encoded[(before*8+5)/6:(before+len(text))*8/6])
	}
	return all
}

// shows reports whether a text is in what was read, in some form.
func shows(in, text string) bool {
	return slices.ContainsFunc(forms(text), func(form string) bool { return strings.Contains(in, form) })
}

func TestAMarkIsFoundInEveryForm(t *testing.T) {
	for _, before := range []string{"", "a", "ab", "abc"} {
		value := []byte(before + mark + "and more")
		for _, in := range []string{string(value), base64.StdEncoding.EncodeToString(value), hex.EncodeToString(value),
			fmt.Sprint(value), fmt.Sprintf("%#v", value), fmt.Sprintf("%X", value), fmt.Sprintf("%q", value)} {
			if !shows(in, mark) {
				t.Errorf("not found in %s", in)
			}
		}
	}
	if shows("hush, hush", mark) {
		t.Error("found where it is not")
	}
}

// marked is a value that no other Secret has. It can stand for the secret of a bootstrap token.
func marked(n int) string { return fmt.Sprintf("%s%08d", mark, n) }

// around is what stands beside the first value in a text.
func around(text, value string) string {
	for _, form := range forms(value) {
		if at := strings.Index(text, form); at >= 0 {
			return text[max(0, at-300):min(len(text), at+100)]
		}
	}
	return ""
}
