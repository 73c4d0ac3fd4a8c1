package splitplan

import (
	"fmt"
	"io"
	"strings"
)

// Flags are those by which ours differs from the original as it runs today.
func (p Plan) Flags() []string {
	return []string{
		"--controllers=" + strings.Join(p.Ours.Controllers, ","),
		"--leader-elect=true",
		"--leader-elect-resource-name=" + p.Ours.Lease,
		fmt.Sprintf("--secure-port=%d", p.Ours.Port),
	}
}

// Write says what the plan is, for a person.
func (p Plan) Write(to io.Writer) error {
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	if p.Whole() {
		say("The original runs nothing then: stop it before ours starts.")
	} else {
		say("The original runs %d controllers then:", len(p.Theirs.Runs))
		say("  --controllers=%s", strings.Join(p.Theirs.Controllers, ","))
		if p.Theirs.NoKey {
			say("  without --%s", keyFlag)
		}
	}
	say("\nOurs runs %d beside it:", len(p.Ours.Runs))
	for _, flag := range p.Flags() {
		say("  %s", flag)
	}
	if p.Ours.NoKey {
		say("  without --%s", keyFlag)
	}
	say("\nAll other flags stay, and are the same on both sides. Two logs must not go into one file.")
	say("Whoever is to run less than before is changed first, on every node: the original on the way there, ours on the way back. The other follows when the first one's leader has the new flags.")
	p.memory(say)
	for _, warning := range p.Warnings {
		say("\nWarning: %s", warning)
	}
	_, err := io.WriteString(to, out.String())
	return err
}

// memory says what the controllers that move need, and what they forget.
func (p Plan) memory(say func(string, ...any)) {
	first := true
	for _, c := range p.controllers {
		if in, _ := partition([]string{c.Name}, p.Moved); len(in) == 0 || c.notes() == "" {
			continue
		}
		if first {
			say("\nOf those that move:")
		}
		first = false
		say("  %s %s", c.Name, c.notes())
	}
}

// notes are what there is to say of a controller that moves; empty for nothing.
func (c Controller) notes() string {
	var notes []string
	if c.Cloud {
		notes = append(notes, "runs with a cloud provider only")
	}
	if len(c.Gates) > 0 {
		notes = append(notes, "runs with the feature gate "+list(c.Gates)+" only")
	}
	if needs := moves[c.Name].needs; needs != "" {
		notes = append(notes, "needs "+needs)
	}
	if forgets := moves[c.Name].forgets; forgets != "" {
		notes = append(notes, "forgets "+forgets)
	}
	return strings.Join(notes, "; ")
}

// WriteTable says of all controllers what may be apart.
func WriteTable(to io.Writer, controllers []Controller) error {
	var out strings.Builder
	all, width := make([]string, 0, len(controllers)), 0
	for _, c := range controllers {
		all, width = append(all, c.Name), max(width, len(c.Name))
	}
	for _, must := range []bool{true, false} {
		head := "These must run in one process:\n"
		if !must {
			head = "\nThese had better run in one process:\n"
		}
		out.WriteString(head)
		for _, g := range allGroups() {
			if g.must == must {
				fmt.Fprintf(&out, "  %s: %s.\n", list(g.in(all)), g.why)
			}
		}
	}
	out.WriteString("\nEach of the others may move by itself. All controllers:\n")
	for _, c := range controllers {
		out.WriteString(strings.TrimRight(fmt.Sprintf("  %-*s  %s", width, c.Name, c.notes()), " ") + "\n")
	}
	_, err := io.WriteString(to, out.String())
	return err
}
