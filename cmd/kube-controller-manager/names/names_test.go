package names

import (
	"encoding/csv"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamesAndAliasesAreThoseOfTheInterface(t *testing.T) {
	file, err := os.Open("testdata/controllers.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := csv.NewReader(file)
	lines.Comma, lines.LazyQuotes = '\t', true
	records, err := lines.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var all, off []string
	aliases := map[string]string{}
	for _, r := range records[1:] {
		all = append(all, r[0])
		if r[2] == "no" {
			off = append(off, r[0])
		}
		for _, alias := range strings.Fields(strings.ReplaceAll(r[1], ",", " ")) {
			aliases[alias] = r[0]
		}
	}
	if diff := cmp.Diff(all, All()); diff != "" {
		t.Errorf("controllers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(off, DisabledByDefault()); diff != "" {
		t.Errorf("disabled by default (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(aliases, KCMControllerAliases()); diff != "" {
		t.Errorf("aliases (-want +got):\n%s", diff)
	}
	if !slices.IsSorted(All()) || !slices.IsSorted(DisabledByDefault()) {
		t.Error("names are not sorted")
	}
}
