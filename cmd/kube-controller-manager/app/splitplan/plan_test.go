package splitplan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
)

// some are a few controllers: one of a cloud, one behind a gate, one that is off.
func some() []Controller {
	return []Controller{
		{Name: names.BootstrapSignerController}, {Name: names.CronJobController}, {Name: names.DeploymentController},
		{Name: names.JobController}, {Name: names.NodeLifecycleController}, {Name: names.NodeRouteController, Cloud: true},
		{Name: names.PodGroupProtectionController, Gates: []string{"GenericWorkload"}}, {Name: names.ReplicaSetController},
		{Name: names.ServiceAccountTokenController}, {Name: names.TaintEvictionController},
	}
}

func ask(theirs, move string) Request {
	split := func(value string) []string { return strings.FieldsFunc(value, func(r rune) bool { return r == ',' }) }
	line := DefaultLine()
	line.Controllers = split(theirs)
	return Request{Controllers: some(), Theirs: line, Move: split(move), Lease: "ours", Port: 10357}
}

func TestWhatEachSideRuns(t *testing.T) {
	for name, tc := range map[string]struct {
		theirs, move string
		// left and given are --controllers of the original and of ours.
		left, given string
		ourKey      bool
		warnings    []string
	}{
		"the original turns off what moves": {
			theirs: "*", move: "deployment-controller,replicaset-controller",
			left: "*,-deployment-controller,-replicaset-controller", given: "deployment-controller,replicaset-controller"},
		"an alias is as good as a name, and naming it twice changes nothing": {
			theirs: "*", move: "replicaset,deployment,deployment-controller",
			left: "*,-deployment-controller,-replicaset-controller", given: "deployment-controller,replicaset-controller"},
		"what is off by default is taken out of the list that turned it on": {
			theirs: "*,bootstrapsigner", move: "bootstrap-signer-controller",
			left: "*", given: "bootstrap-signer-controller"},
		"what is on by default and named too is turned off": {
			theirs: "cronjob,*", move: "cronjob-controller",
			left: "*,-cronjob-controller", given: "cronjob-controller"},
		"a list without a star gets shorter": {
			theirs: "cronjob,job", move: "job",
			left: "cronjob", given: "job-controller"},
		"what was off stays off": {
			theirs: "*,-cronjob", move: "job",
			left: "*,-cronjob,-job-controller", given: "job-controller"},
		"the key of tokens goes with their controller": {
			theirs: "*", move: "serviceaccount-token",
			left: "*,-serviceaccount-token-controller", given: "serviceaccount-token-controller", ourKey: true},
		"the judge of nodes goes with who evicts": {
			theirs: "*", move: "nodelifecycle,taint-eviction-controller",
			left: "*,-node-lifecycle-controller,-taint-eviction-controller", given: "node-lifecycle-controller,taint-eviction-controller"},
		"and alone, where the other does not run": {
			theirs: "*,-taint-eviction-controller", move: "nodelifecycle",
			left: "*,-taint-eviction-controller,-node-lifecycle-controller", given: "node-lifecycle-controller"},
		"what had better go together is a warning": {
			theirs: "*", move: "deployment",
			left: "*,-deployment-controller", given: "deployment-controller",
			warnings: []string{"deployment-controller moves without replicaset-controller. "}},
		"a partner behind a gate that is off is not missed": {
			theirs: "*", move: "job", left: "*,-job-controller", given: "job-controller"},
		"everything moves with the list as it was": {
			theirs: "*,bootstrapsigner", move: "all", given: "*,bootstrapsigner", ourKey: true},
		"and so it does by a star": {
			theirs: "job,cronjob", move: "*", given: "job,cronjob", ourKey: true},
		"and by all names": {
			theirs: "job,cronjob", move: "job,cronjob-controller", given: "job,cronjob", ourKey: true},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := New(ask(tc.theirs, tc.move))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(p.Theirs.Controllers, ","); got != tc.left {
				t.Errorf("the original gets %q, want %q", got, tc.left)
			}
			if got := strings.Join(p.Ours.Controllers, ","); got != tc.given {
				t.Errorf("ours gets %q, want %q", got, tc.given)
			}
			if p.Ours.NoKey == tc.ourKey || p.Theirs.NoKey != tc.ourKey {
				t.Errorf("without the key: the original %t, ours %t", p.Theirs.NoKey, p.Ours.NoKey)
			}
			if p.Whole() != (tc.left == "") {
				t.Errorf("whole: %t", p.Whole())
			}
			if len(p.Warnings) != len(tc.warnings) {
				t.Errorf("warnings %q", p.Warnings)
			}
			for i, want := range tc.warnings {
				if !strings.HasPrefix(p.Warnings[i], want) {
					t.Errorf("warned %q, want %q", p.Warnings[i], want)
				}
			}
			both(t, ask(tc.theirs, tc.move), p)
		})
	}
}

