package explore

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// TestFields shows how often the objects of a family have each field once the API
// server has been asked what it admits: with -families=NAME -seeds=200 -v.
func TestFields(t *testing.T) {
	if *familiesFlag == "" {
		return
	}
	tools, err := harness.FindTools()
	if err != nil {
		t.Fatal(err)
	}
	pair := NewPair(t, tools.ReferenceManager, tools.ReferenceManager)
	schemas, err := ReadSchemas(pair.stages[0].Admin())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range chosen(t) {
		drawn, left := map[string]int{}, map[string]int{}
		for seed := range *seedsFlag {
			script := f.Script(schemas, *seedFlag+seed)
			fieldsOf(script, drawn)
			pair.Mend(t.Context(), script)
			fieldsOf(script, left)
		}
		var lines []string
		for field, n := range drawn {
			lines = append(lines, fmt.Sprintf("%s: %d of %d", field, left[field], n))
		}
		slices.Sort(lines)
		t.Logf("%s:\n%s", f.Name, strings.Join(lines, "\n"))
	}
}

// fieldsOf counts the fields of the objects, four steps deep.
func fieldsOf(s *Script, into map[string]int) {
	var walk func(at any, path string, depth int)
	walk = func(at any, path string, depth int) {
		o, _ := at.(map[string]any)
		for name, value := range o {
			into[path+"."+name]++
			if depth < 4 {
				walk(value, path+"."+name, depth+1)
			}
		}
	}
	for _, o := range s.Objects {
		kind, _ := o["kind"].(string)
		walk(o["spec"], kind, 0)
	}
}
