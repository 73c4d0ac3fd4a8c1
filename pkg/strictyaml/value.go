package strictyaml

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Kind is what a value is.
type Kind string

// The kinds of values.
const (
	Map    Kind = "a mapping"
	List   Kind = "a list"
	String Kind = "a string"
	Bool   Kind = "true or false"
	Int    Kind = "a whole number"
	Float  Kind = "a number"
)

// Value is a value, or all of a document.
type Value struct {
	Kind Kind
	// Line is where it begins, from 1; 0 when it comes from no document.
	Line int
	// Text is the value of a scalar, without quotes.
	Text string
	// Items are those of a list.
	Items []Value
	// Fields are those of a mapping, in the order of the document.
	Fields []Field
}

// Field is a key of a mapping and its value.
type Field struct {
	Name  string
	Line  int
	Value Value
}

// Text returns a string.
func Text(s string) Value { return Value{Kind: String, Text: s} }

// Texts returns a list of strings.
func Texts(all []string) Value {
	list := Value{Kind: List}
	for _, s := range all {
		list.Items = append(list.Items, Text(s))
	}
	return list
}

// Truth returns a boolean.
func Truth(b bool) Value { return Value{Kind: Bool, Text: strconv.FormatBool(b)} }

// Put sets a value in a mapping at a path, and makes the mappings on the way.
func (v *Value) Put(path []string, value Value) {
	for i := range v.Fields {
		if f := &v.Fields[i]; f.Name == path[0] {
			if len(path) == 1 {
				f.Value = value
				return
			}
			f.Value.Put(path[1:], value)
			return
		}
	}
	if len(path) > 1 {
		inner := Value{Kind: Map}
		inner.Put(path[1:], value)
		value = inner
	}
	v.Kind = Map
	v.Fields = append(v.Fields, Field{Name: path[0], Value: value})
}

// Write returns the document of a mapping.
func Write(v Value) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(node(v)); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return out.Bytes(), nil
}

func node(v Value) *yaml.Node {
	switch v.Kind {
	case Map:
		n := &yaml.Node{Kind: yaml.MappingNode, Style: flowIfEmpty(len(v.Fields))}
		for _, f := range v.Fields {
			n.Content = append(n.Content, node(Text(f.Name)), node(f.Value))
		}
		return n
	case List:
		n := &yaml.Node{Kind: yaml.SequenceNode, Style: flowIfEmpty(len(v.Items))}
		for _, item := range v.Items {
			n.Content = append(n.Content, node(item))
		}
		return n
	case String: // the tag has the encoder quote what would be read as something else
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v.Text}
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: v.Text}
}

func flowIfEmpty(length int) yaml.Style {
	if length == 0 {
		return yaml.FlowStyle
	}
	return 0
}

// String returns the value in one line, for a person.
func (v Value) String() string {
	switch v.Kind {
	case Map:
		fields := make([]string, 0, len(v.Fields))
		for _, f := range v.Fields {
			fields = append(fields, f.Name+": "+f.Value.String())
		}
		return "{" + strings.Join(fields, ", ") + "}"
	case List:
		items := make([]string, 0, len(v.Items))
		for _, item := range v.Items {
			items = append(items, item.String())
		}
		return "[" + strings.Join(items, ", ") + "]"
	case String:
		return strconv.Quote(v.Text)
	}
	return v.Text
}
