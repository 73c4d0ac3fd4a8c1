package splitplan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	genericapp "k8s.io/controller-manager/app"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
)

// all are the words for every controller that the original runs.
var all = []string{"all", "*"}

// Controller is a row of the table of controllers, as far as a split depends on it.
type Controller struct {
	Name string
	// Cloud marks one that the original knows by name only.
	Cloud bool
	// Gates are feature gates that it needs and that are off by default.
	Gates []string
}

// Request is what is asked for.
type Request struct {
	// Controllers are all that there are.
	Controllers []Controller
	// Theirs is how the original runs when nothing has moved.
	Theirs Line
	// Move names the controllers that ours is to run, all of them and not those in addition,
	// by name or alias; or all of them with "all".
	Move []string
	// Lease and Port are those of ours.
	Lease string
	Port  int
}

// Line is what of a command line a split depends on.
type Line struct {
	// Controllers is --controllers.
	Controllers []string
	Lease       string
	Port        int
}

// Plan is what each of two managers runs.
type Plan struct {
	Theirs, Ours Side
	// Moved are the controllers that move, sorted.
	Moved []string
	// Warnings is what may be as asked for, and had better not be: sentences.
	Warnings []string

	controllers []Controller
}

// Side is one of the two managers.
type Side struct {
	Line
	// Runs are the controllers that --controllers enables, sorted.
	Runs []string
	// NoKey: it must not have the key that signs tokens.
	NoKey bool
}

// Whole reports whether ours runs everything, so that the original has to be stopped.
func (p Plan) Whole() bool { return len(p.Theirs.Runs) == 0 }

// New returns the plan, or all that is wrong with the request.
func New(r Request) (Plan, error) {
	var problems []error
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	before := canonical(r.Theirs.Controllers)
	for i, entry := range before {
		if name := strings.TrimPrefix(entry, "-"); entry != "*" && !known(name) {
			wrong("--controllers of the original: %q is not in the list of known controllers", strings.TrimPrefix(r.Theirs.Controllers[i], "-"))
		}
	}
	runs := r.runs(before)
	moved := r.moved(runs, wrong)
	r.check(wrong)
	var warnings []string
	for _, g := range allGroups() {
		members := g.in(r.startable(runs))
		going, staying := partition(members, moved)
		switch {
		case len(going) == 0 || len(staying) == 0:
		case g.must:
			wrong("--move: %s would move without %s, and they must run in one process: %s. Name all of them, or none", list(going), list(staying), g.why)
		default:
			warnings = append(warnings, fmt.Sprintf("%s moves without %s. Better move them together: %s.", list(going), list(staying), g.why))
		}
	}
	if len(problems) > 0 {
		return Plan{}, errors.Join(problems...)
	}
	return r.plan(runs, moved, warnings), nil
}

// plan makes the command lines of both from what has been checked.
func (r Request) plan(runs, moved []string, warnings []string) Plan {
	_, stay := partition(runs, moved)
	p := Plan{
		Theirs: Side{Line: r.Theirs, Runs: stay}, Ours: Side{Line: Line{Lease: r.Lease, Port: r.Port}, Runs: moved},
		Moved: moved, Warnings: warnings, controllers: r.Controllers,
	}
	signs := p.Whole() || slices.Contains(moved, names.ServiceAccountTokenController)
	p.Ours.NoKey, p.Theirs.NoKey = !signs, signs
	if p.Whole() {
		p.Ours.Controllers, p.Theirs.Controllers = r.Theirs.Controllers, nil
		return p
	}
	p.Ours.Controllers, p.Theirs.Controllers = moved, r.without(moved)
	return p
}

// without is --controllers of the original when these have moved. The first entry that
// names a controller counts, so one that enables it has to go.
func (r Request) without(moved []string) []string {
	var kept []string
	for i, entry := range canonical(r.Theirs.Controllers) {
		if !slices.Contains(moved, entry) {
			kept = append(kept, r.Theirs.Controllers[i])
		}
	}
	for _, name := range moved {
		if enabled(name, canonical(kept)) {
			kept = append(kept, "-"+name)
		}
	}
	return kept
}

// runs are the controllers that a value of --controllers enables in the original, sorted.
func (r Request) runs(value []string) []string {
	var found []string
	for _, c := range r.Controllers {
		if !c.Cloud && enabled(c.Name, value) {
			found = append(found, c.Name)
		}
	}
	slices.Sort(found)
	return found
}

// startable are those of the names that start without a feature gate that is off by default.
func (r Request) startable(of []string) []string {
	var found []string
	for _, c := range r.Controllers {
		if len(c.Gates) == 0 && slices.Contains(of, c.Name) {
			found = append(found, c.Name)
		}
	}
	slices.Sort(found)
	return found
}

// moved are the controllers that --move names, sorted and each once.
func (r Request) moved(runs []string, wrong func(string, ...any)) []string {
	found := sets.New[string]()
	for i, name := range canonical(r.Move) {
		given := r.Move[i]
		at := slices.IndexFunc(r.Controllers, func(c Controller) bool { return c.Name == name })
		switch {
		case slices.Contains(all, name):
			found.Insert(runs...)
		case at < 0:
			wrong("--move: %q is not in the list of known controllers", given)
		case r.Controllers[at].Cloud:
			wrong("--move: %q belongs to a cloud controller manager; the original has nothing to move", given)
		case !slices.Contains(runs, name):
			wrong("--move: the original does not run %q, as its --controllers=%s says; to have it run, enable it there first", given, strings.Join(r.Theirs.Controllers, ","))
		default:
			found.Insert(name)
		}
	}
	if len(r.Move) == 0 || len(runs) == 0 {
		wrong("--move: there is nothing to move")
	}
	return sets.List(found)
}

// check looks at what has to differ between the two.
func (r Request) check(wrong func(string, ...any)) {
	for _, problem := range validation.IsDNS1123Subdomain(r.Lease) {
		wrong("--leader-elect-resource-name=%q: %s", r.Lease, problem)
	}
	for _, problem := range validation.IsValidPortNum(r.Port) {
		wrong("--secure-port=%d: %s", r.Port, problem)
	}
	if r.Lease == r.Theirs.Lease {
		wrong("--leader-elect-resource-name=%s: the original has this lease; only one of two that share a lease works", r.Lease)
	}
	if r.Port == r.Theirs.Port {
		wrong("--secure-port=%d: the original listens there", r.Port)
	}
}

func enabled(name string, value []string) bool {
	return genericapp.IsControllerEnabled(name, sets.NewString(names.DisabledByDefault()...), value)
}

func known(name string) bool { return slices.Contains(names.All(), name) }

// canonical replaces aliases, also after a minus.
func canonical(entries []string) []string {
	return names.Canonical(entries, names.KCMControllerAliases())
}

// partition sorts names into those that are moved and those that are not.
func partition(of, moved []string) (in, out []string) {
	for _, name := range of {
		if slices.Contains(moved, name) {
			in = append(in, name)
		} else {
			out = append(out, name)
		}
	}
	return in, out
}

// list joins names for a sentence.
func list(of []string) string {
	if len(of) < 2 {
		return strings.Join(of, "")
	}
	return strings.Join(of[:len(of)-1], ", ") + " and " + of[len(of)-1]
}
