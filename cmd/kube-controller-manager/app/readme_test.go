package app

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/component-base/featuregate"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
)

// A row of the README's table of controllers, and the gate that it names.
var (
	readmeRow  = regexp.MustCompile(`(?m)^\| ([a-z0-9-]+-controller) \| (.*) \|$`)
	gatedInRow = regexp.MustCompile("^\\*\\*works\\*\\* with the gate `(\\w+)`:")
)

// TestTheReadmeListsTheControllers holds the README's table against the table of this package:
// which controllers there are, and which of them do not run by default.
func TestTheReadmeListsTheControllers(t *testing.T) {
	text, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed, registered []string
	for _, c := range Controllers() {
		registered = append(registered, c.Name)
	}
	slices.Sort(registered)
	for _, found := range readmeRow.FindAllStringSubmatch(string(text), -1) {
		name, says := found[1], found[2]
		listed = append(listed, name)
		gate := ""
		if m := gatedInRow.FindStringSubmatch(says); m != nil {
			gate = m[1]
		}
		of := row(name)
		if gate != "" && !slices.Contains(of.Gates, featuregate.Feature(gate)) || (gate != "") != slices.Contains(offByDefault, name) {
			t.Errorf("%s: the README says the gate %q, it has %v", name, gate, of.Gates)
		}
		if strings.Contains(says, "off by default") != slices.Contains(names.DisabledByDefault(), name) {
			t.Errorf("%s: the README says %q", name, says)
		}
		if strings.Contains(says, "skipped as in the original") != of.Cloud {
			t.Errorf("%s: the README says %q, it is of a cloud: %t", name, says, of.Cloud)
		}
	}
	if !slices.Equal(listed, registered) {
		t.Errorf("the README lists\n%q\nthere are\n%q", listed, registered)
	}
}
