package compare

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Acceptance explains findings that are meant. Story is globs, separated by commas,
// Controller a glob, Kind one of the kinds, and Pattern is searched in "subject\ndetail".
type Acceptance struct {
	Story      string `json:"story"`
	Controller string `json:"controller"`
	Kind       string `json:"kind"`
	Pattern    string `json:"pattern"`
	Reason     string `json:"reason"`
	// Chance means that the reference differs from itself in this, so that the
	// entry may have nothing to explain.
	Chance bool `json:"chance,omitempty"`

	regex *regexp.Regexp
	used  bool
}

// Accepted are the differences that are meant.
type Accepted []*Acceptance

// ReadAccepted reads the files of accepted differences, one after the other.
func ReadAccepted(paths ...string) (Accepted, error) {
	var all Accepted
	for _, name := range paths {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the accepted differences: %w", err)
		}
		list, err := ParseAccepted(content)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, list...)
	}
	return all, nil
}

// ParseAccepted reads the text of such a file.
func ParseAccepted(content []byte) (Accepted, error) {
	var list Accepted
	if err := yaml.UnmarshalStrict(content, &list); err != nil {
		return nil, fmt.Errorf("read the accepted differences: %w", err)
	}
	for i, a := range list {
		if a.Reason == "" || a.Pattern == "" || a.Kind == "" || a.Story == "" || a.Controller == "" {
			return nil, fmt.Errorf("accepted difference %d: story, controller, kind, pattern and reason are all needed", i+1)
		}
		if strings.Trim(a.Story+a.Controller, "*") == "" && !strings.HasPrefix(a.Pattern, "^") {
			return nil, fmt.Errorf("accepted difference %d: a pattern for every story and controller begins with ^", i+1)
		}
		for _, glob := range append(strings.Split(a.Story, ","), a.Controller) {
			if _, err := path.Match(glob, ""); err != nil {
				return nil, fmt.Errorf("accepted difference %d: %q: %w", i+1, glob, err)
			}
		}
		var err error
		if a.regex, err = regexp.Compile(a.Pattern); err != nil {
			return nil, fmt.Errorf("accepted difference %d: %w", i+1, err)
		}
	}
	return list, nil
}

// Explain fills in the reasons, and returns how many findings have none.
func (list Accepted) Explain(findings []Finding) (unexplained int) {
	for i := range findings {
		f := &findings[i]
		for _, a := range list {
			if f.Reason == "" && a.matches(f) {
				f.Reason, a.used = a.Reason, true
			}
		}
		if f.Reason == "" {
			unexplained++
		}
	}
	return unexplained
}

func (a *Acceptance) matches(f *Finding) bool {
	story := slices.ContainsFunc(strings.Split(a.Story, ","), func(glob string) bool {
		ok, _ := path.Match(glob, f.Story)
		return ok
	})
	controller, _ := path.Match(a.Controller, f.Controller)
	return story && controller && a.Kind == f.Kind && a.regex.MatchString(f.Subject+"\n"+f.Detail)
}

// Stale are the entries that explained nothing.
func (list Accepted) Stale() Accepted {
	var stale Accepted
	for _, a := range list {
		if !a.used && !a.Chance {
			stale = append(stale, a)
		}
	}
	return stale
}

func (a *Acceptance) String() string {
	return fmt.Sprintf("%s %s %s %q", a.Story, a.Controller, a.Kind, a.Pattern)
}
