package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/tools/txtar"
)

// Story is one parsed file.
type Story struct {
	// Name is the file's name without its ending.
	Name string
	// Path is where it was read.
	Path string
	// Setup is how the manager runs at the story's beginning.
	Setup Setup
	// APIServer are further flags of the API server. Stories with the same ones
	// share a control plane, which no other story uses.
	APIServer []string
	// Private means that the story does more to its manager than using it, so
	// no other story can share the process. It then starts without one, and
	// its first start command brings it up.
	Private bool
	// Slow means that the story waits for long, so that it is spread over the lanes.
	Slow bool
	// Ours means that the story shows what the reference does not do, so that it is
	// only for our binary.
	Ours bool
	// Steps are the commands in order.
	Steps []Step
	// Files are the objects, by section name, and what the manager finds on its host.
	Files map[string]string
}

// Setup is what distinguishes one manager process from another.
type Setup struct {
	// Flags are further command line flags.
	Flags []string
	// Controllers are the names given to start; none means "*".
	Controllers []string
	// Proxy means that a proxy stands between the manager and the API server.
	Proxy bool
}

// Args are the manager's arguments.
func (s Setup) Args() []string {
	controllers := s.Controllers
	if len(controllers) == 0 {
		controllers = []string{"*"}
	}
	return append([]string{"--controllers=" + strings.Join(controllers, ",")}, s.Flags...)
}

// argsIn are the arguments with a directory in the place of $DIR.
func (s Setup) argsIn(dir string) []string {
	args := s.Args()
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "$DIR", dir)
	}
	return args
}

func (s Setup) key() string { return fmt.Sprint(strings.Join(s.Args(), " "), s.Proxy) }

// runs says whether a controller is among those started.
func (s Setup) runs(name string) bool {
	return len(s.Controllers) == 0 || slices.Contains(s.Controllers, "*") || slices.Contains(s.Controllers, name)
}

// Step is one command of a story.
type Step struct {
	// Line is its number in the file, Text the line without "within" or "never".
	Line int
	Text string
	// Command is the first word, Rest what follows it.
	Command, Rest string
	// Within is how long to wait; zero means the default.
	Within time.Duration
	// Never is how long something must stay untrue; zero means no such step.
	Never time.Duration
	// Ours means that the step is for our binary alone, not for a comparison.
	Ours bool
}

// waits reports whether the step only waits for what others do.
func (s Step) waits() bool {
	return s.Never > 0 || s.Command == "settle" || s.Command == "refused" || strings.HasPrefix(s.Command, "expect")
}

// ParseFile reads a story.
func ParseFile(path string) (*Story, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the story: %w", err)
	}
	return Parse(path, content)
}

// Parse checks everything about a story that needs no cluster. Its errors
// begin with file:line.
func Parse(path string, content []byte) (*Story, error) {
	archive := txtar.Parse(content)
	story := &Story{
		Name:  strings.TrimSuffix(filepath.Base(path), ".txtar"),
		Path:  path,
		Files: map[string]string{},
	}
	for _, file := range archive.Files {
		if _, twice := story.Files[file.Name]; twice {
			return nil, fmt.Errorf("%s:%d: file %q occurs twice", path, lineOf(content, file.Name), file.Name)
		}
		story.Files[file.Name] = string(file.Data)
	}
	used := map[string]bool{}
	for i, line := range strings.Split(string(archive.Comment), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		step, err := parseStep(line)
		if err == nil {
			step.Line = i + 1
			err = story.add(step, used)
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
	}
	for _, file := range archive.Files {
		if !used[file.Name] && !strings.HasPrefix(file.Name, hostFiles) {
			return nil, fmt.Errorf("%s:%d: file %q is never applied", path, lineOf(content, file.Name), file.Name)
		}
	}
	if len(story.Steps) == 0 {
		return nil, fmt.Errorf("%s:1: the story has no commands", path)
	}
	if story.Private {
		story.Setup = Setup{}
	}
	return story, nil
}

// add appends a step. Leading flags and start lines describe the manager that
// the story begins with; later ones make the story private.
func (s *Story) add(step Step, used map[string]bool) error {
	check, known := commands[step.Command]
	if !known {
		return fmt.Errorf("unknown command %q", step.Command)
	}
	if err := check.check(step); err != nil {
		return err
	}
	switch step.Command {
	case "apply", "refused":
		file, _ := cut(step.Rest)
		if _, there := s.Files[file]; !there {
			return fmt.Errorf("%s %s: there is no such file in the story", step.Command, file)
		}
		used[file] = true
	case "flags", "start":
		started := slices.ContainsFunc(s.Steps, func(earlier Step) bool { return earlier.Command == "start" })
		s.Private = s.Private || s.acted() || started
		if step.Command == "flags" {
			step.Rest = strings.ReplaceAll(step.Rest, "$HOST", filepath.Join("$DIR", hostFiles, s.Name))
			s.Setup.Flags = append(s.Setup.Flags, strings.Fields(step.Rest)...)
		} else {
			s.Setup.Controllers = strings.Fields(step.Rest)
		}
	case "proxy":
		if err := s.addProxy(step); err != nil {
			return err
		}
	case "stop":
		s.Private = true
	case "slow":
		s.Slow = true
		return nil
	case "ours":
		s.Ours = true
		return nil
	case "apiserver":
		if len(s.Steps) > 0 {
			return fmt.Errorf("apiserver comes before all other commands")
		}
		s.APIServer = append(s.APIServer, strings.Fields(step.Rest)...)
		return nil
	}
	s.Steps = append(s.Steps, step)
	return nil
}

// addProxy wants the bare line before all that needs a manager, and the others after it.
func (s *Story) addProxy(step Step) error {
	there := slices.ContainsFunc(s.Steps, func(earlier Step) bool { return earlier.Command == "proxy" })
	switch {
	case step.Rest != "" && !there:
		return fmt.Errorf("the story has no proxy: a line \"proxy\" belongs at its top")
	case step.Rest != "":
		return nil
	case s.acted():
		return fmt.Errorf("proxy without words comes before what the story does")
	}
	s.Setup.Proxy = true
	return nil
}

// acted reports whether a step does more than to prepare the manager.
func (s *Story) acted() bool {
	return slices.ContainsFunc(s.Steps, func(earlier Step) bool { return !earlier.prepares() })
}

// prepares reports whether a step only says how the manager is to run, or what
// it finds.
func (s Step) prepares() bool {
	return slices.Contains([]string{"flags", "start", "kubelet", "csi"}, s.Command) || s.Command == "proxy" && s.Rest == ""
}

func parseStep(line string) (Step, error) {
	step := Step{Text: line}
	word, rest := cut(line)
	if word == "ours" && rest != "" {
		step.Ours = true
		word, rest = cut(rest)
	}
	if word == "within" || word == "never" {
		var text string
		text, rest = cut(rest)
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return step, fmt.Errorf("%s needs a duration such as 10s, not %q", word, text)
		}
		if word == "never" {
			step.Never = d
			step.Command, step.Rest = neverCommand(rest)
			return step, nil
		}
		step.Within = d
		word, rest = cut(rest)
	}
	step.Command, step.Rest = word, rest
	return step, nil
}

// neverCommand finds what must not become true; a bare RES/NAME means expect.
func neverCommand(rest string) (command, arguments string) {
	word, arguments := cut(rest)
	if strings.HasPrefix(word, "expect") {
		return word, arguments
	}
	return "expect", rest
}

func lineOf(content []byte, file string) int {
	for i, line := range strings.Split(string(content), "\n") {
		if strings.HasPrefix(line, "-- "+file) {
			return i + 1
		}
	}
	return 1
}
