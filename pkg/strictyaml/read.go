package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Problem is what is wrong in a line of a document.
type Problem struct {
	// Line counts from 1; 0 stands for all of the document.
	Line int
	Text string
}

// ErrSyntax says that nothing of a document can be read.
var ErrSyntax = errors.New("not YAML")

// Read returns the mapping that a document holds, and all its problems. What is wrong is
// left out of the mapping. The error is ErrSyntax when nothing can be read; then the one
// problem says why.
func Read(data []byte) (Value, []Problem, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return Value{}, []Problem{{Text: "the document is empty"}}, ErrSyntax
	case err != nil:
		return Value{}, []Problem{syntax(err)}, ErrSyntax
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return Value{}, []Problem{{root.Line, "the document must be a mapping of fields"}}, ErrSyntax
	}
	r := &reader{}
	v := r.mapping(root)
	var next yaml.Node
	switch err := decoder.Decode(&next); {
	case err == nil:
		r.report(next.Line, "there must be one document only, and here begins another")
	case !errors.Is(err, io.EOF):
		r.problems = append(r.problems, syntax(err))
	}
	return v, r.problems, nil
}

var inLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

func syntax(err error) Problem {
	text := err.Error()
	parts := inLine.FindStringSubmatch(text)
	if parts == nil {
		return Problem{1, text}
	}
	line, _ := strconv.Atoi(parts[1]) // 0 without one
	return Problem{max(line, 1), "not YAML: " + text[len(parts[0]):]}
}

type reader struct{ problems []Problem }

func (r *reader) report(line int, format string, args ...any) {
	r.problems = append(r.problems, Problem{line, fmt.Sprintf(format, args...)})
}

// value returns false for what cannot be used.
func (r *reader) value(n *yaml.Node) (Value, bool) {
	if n.Anchor != "" {
		r.report(n.Line, "anchors (&%s) are not accepted: write the value where it is used", n.Anchor)
	}
	if n.Style&yaml.TaggedStyle != 0 {
		r.report(n.Line, "tags (%s) are not accepted", n.ShortTag())
		return Value{}, false
	}
	switch n.Kind {
	case yaml.MappingNode:
		return r.mapping(n), true
	case yaml.SequenceNode:
		return r.list(n), true
	case yaml.ScalarNode:
		return r.scalar(n)
	}
	r.report(n.Line, "aliases (*%s) are not accepted: write the value where it is used", n.Value)
	return Value{}, false
}

func (r *reader) mapping(n *yaml.Node) Value {
	v := Value{Kind: Map, Line: n.Line}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge":
			r.report(key.Line, "merges (<<) are not accepted: write the fields where they are used")
			continue
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			r.report(key.Line, "the name of a field must be a string: %q", key.Value)
			continue
		}
		if at, twice := first[key.Value]; twice {
			r.report(key.Line, "duplicate field %q: line %d has it already", key.Value, at)
			r.value(value) // for its problems
			continue
		}
		first[key.Value] = key.Line
		if read, ok := r.value(value); ok {
			v.Fields = append(v.Fields, Field{key.Value, key.Line, read})
		}
	}
	return v
}

func (r *reader) list(n *yaml.Node) Value {
	v := Value{Kind: List, Line: n.Line}
	for _, item := range n.Content {
		if read, ok := r.value(item); ok {
			v.Items = append(v.Items, read)
		}
	}
	return v
}

var kinds = map[string]Kind{"!!str": String, "!!bool": Bool, "!!int": Int, "!!float": Float}

func (r *reader) scalar(n *yaml.Node) (Value, bool) {
	kind, ok := kinds[n.ShortTag()]
	switch {
	case ok:
		return Value{Kind: kind, Line: n.Line, Text: n.Value}, true
	case n.ShortTag() == "!!null":
		r.report(n.Line, "a value is missing: leave the field out, or give it one")
	default: // such as a date
		r.report(n.Line, "%s: put this value in quotes", n.Value)
	}
	return Value{}, false
}
