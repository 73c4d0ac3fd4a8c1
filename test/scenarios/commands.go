package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// command is a word of the stories' language: how to tell that a line is well
// formed, and how to carry it out.
type command struct {
	check func(Step) error
	run   func(*run, context.Context, Step) error
}

var commands map[string]command

// The table is filled at start because commands refer to each other.
func init() {
	commands = map[string]command{
		"slow":  {noWords, nil},
		"ours":  {noWords, nil},
		"flags": {wantFlags, (*run).flags},
		// The control plane is there before the story begins.
		"apiserver": {wantFlags, nil},
		"start":     {anyWords, (*run).start},
		"stop":      {noWords, (*run).stop},
		"restart":   {noWords, (*run).restart},
		"kubelet":   {wantKubelet, (*run).kubelet},
		"proxy":     {wantProxy, (*run).proxy},
		"pass":      {wantPass, (*run).pass},

		"apply":    {wantApply, (*run).apply},
		"refused":  {wantWords(1, 1), (*run).refused},
		"settle":   {noWords, (*run).settle},
		"status":   {wantPatch, (*run).patchStatus},
		"approval": {wantPatch, (*run).patchApproval},
		"issue":    {wantWords(1, 1), (*run).issue},
		"patch":    {wantPatch, (*run).patch},
		"scale":    {wantScale, (*run).scale},
		"delete":   {wantDelete, (*run).delete},
		"label":    {wantPairs, (*run).label},
		"annotate": {wantPairs, (*run).annotate},
		"undo":     {wantUndo, (*run).undo},

		"csi":       {wantCSI, (*run).csi},
		"metrics":   {wantMetrics, (*run).measure},
		"webhook":   {wantWebhook, (*run).webhook},
		"node":      {wantNode, (*run).node},
		"fail":      {wantOutcome, (*run).fail},
		"succeed":   {wantPod, (*run).succeed},
		"ready":     {wantPod, (*run).ready},
		"unready":   {wantPod, (*run).unready},
		"evict":     {wantPod, (*run).evict},
		"kill":      {wantKill, (*run).kill},
		"lose":      {wantPod, (*run).lose},
		"label-pod": {wantLabelPod, (*run).labelPod},

		"expect":         {wantCondition, (*run).expect},
		"expect-count":   {wantCondition, (*run).expect},
		"expect-gone":    {wantCondition, (*run).expect},
		"expect-event":   {wantCondition, (*run).expect},
		"expect-refused": {wantCondition, (*run).expect},
		"expect-metric":  {wantCondition, (*run).expect},
		"expect-why":     {wantCondition, (*run).expect},
		// What the controllers have asked for since the last command.
		"expect-request": {wantCondition, (*run).expect},
	}
}

func anyWords(Step) error { return nil }

func noWords(s Step) error { return wantWords(0, 0)(s) }

func wantWords(least, most int) func(Step) error {
	return func(s Step) error {
		if n := len(words(s.Rest)); n < least || n > most {
			return fmt.Errorf("%s has %d arguments; it takes %d to %d", s.Command, n, least, most)
		}
		return nil
	}
}

// wantApply wants FILE, or FILE as USER and the user's groups.
func wantApply(s Step) error {
	if fields := words(s.Rest); len(fields) != 1 && (len(fields) < 3 || fields[1] != "as") {
		return fmt.Errorf("apply takes FILE or FILE as USER [GROUP...], not %q", s.Rest)
	}
	return nil
}

func wantFlags(s Step) error {
	for _, flag := range strings.Fields(s.Rest) {
		if !strings.HasPrefix(flag, "--") {
			return fmt.Errorf("%s takes --name=value words, not %q", s.Command, flag)
		}
	}
	return nil
}

// wantPatch wants RES/NAME and JSON. References are filled in later, so only a
// document without them is read here.
func wantPatch(s Step) error {
	name, document := cut(s.Rest)
	if err := wantReference(name); err != nil {
		return err
	}
	document = unquote(document)
	if !strings.Contains(document, "$(") && !json.Valid([]byte(document)) {
		return fmt.Errorf("%s %s: not JSON: %s", s.Command, name, document)
	}
	return nil
}

func wantScale(s Step) error {
	name, n := cut(s.Rest)
	if _, err := strconv.Atoi(n); err != nil {
		return fmt.Errorf("scale takes RES/NAME and a number, not %q", s.Rest)
	}
	return wantReference(name)
}

func wantDelete(s Step) error {
	name, how := cut(s.Rest)
	if !slices.Contains(waysToDelete, how) {
		return fmt.Errorf("delete takes foreground, background, orphan or now, not %q", how)
	}
	return wantReference(name)
}

func wantPairs(s Step) error {
	name, pairs := cut(s.Rest)
	if err := wantKeys(s.Command, pairs); err != nil {
		return err
	}
	return wantReference(name)
}

