package compare

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// staticStory stands in for a story's name in what needs none.
const staticStory = "static"

// The kinds of findings that need no story.
const (
	KindFlag    = "flag"
	KindConfigz = "configz"
	KindMetric  = "metric"
	KindHealth  = "health"
)

var (
	sectionLine = regexp.MustCompile(`^(\S.*) flags:$`)
	flagLine    = regexp.MustCompile(`^\s+(?:-\w, )?--([\w-]+)(?:\[=\S+\])?(?: (\S+))?(?:\s{2,}(.*))?$`)
	defaultText = regexp.MustCompile(`(?s)\(default (.*?)\)( \(DEPRECATED.*)?$`)
	deprecated  = regexp.MustCompile(`\(?DEPRECATED`)
)

// ParseHelp reads what --help prints: for each flag its section, type and
// default, and whether it is deprecated. The sentences are left out.
func ParseHelp(text string) map[string]string {
	flags, prose := map[string]string{}, map[string]string{}
	section, flag := "", ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := sectionLine.FindStringSubmatch(line); m != nil {
			section, flag = m[1], ""
		} else if m := flagLine.FindStringSubmatch(line); m != nil && section != "" {
			flag = m[1]
			flags[flag] = fmt.Sprintf("section %q, type %q", section, m[2])
			prose[flag] = m[3]
		} else if flag != "" {
			prose[flag] += " " + strings.TrimSpace(line)
		}
	}
	for flag, text := range prose {
		if m := defaultText.FindStringSubmatch(strings.TrimSpace(text)); m != nil {
			flags[flag] += ", default " + m[1]
		}
		if deprecated.MatchString(text) {
			flags[flag] += ", deprecated"
		}
	}
	return flags
}

// ParseMetrics reads /metrics: for each family its type and label names.
func ParseMetrics(text string) map[string]string {
	types, labels := map[string]string{}, map[string][]string{}
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			words := strings.Fields(rest)
			types[words[0]] = words[1]
			continue
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, inner, labelled := strings.Cut(line, "{")
		if !labelled {
			continue
		}
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base := strings.TrimSuffix(name, suffix); types[base] != "" {
				name = base
			}
		}
		for _, m := range labelName.FindAllStringSubmatch(inner, -1) {
			if !slices.Contains(labels[name], m[1]) && m[1] != "le" {
				labels[name] = append(labels[name], m[1])
			}
		}
	}
	families := map[string]string{}
	for name, kind := range types {
		slices.Sort(labels[name])
		families[name] = kind + " {" + strings.Join(labels[name], ",") + "}"
	}
	return families
}

var (
	labelName  = regexp.MustCompile(`(?:^|,)([a-zA-Z_]\w*)="(?:[^"\\]|\\.)*"`)
	labelValue = regexp.MustCompile(`(?:^|,)([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"`)
)

// ParseConfigz gives each leaf of /configz its path.
func ParseConfigz(text string) (map[string]string, error) {
	var content any
	if err := json.Unmarshal([]byte(text), &content); err != nil {
		return nil, fmt.Errorf("read configz: %w", err)
	}
	leaves := map[string]string{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		if inner, ok := v.(map[string]any); ok && len(inner) > 0 {
			for key, value := range inner {
				walk(strings.TrimPrefix(path+"."+key, "."), value)
			}
			return
		}
		if list, ok := v.([]any); ok {
			// Some are made from maps and come in any order.
			slices.SortFunc(list, func(a, b any) int { return strings.Compare(encode(a), encode(b)) })
		}
		leaves[path] = encode(v)
	}
	walk("", content)
	return leaves, nil
}

// ParseHealth reads the names and verdicts of a verbose health check.
func ParseHealth(text string) map[string]string {
	checks := map[string]string{}
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "[+]"); ok {
			checks[strings.Fields(name)[0]] = "ok"
		} else if name, ok := strings.CutPrefix(line, "[-]"); ok {
			checks[strings.Fields(name)[0]] = "failed"
		}
	}
	return checks
}

// CompareTables turns the differences of two tables into findings.
func CompareTables(kind string, reference, ours map[string]string) []Finding {
	var findings []Finding
	for _, key := range both(reference, ours) {
		theirs, there := reference[key]
		own, here := ours[key]
		detail := ""
		switch {
		case !here:
			detail = "only with the reference: " + theirs
		case !there:
			detail = "only with ours: " + own
		case own != theirs:
			detail = "- " + theirs + "\n+ " + own
		default:
			continue
		}
		findings = append(findings, Finding{Story: staticStory, Controller: "kube-controller-manager", Kind: kind, Subject: key, Detail: detail})
	}
	return findings
}
