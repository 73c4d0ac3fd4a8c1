package explore

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
)

func TestAScriptIsReadBack(t *testing.T) {
	s := &Script{Family: "deployment", Seed: 3, Head: []string{"apiserver " + serves, "start deployment-controller"},
		Steps:   []string{"apply web.yaml", "scale deployments/web 2\npass 1s\nwithin 9s expect deployments/web .spec.replicas == 2", "restart"},
		Objects: map[string]Object{"web.yaml": {"kind": "Deployment", "spec": map[string]any{"replicas": 1.0}}, "unused.yaml": {}}}
	path := filepath.Join(t.TempDir(), "deployment-3.txtar")
	if err := os.WriteFile(path, []byte(s.Text("what it shows")), 0o600); err != nil {
		t.Fatal(err)
	}
	back, err := ReadScript(path)
	if err != nil {
		t.Fatal(err)
	}
	delete(s.Objects, "unused.yaml")
	s.Family, s.Seed = "deployment-3", 0
	if diff := cmp.Diff(s, back); diff != "" {
		t.Error(diff)
	}
}

func TestAFileOfSeveralObjectsIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deployment-a.txtar")
	if err := os.WriteFile(path, []byte("# two\nstart x\napply web.yaml\n-- web.yaml --\nkind: A\n---\nkind: B\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadScript(path); err == nil || !strings.Contains(err.Error(), "web.yaml has more than one object") {
		t.Errorf("got %v", err)
	}
}

func TestAScriptIsJudgedByTheStepsThatWerePlayed(t *testing.T) {
	s := &Script{Steps: []string{"apply a", "apply b", "pass 1s", "restart"}}
	if diff := cmp.Diff([]string{"apply a", "pass 1s"}, s.played(&Outcome{At: 2, Refused: []int{1}}).Steps); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(s.Steps[1:], s.played(&Outcome{At: 4, Refused: []int{0}}).Steps); diff != "" {
		t.Errorf("at the end: %s", diff)
	}
}

func TestOnlyConflictsThatPassWithADriverAreExplained(t *testing.T) {
	const policy, label = `Pod q: Normal SELinuxChangePolicyConflict: SELinuxChangePolicy "Recursive" conflicts with pod r that uses the same volume as this pod with SELinuxChangePolicy "MountOption". If`,
		`Pod r: Normal SELinuxLabelConflict: SELinuxLabel "u:r:a_t:s0" conflicts with pod q that uses the same volume as this pod with SELinuxLabel "". If`
	for name, tc := range map[string]struct {
		subject string
		more    bool
		steps   []string
		want    bool
	}{
		"a policy":            {policy, false, []string{"apply driver.yaml", `patch csidrivers/x {"spec":{"seLinuxMount":false}}`}, true},
		"a label":             {label, false, []string{"apply p.yaml", "apply driver.yaml"}, true},
		"more with ours":      {policy, true, []string{"apply p.yaml", "apply driver.yaml"}, false},
		"two labels":          {strings.Replace(label, `""`, `":::s0"`, 1), false, []string{"apply p.yaml", "apply driver.yaml"}, false},
		"no driver changes":   {policy, false, []string{"apply driver.yaml", "apply p.yaml"}, false},
		"two mount it as one": {strings.Replace(policy, "Recursive", "MountOption", 1), false, []string{"apply p.yaml", "apply driver.yaml"}, false},
	} {
		finding := &compare.Finding{Kind: compare.KindEvent, Subject: tc.subject, More: tc.more}
		if got := passesWithADriver(&Script{Steps: tc.steps}, nil, finding) != ""; got != tc.want {
			t.Errorf("%s: explained: %t", name, got)
		}
	}
}

func TestFewerKeepsWhatIsNeeded(t *testing.T) {
	for _, needed := range [][]int{{}, {0}, {6}, {2, 5}, {0, 1, 2, 3, 4, 5, 6}} {
		plays := 0
		got := fewer([]int{0, 1, 2, 3, 4, 5, 6}, func(list []int) bool {
			plays++
			return !slices.ContainsFunc(needed, func(n int) bool { return !slices.Contains(list, n) })
		})
		if !slices.Equal(got, needed) || plays > 40 {
			t.Errorf("of what is needed, %v, there is %v after %d plays", needed, got, plays)
		}
	}
}

func TestOnlyTheNamedFieldsStay(t *testing.T) {
	o := Object{"kind": "Job", "metadata": Object{"name": "j", "labels": Object{"a": "b"}},
		"spec": Object{"parallelism": 2, "template": Object{"spec": Object{"containers": []any{}, "hostname": "h"}}}}
	want := [][]string{{"metadata", "labels"}, {"spec", "parallelism"}, {"spec", "template", "spec", "hostname"}}
	if diff := cmp.Diff(want, optional(o)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([][]string{{"spec", "parallelism"}}, optional(only(o, want[1:2]))); diff != "" {
		t.Error(diff)
	}
}

func TestPruneTakesOutWhatIsInvalid(t *testing.T) {
	invalid := func(errs ...*field.Error) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "j", errs)
	}
	spec := field.NewPath("spec")
	for _, test := range []struct {
		name string
		err  error
		want Object
	}{
		{"a field", invalid(field.Invalid(spec.Child("minReadySeconds"), 1, "")), Object{"strategy": Object{"type": "x"}}},
		{"in a list", invalid(field.Invalid(spec.Child("strategy").Child("type").Index(2), 1, "")), Object{"minReadySeconds": 1, "strategy": Object{}}},
		{"missing below", invalid(field.Required(spec.Child("strategy").Child("rolling"), "")), Object{"minReadySeconds": 1}},
		{"not there", invalid(field.Invalid(spec.Child("x"), 1, "")), Object{"minReadySeconds": 1, "strategy": Object{"type": "x"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := Object{"spec": Object{"minReadySeconds": 1, "strategy": Object{"type": "x"}}}
			if removed := prune(o, test.err); removed == (test.name == "not there") {
				t.Errorf("removed something: %v", removed)
			}
			if diff := cmp.Diff(test.want, o["spec"]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRemoveAtGoesThroughLists(t *testing.T) {
	o := Object{"spec": Object{"containers": []any{Object{"name": "c", "tty": true}}}}
	for field, removed := range map[string]bool{"spec.containers[0].tty": true, "spec.containers[1].tty": false, "spec.containers[0]": false, "spec.other": false} {
		if got := removeAt(o, fieldPath(field)); got != removed {
			t.Errorf("%s: removed %v, want %v", field, got, removed)
		}
	}
	if text := jsonOf(o); text != `{"spec":{"containers":[{"name":"c"}]}}` {
		t.Errorf("left %s", text)
	}
}