func wantKeys(command, pairs string) error {
	if pairs == "" {
		return fmt.Errorf("%s takes RES/NAME and key=value or key-", command)
	}
	for _, pair := range words(pairs) {
		if !strings.Contains(pair, "=") && !strings.HasSuffix(pair, "-") {
			return fmt.Errorf("%s takes key=value or key-, not %q", command, pair)
		}
	}
	return nil
}

func wantCondition(s Step) error {
	_, err := parseCondition(s)
	return err
}

func wantReference(name string) error {
	if kind, rest, ok := strings.Cut(name, "/"); !ok || kind == "" || rest == "" {
		if resource, _, ok := strings.Cut(name, ","); ok && resource != "" {
			return nil
		}
		return fmt.Errorf("%q is not RES/NAME", name)
	}
	return nil
}

// words splits a line at spaces that are outside of brackets and quotes.
func words(line string) []string {
	var all []string
	for line != "" {
		var word string
		word, line = cut(line)
		if word != "" {
			all = append(all, word)
		}
	}
	return all
}

// condition is what an expect line says.
type condition struct {
	kind string // expect, expect-count, expect-gone, expect-event, expect-refused, expect-request, expect-metric, expect-why

	target string
	path   string
	op     string
	value  string
	regex  *regexp.Regexp

	eventType, eventReason string
}

var operators = []string{"==", "!=", ">=", "<=", "=~", "exists", "absent", "distinct"}

func parseCondition(s Step) (condition, error) {
	c := condition{kind: s.Command}
	switch s.Command {
	case "expect-gone":
		c.target = s.Rest
		return c, wantReference(c.target)
	case "expect-count":
		return parseCount(c, s.Rest)
	case "expect-event":
		return parseEvent(c, s.Rest)
	case "expect-request":
		return parseRequest(c, s.Rest)
	case "expect-refused":
		return parseRefused(c, s.Rest)
	case "expect-metric":
		return parseMetric(c, s.Rest)
	case "expect", "expect-why":
	default:
		return c, fmt.Errorf("%q cannot be waited for", s.Command)
	}
	var rest string
	c.target, rest = cut(s.Rest)
	c.path, rest = cut(rest)
	c.op, rest = cut(rest)
	c.value = unquote(rest)
	if err := wantReference(c.target); err != nil {
		return c, err
	}
	if _, err := compilePath(c.path); err != nil {
		return c, err
	}
	return c, c.checkOperator(rest)
}

func (c *condition) checkOperator(rest string) error {
	if !slices.Contains(operators, c.op) {
		return fmt.Errorf("%q is none of %s", c.op, strings.Join(operators, " "))
	}
	unary := c.op == "exists" || c.op == "absent" || c.op == "distinct"
	switch {
	case unary && rest != "":
		return fmt.Errorf("%s takes no value", c.op)
	case !unary && rest == "":
		return fmt.Errorf("%s needs a value", c.op)
	case c.op == "=~":
		return c.compileRegex()
	}
	return nil
}

func (c *condition) compileRegex() error {
	var err error
	// The value may hold references to other objects; those have no harm in a pattern.
	if c.regex, err = regexp.Compile(c.value); err != nil {
		return fmt.Errorf("bad pattern: %w", err)
	}
	return nil
}

func parseCount(c condition, rest string) (condition, error) {
	fields := words(rest)
	if len(fields) < 3 {
		return c, fmt.Errorf("expect-count takes RES[,selector] OPERATOR NUMBER, not %q", rest)
	}
	c.target = strings.Join(fields[:len(fields)-2], " ")
	c.op, c.value = fields[len(fields)-2], fields[len(fields)-1]
	if !slices.Contains([]string{"==", "!=", ">=", "<="}, c.op) {
		return c, fmt.Errorf("expect-count cannot compare with %q", c.op)
	}
	if _, err := strconv.Atoi(c.value); err != nil {
		return c, fmt.Errorf("expect-count needs a number, not %q", c.value)
	}
	if strings.Contains(strings.SplitN(c.target, ",", 2)[0], "/") {
		return c, fmt.Errorf("expect-count takes RES[,selector], not %q", c.target)
	}
	return c, nil
}

func parseEvent(c condition, rest string) (condition, error) {
	c.target, rest = cut(rest)
	c.eventType, rest = cut(rest)
	c.eventReason, rest = cut(rest)
	c.value = unquote(rest)
	if c.eventType != "Normal" && c.eventType != "Warning" {
		return c, fmt.Errorf("expect-event takes RES/NAME Normal|Warning REASON REGEX; %q is no type", c.eventType)
	}
	if c.eventReason == "" {
		return c, fmt.Errorf("expect-event needs a reason")
	}
	if err := wantReference(c.target); err != nil {
		return c, err
	}
	return c, c.compileRegex()
}
