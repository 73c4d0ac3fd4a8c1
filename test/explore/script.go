package explore

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/txtar"
	"sigs.k8s.io/yaml"

	"github.com/kube-kcm/kube-controller-manager/test/scenarios"
)

// Script is a story in the making.
type Script struct {
	// Family made it, from Seed.
	Family string
	Seed   int
	// Head are the lines before the first step: flags, start, proxy.
	Head []string
	// Objects are the files that steps apply, by file name.
	Objects map[string]Object
	// Steps are the lines. Several lines in one step follow upon each other before
	// the sides come to rest.
	Steps []string
	// Most is how many steps are played that are not refused; zero means all.
	Most int
}

// indent is before a line that follows upon the one before.
const indent = "  "

// Object is decoded YAML.
type Object = map[string]any

// Text is the script as a .txtar file. The comment is its first line. Lines that follow
// upon each other are indented but for the first.
func (s *Script) Text(comment string) string {
	lines := append([]string{"# " + comment}, s.head()...)
	for _, step := range s.Steps {
		lines = append(lines, strings.ReplaceAll(step, "\n", "\n"+indent))
	}
	archive := &txtar.Archive{Comment: []byte(strings.Join(lines, "\n") + "\n")}
	for _, name := range slices.Sorted(maps.Keys(s.Objects)) {
		if s.applies(name) {
			archive.Files = append(archive.Files, txtar.File{Name: name, Data: encode(s.Objects[name])})
		}
	}
	return string(txtar.Format(archive))
}

// head leaves out the proxy that no step needs.
func (s *Script) head() []string {
	if slices.ContainsFunc(s.Steps, func(step string) bool { return strings.HasPrefix(step, viaProxy+" ") }) {
		return s.Head
	}
	return slices.DeleteFunc(slices.Clone(s.Head), func(line string) bool { return line == viaProxy })
}

func (s *Script) applies(file string) bool {
	return slices.ContainsFunc(s.Steps, func(step string) bool {
		return slices.ContainsFunc(strings.Split(step, "\n"), func(line string) bool { return appliedFile(line) == file })
	})
}

// appliedFile is the file that a line needs; empty for most.
func appliedFile(line string) string {
	if fields := strings.Fields(line); len(fields) > 1 && (fields[0] == "apply" || fields[0] == "refused") {
		return fields[1]
	}
	return ""
}

func encode(o Object) []byte {
	text, err := yaml.Marshal(o)
	if err != nil {
		// What was drawn or decoded can be encoded.
		panic(err)
	}
	return text
}

// Story parses the script as the scenarios do.
func (s *Script) Story() (*scenarios.Story, error) {
	story, err := scenarios.Parse(s.Name()+".txtar", []byte(s.Text(s.Name())))
	if err == nil {
		story.Setup.Proxy = story.Setup.Proxy || slices.Contains(s.Head, viaProxy)
	}
	return story, err
}

// Name tells the family and the seed.
func (s *Script) Name() string { return fmt.Sprintf("%s-%d", s.Family, s.Seed) }

// Clone returns a deep copy.
func (s *Script) Clone() *Script {
	c := *s
	c.Head, c.Steps = slices.Clone(s.Head), slices.Clone(s.Steps)
	c.Objects = map[string]Object{}
	for name, o := range s.Objects {
		c.Objects[name] = deepCopy(o)
	}
	return &c
}

func deepCopy(o Object) Object {
	encoded, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	var out Object
	if err := json.Unmarshal(encoded, &out); err != nil {
		panic(err)
	}
	return out
}

func isHead(step scenarios.Step) bool {
	return step.Command == "flags" || step.Command == "start" || step.Command == viaProxy && step.Rest == ""
}

// ReadScript reads a .txtar file back.
func ReadScript(path string) (*Script, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the story: %w", err)
	}
	story, err := scenarios.Parse(path, content)
	if err != nil {
		return nil, err
	}
	s := &Script{Family: story.Name, Objects: map[string]Object{}}
	if len(story.APIServer) > 0 {
		s.Head = append(s.Head, "apiserver "+strings.Join(story.APIServer, " "))
	}
	lines := strings.Split(string(content), "\n")
	for _, step := range story.Steps {
		line := lines[step.Line-1]
		text, follows := strings.TrimSpace(line), strings.HasPrefix(line, indent)
		switch {
		case len(s.Steps) == 0 && isHead(step):
			s.Head = append(s.Head, text)
		case follows && len(s.Steps) > 0:
			s.Steps[len(s.Steps)-1] += "\n" + text
		default:
			s.Steps = append(s.Steps, text)
		}
	}
	for name, text := range story.Files {
		if strings.Contains(text, "\n---\n") {
			return nil, fmt.Errorf("%s: file %s has more than one object: a script has a file for each", path, name)
		}
		var o Object
		if err := yaml.Unmarshal([]byte(text), &o); err != nil {
			return nil, fmt.Errorf("%s: file %s: %w", path, name, err)
		}
		s.Objects[name] = o
	}
	return s, nil
}
