package options

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/kube-kcm/kube-controller-manager/pkg/release"
	"github.com/kube-kcm/kube-controller-manager/test/badinput"
)

// messages are the problems in an error.
func messages(err error) []string {
	var several utilerrors.Aggregate
	if err == nil {
		return nil
	}
	if !errors.As(err, &several) {
		return []string{err.Error()}
	}
	var all []string
	for _, err := range utilerrors.Flatten(several).Errors() {
		if !slices.Contains(all, err.Error()) { // the library reports some twice
			all = append(all, err.Error())
		}
	}
	return all
}

func TestEveryMistakeInAFileIsNamedWithItsLine(t *testing.T) {
	for name, tc := range map[string]struct {
		file string // after the head, which has two lines
		want []string
	}{
		"nothing is set": {"", nil},
		"a misspelled field": {"generic:\n  controlers: ['*']\n",
			[]string{"kcm.yaml:4: generic.controlers: there is no such field: is generic.controllers meant?"}},
		"a misspelled part of the file": {"genric:\n  controllers: ['*']\n",
			[]string{"kcm.yaml:3: genric: there is no such field: is generic meant?"}},
		"a field in another case": {"Generic:\n  controllers: ['*']\n",
			[]string{"kcm.yaml:3: Generic: there is no such field: is generic meant?"}},
		"a field in the wrong part": {"generic:\n  concurrentJobSyncs: 3\n",
			[]string{"kcm.yaml:4: generic.concurrentJobSyncs: there is no such field: is jobController.concurrentJobSyncs meant?"}},
		"a flag": {"concurrent-job-syncs: 3\n--concurrent_gc_syncs: 3\n",
			[]string{"kcm.yaml:3: concurrent-job-syncs: there is no such field: is jobController.concurrentJobSyncs meant?",
				"kcm.yaml:4: --concurrent_gc_syncs: there is no such field: is garbageCollectorController.concurrentGCSyncs meant?"}},
		"a field that nobody knows": {"zebra: 1\n", []string{"kcm.yaml:3: zebra: there is no such field"}},
		"the leader migration inline": {"generic:\n  leaderMigration: {leaderName: x}\n",
			[]string{"kcm.yaml:4: generic.leaderMigration: there is no such field: is generic.leaderMigrationConfig meant?"}},
		"a field twice": {"jobController:\n  concurrentJobSyncs: 3\n  concurrentJobSyncs: 4\n",
			[]string{`kcm.yaml:5: duplicate field "concurrentJobSyncs": line 4 has it already`}},
		"a period without a unit": {"generic:\n  minResyncPeriod: 12\n",
			[]string{`kcm.yaml:4: generic.minResyncPeriod: 12: time: missing unit in duration "12"`}},
		"a period with a unit that is none": {"generic:\n  minResyncPeriod: 12d\n",
			[]string{`kcm.yaml:4: generic.minResyncPeriod: "12d": time: unknown unit "d" in duration "12d"`}},
		"a size with a unit that is none": {"logging:\n  options:\n    json: {infoBufferSize: 1Kx}\n",
			[]string{`kcm.yaml:5: logging.options.json.infoBufferSize: "1Kx": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`}},
		"a number that is too large": {"jobController: {concurrentJobSyncs: 3000000000}\n",
			[]string{`kcm.yaml:3: jobController.concurrentJobSyncs: 3000000000: strconv.ParseInt: parsing "3000000000": value out of range`}},
		"values of other kinds": {"jobController: {concurrentJobSyncs: '3'}\nkubeCloudShared: {clusterName: 7, allocateNodeCIDRs: 'yes'}\ngeneric: {controllers: job, leaderElection: true}\nfeatureGates: {HPAScaleToZero: 'true'}\nmetrics: {disabledMetrics: [1]}\n",
			[]string{
				`kcm.yaml:3: jobController.concurrentJobSyncs: want a whole number, got a string ("3")`,
				"kcm.yaml:4: kubeCloudShared.clusterName: want a string, got a whole number (7): put it in quotes",
				`kcm.yaml:4: kubeCloudShared.allocateNodeCIDRs: want true or false, got a string ("yes")`,
				`kcm.yaml:5: generic.controllers: want a list, got a string ("job")`,
				"kcm.yaml:5: generic.leaderElection: want a mapping of fields, got true or false (true)",
				`kcm.yaml:6: featureGates: want true or false, got a string ("true")`,
				"kcm.yaml:7: metrics.disabledMetrics: want a string, got a whole number (1): put it in quotes",
			}},
		"a value that is missing": {"jobController:\n  concurrentJobSyncs:\n",
			[]string{"kcm.yaml:4: a value is missing: leave the field out, or give it one"}},
		"an item that the flag refuses": {"secureServing:\n  tlsSNICertKeys:\n  - a,b\n  - c\n",
			[]string{`kcm.yaml:6: secureServing.tlsSNICertKeys: "c": expected comma separated certificate and key file paths`}},
		"a gate that is none by its name": {"featureGates: {'A=true,B': true}\n", []string{`kcm.yaml:3: featureGates: "A=true,B" cannot be a name`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := withFile(t, head+tc.file)
			if diff := cmp.Diff(tc.want, messages(err)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFileOfAnotherKindIsUnreadable(t *testing.T) {
	for name, tc := range map[string]struct {
		file string
		want []string
	}{
		"a version from the future": {"apiVersion: kube-kcm.github.io/v2\nkind: KubeControllerManagerConfiguration\nzebra: 1\n",
			[]string{`kcm.yaml:1: apiVersion "kube-kcm.github.io/v2" is not one that ` + release.Version() + ` reads; it reads kube-kcm.github.io/v1alpha1. A file for a later release needs that release`}},
		"the group of the published type": {"apiVersion: kubecontrollermanager.config.k8s.io/v1alpha1\nkind: KubeControllerManagerConfiguration\n",
			[]string{`kcm.yaml:1: apiVersion: want kube-kcm.github.io/v1alpha1, got "kubecontrollermanager.config.k8s.io/v1alpha1"`}},
		"something else": {"apiVersion: v1\nkind: Pod\n",
			[]string{`kcm.yaml:1: apiVersion: want kube-kcm.github.io/v1alpha1, got "v1"`, `kcm.yaml:2: kind: want KubeControllerManagerConfiguration, got "Pod"`}},
		"no YAML":  {"a: [\n", []string{"kcm.yaml:1: not YAML: did not find expected node content"}},
		"an empty": {"", []string{"kcm.yaml:1: the document is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := withFile(t, tc.file)
			if diff := cmp.Diff(tc.want, messages(err)); diff != "" || !errors.Is(err, ErrUnreadable) {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
	_, err := withFile(t, "zebra: 1\n")
	want := []string{
		"kcm.yaml:1: apiVersion is missing: want kube-kcm.github.io/v1alpha1",
		"kcm.yaml:1: kind is missing: want KubeControllerManagerConfiguration",
		"kcm.yaml:1: zebra: there is no such field",
	}
	if diff := cmp.Diff(want, messages(err)); diff != "" || errors.Is(err, ErrUnreadable) {
		t.Errorf("without a version: %v (-want +got):\n%s", err, diff)
	}
}

func TestWhatTheFileSetsIsCheckedWithItsLine(t *testing.T) {
	t.Chdir(sampleFiles(t))
	c, err := withFile(t, head+`generic:
  clientConnection: {kubeconfig: dead.yaml}
  controllers:
  - "*"
  - foo
jobController:
  concurrentJobSyncs: 0
featureGates:
  HPAScaleToZero: true
  NoSuchGate: true
metrics:
  allowListMapping:
    "a,b": c
    nolabel: d
logging: {format: xml}
`, "--concurrent-gc-syncs=-1")
	if err != nil {
		t.Fatal(err)
	}
	got := messages(c.Located(c.checked()))
	for _, want := range []string{
		`kcm.yaml:12: featureGates: unrecognized feature gate: NoSuchGate`,
		`kcm.yaml:7: generic.controllers: --controllers: "foo" is not in the list of known controllers`,
		"concurrent-gc-syncs must be greater than 0, but got -1", // a flag: there is no line
		"kcm.yaml:9: jobController.concurrentJobSyncs: concurrent-job-syncs must be greater than 0, but got 0",
		"kcm.yaml:14: metrics.allowListMapping: metrics.allowListMapping: Invalid value: ",
		`kcm.yaml:17: logging.format: format: Invalid value: "xml": Unsupported log format`,
	} {
		found := false
		for _, message := range got {
			found = found || strings.HasPrefix(message, want)
		}
		if !found {
			t.Errorf("%q is missing in\n%s", want, strings.Join(got, "\n"))
		}
	}
	if len(got) != 6 {
		t.Errorf("%d problems, want 6:\n%s", len(got), strings.Join(got, "\n"))
	}
}

// TestEveryBadInputIsNamedInAFile gives what is wrong on a command line in a file.
func TestEveryBadInputIsNamedInAFile(t *testing.T) {
	rows, err := badinput.Rows()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(sampleFiles(t))
	line := regexp.MustCompile(`^kcm\.yaml:\d+: [A-Za-z.0-9]+: `)
	tried := 0
	for _, r := range rows {
		if r.When != "check" || strings.Contains(r.CommandLine, "HPAScaleToZero") && strings.Contains(r.Message, "missing bool") {
			continue // a gate without a value cannot be written
		}
		if r.CommandLine == "--config=foo" || r.CommandLine == "--allocate-node-cidrs" {
			continue // what is wrong is not in the file
		}
		tried++
		t.Run(r.CommandLine, func(t *testing.T) {
			before, err := parsed(t, r.Args()...)
			if err != nil {
				t.Fatal(err)
			}
			_, file := written(t, true, append([]string{"--kubeconfig=dead.yaml"}, r.Args()...)...)
			c, err := withFile(t, file)
			if err != nil && !strings.Contains(r.CommandLine, "AllAlpha=maybe") {
				t.Fatalf("%v in\n%s", err, file)
			}
			for _, message := range messages(utilerrors.NewAggregate([]error{err, c.Located(c.checked())})) {
				if !line.MatchString(message) && !strings.HasPrefix(message, "kcm.yaml:") {
					t.Errorf("%q has no line in\n%s", message, file)
				}
			}
			if want, got := fmt.Sprint(before.checked()), fmt.Sprint(c.checked()); err == nil && want != got {
				t.Errorf("by flags: %s\nby the file: %s", want, got)
			}
		})
	}
	if tried < 100 {
		t.Errorf("only %d command lines were tried", tried)
	}
}
