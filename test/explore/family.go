package explore

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// Family is a kind of scripts: what runs, what there is, and what may happen.
type Family struct {
	Name string
	// Start are the controllers that run, Flags further flags of the manager.
	Start, Flags []string
	// Compared are the resources that are compared after each step; all are at the end.
	Compared []string
	// Quiet is how long the controllers write nothing when they are at rest; zero
	// is half a second. A controller that gathers work for longer needs more.
	Quiet time.Duration
	// Fresh gives each script a manager of its own: one that remembers what is gone for
	// minutes would go on about the script before.
	Fresh bool
	// Begin draws the objects, and the steps that apply them.
	Begin func(*Draw, *Script)
	// Moves are what may happen then.
	Moves []Move
	// Leave reports whether a step has no sense after those before it, because what
	// both do then is known to differ.
	Leave func(s *Script, before []string, step string) bool
	// Explains returns the fault of the reference that a finding comes from, by the script and by
	// what the reference asked for; "" if there is none.
	Explains func(*Script, []harness.AuditEvent, *compare.Finding) string
}

// Move is a kind of step.
type Move struct {
	// Weight is how often it is drawn, beside others.
	Weight int
	// Draw returns the lines; none if the move has no sense in this script.
	Draw func(*Draw, *Script) []string
}

// families are all, by name.
var families = map[string]*Family{}

func register(f *Family) {
	if f.Quiet == 0 {
		f.Quiet = 500 * time.Millisecond
	}
	families[f.Name] = f
}

// Families returns the named families, or all without a name.
func Families(names ...string) ([]*Family, error) {
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(families))
	}
	chosen := make([]*Family, 0, len(names))
	for _, name := range names {
		if families[name] == nil {
			return nil, fmt.Errorf("there is no family %q; there are %s", name, strings.Join(slices.Sorted(maps.Keys(families)), ", "))
		}
		chosen = append(chosen, families[name])
	}
	return chosen, nil
}

// viaProxy is the line that all scripts have, so that those of a family share a
// manager. A story that needs no proxy is written without it.
const viaProxy = "proxy"

// spare is how many times as many steps are drawn as are played: many are refused.
const spare = 3

// Script draws the script of a seed.
func (f *Family) Script(schemas *Schemas, seed int) *Script {
	d := NewDraw(schemas, seed)
	s := &Script{Family: f.Name, Seed: seed, Objects: map[string]Object{}}
	if len(f.Flags) > 0 {
		s.Head = append(s.Head, "flags "+strings.Join(f.Flags, " "))
	}
	s.Head = append(s.Head, "start "+strings.Join(f.Start, " "), viaProxy)
	f.Begin(d, s)
	s.Most = len(s.Steps) + d.Int(5, 20)
	for len(s.Steps) < spare*s.Most {
		s.Steps = append(s.Steps, f.move(d)(d, s)...)
	}
	if f.Leave != nil {
		var kept []string
		for _, step := range s.Steps {
			if !f.Leave(s, kept, step) {
				kept = append(kept, step)
			}
		}
		s.Steps = kept
	}
	return s
}

func (f *Family) move(d *Draw) func(*Draw, *Script) []string {
	total := 0
	for _, m := range f.Moves {
		total += m.Weight
	}
	at := d.Int(1, total)
	for _, m := range f.Moves {
		if at -= m.Weight; at <= 0 {
			return m.Draw
		}
	}
	panic("a family without moves")
}

// Add puts an object into the script, and a step that applies it.
func (s *Script) Add(file string, o Object) {
	s.Objects[file] = o
	s.Steps = append(s.Steps, "apply "+file)
}

// Kind is what an object is one of.
func Kind(o Object) schema.GroupVersionKind {
	version, _ := o["apiVersion"].(string)
	kind, _ := o["kind"].(string)
	return schema.FromAPIVersionAndKind(version, kind)
}