// both holds that what the original ran is run by one side and by no other, as the flags
// of both say, and that nothing else is.
func both(t *testing.T, r Request, p Plan) {
	t.Helper()
	before := r.runs(canonical(r.Theirs.Controllers))
	theirs, ours := r.runs(canonical(p.Theirs.Controllers)), r.runs(canonical(p.Ours.Controllers))
	for _, name := range theirs {
		if slices.Contains(ours, name) {
			t.Errorf("both run %s", name)
		}
	}
	after := slices.Sorted(slices.Values(slices.Concat(theirs, ours)))
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("what runs changes (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(theirs, p.Theirs.Runs); len(theirs)+len(p.Theirs.Runs) > 0 && diff != "" {
		t.Errorf("the original runs otherwise than the plan says:\n%s", diff)
	}
	if diff := cmp.Diff(ours, p.Ours.Runs); diff != "" {
		t.Errorf("ours runs otherwise than the plan says:\n%s", diff)
	}
}

func TestAPlanThatCannotBeIsRefusedWithAllItsProblems(t *testing.T) {
	for name, tc := range map[string]struct {
		request Request
		change  func(*Request)
		want    []string
	}{
		"names that nobody knows": {request: ask("*", "foo,job,bar"),
			want: []string{`--move: "foo" is not in the list of known controllers`, `--move: "bar" is not in the list of known controllers`}},
		"a minus, which belongs to the other flag": {request: ask("*", "-job"),
			want: []string{`--move: "-job" is not in the list of known controllers`}},
		"a set that must stay together": {request: ask("*", "taint-eviction-controller"),
			want: []string{"--move: taint-eviction-controller would move without node-lifecycle-controller, and they must run in one process: "}},
		"what a cloud controller manager runs": {request: ask("*", "route"),
			want: []string{`--move: "route" belongs to a cloud controller manager`}},
		"what the original does not run": {request: ask("*,-job", "bootstrapsigner,job"),
			want: []string{`--move: the original does not run "bootstrapsigner", as its --controllers=*,-job says`, `--move: the original does not run "job"`}},
		"nothing":        {request: ask("*", ""), want: []string{"--move: there is nothing to move"}},
		"all of nothing": {request: ask("", "all"), want: []string{"--move: there is nothing to move"}},
		"a value of the original that it would refuse": {request: ask("*,-foo", "job"),
			want: []string{`--controllers of the original: "foo" is not in the list of known controllers`}},
		"the lease and the port of the original": {request: ask("*", "job"),
			change: func(r *Request) { r.Lease, r.Port = r.Theirs.Lease, r.Theirs.Port },
			want:   []string{"--leader-elect-resource-name=kube-controller-manager: the original has this lease", "--secure-port=10257: the original listens there"}},
		"a lease and a port that cannot be, and a name": {request: ask("*", "foo"),
			change: func(r *Request) { r.Lease, r.Port = "A_B", 70000 },
			want:   []string{`--move: "foo"`, `--leader-elect-resource-name="A_B": `, "--secure-port=70000: "}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.change != nil {
				tc.change(&tc.request)
			}
			_, err := New(tc.request)
			if err == nil {
				t.Fatal("it was not refused")
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tc.want) {
				t.Fatalf("%d problems:\n%s", len(lines), err)
			}
			for i, want := range tc.want {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("said %q, want %q", lines[i], want)
				}
			}
		})
	}
}

func TestEveryControllerMovesByItselfOrIsNamedWithItsPartners(t *testing.T) {
	var rows []Controller
	for _, name := range names.All() {
		rows = append(rows, Controller{Name: name})
	}
	for _, row := range rows {
		r := ask("*,bootstrapsigner,tokencleaner,selinux-warning-controller", row.Name)
		r.Controllers = rows
		p, err := New(r)
		torn := false
		for _, g := range moves[row.Name].with {
			torn = torn || g.must
		}
		switch {
		case torn != (err != nil):
			t.Errorf("%s: %v", row.Name, err)
		case err == nil:
			if (len(moves[row.Name].with) > 0) != (len(p.Warnings) > 0) {
				t.Errorf("%s: warnings %q", row.Name, p.Warnings)
			}
			both(t, r, p)
		}
	}
}

func TestAGroupHasMembersAndAReason(t *testing.T) {
	shown := allGroups()
	for name, m := range moves {
		for _, g := range m.with {
			if !slices.Contains(shown, g) {
				t.Errorf("a group of %s is not shown", name)
			}
		}
	}
	for _, g := range shown {
		if members := g.in(names.All()); len(members) < 2 || g.why == "" {
			t.Errorf("%v: %q", members, g.why)
		}
	}
}
