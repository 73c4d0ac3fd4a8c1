package options

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

const ownFlagsPage = "../../../../docs/operate/flags.md"

// TestOwnFlagsAreDocumented holds the page to the flags; with UPDATE=1 it writes it.
func TestOwnFlagsAreDocumented(t *testing.T) {
	want := ownFlags(newCommandLine(t).sections.FlagSets[ownSection])
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(ownFlagsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(ownFlagsPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not as the flags are: run make flags-doc", ownFlagsPage)
	}
}

func ownFlags(flags *pflag.FlagSet) string {
	var page strings.Builder
	page.WriteString("# Flags that the original does not have\n\n" +
		"`make flags-doc` writes this page from the program. `--help` has them under \"Beyond the original\". " +
		"All others are the original's, with its defaults. Take these out before you go back to it: it ends with `unknown flag`.\n\n" +
		"Each is off by default, or changes only how fast or how cheaply something is done.\n\n" +
		"| flag | default | what it does |\n| --- | --- | --- |\n")
	flags.VisitAll(func(f *pflag.Flag) {
		value, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Value.Type() != "bool" {
			name += "=" + strings.ToUpper(value)
		}
		byDefault := "`" + f.DefValue + "`"
		if f.DefValue == "" {
			byDefault = "none"
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s |\n", name, byDefault, strings.NewReplacer("|", `\|`, "\n", " ").Replace(usage))
	})
	page.WriteString("\nWhat each changes for a user is in [differences.md](../differences.md), with its test.\n")
	return page.String()
}
