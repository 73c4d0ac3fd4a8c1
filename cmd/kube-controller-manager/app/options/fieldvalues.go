package options

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kube-kcm/kube-controller-manager/pkg/strictyaml"
)

// value returns what the flag is set to, as the file has it.
func (f fileField) value() strictyaml.Value {
	text := f.flag.Value.String()
	if list, ok := f.flag.Value.(pflag.SliceValue); ok {
		all := strictyaml.Texts(list.GetSlice())
		for i := range all.Items {
			all.Items[i].Kind = f.itemKind()
		}
		return all
	}
	switch f.flag.Value.Type() {
	case "bool":
		return strictyaml.Value{Kind: strictyaml.Bool, Text: text}
	case "int", "int32", "Level":
		return strictyaml.Value{Kind: strictyaml.Int, Text: text}
	case "float32", "float64":
		return strictyaml.Value{Kind: strictyaml.Float, Text: strings.NewReplacer("+Inf", ".inf", "Inf", ".inf", "NaN", ".nan").Replace(text)}
	case "pattern=N,...":
		return strictyaml.Texts(split(text, ","))
	case "namedCertKey":
		return strictyaml.Texts(split(unbracketed(text), ";"))
	case "stringToString":
		return mapOf(pairs(unbracketed(text)), strictyaml.Text)
	case "colonSeparatedMultimapStringString":
		return mapOf(gates(text), truth)
	}
	return strictyaml.Text(text)
}

func (f fileField) itemKind() strictyaml.Kind {
	if f.flag.Value.Type() == "int32Slice" {
		return strictyaml.Int
	}
	return strictyaml.String
}

func unbracketed(text string) string {
	return strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
}

func split(text, separator string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, separator)
}

// pairs are those of a flag with key=value pairs in the form of CSV.
func pairs(text string) []string {
	if text == "" {
		return nil
	}
	record, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		return nil // the flag has written it itself
	}
	return record
}

// gates are the pairs of a flag that has them as component:key=value.
func gates(text string) []string {
	all := split(text, ",")
	for i := range all {
		all[i] = strings.TrimPrefix(all[i], ":") // no component
	}
	return all
}

func truth(text string) strictyaml.Value {
	b, err := strconv.ParseBool(text)
	if err != nil {
		return strictyaml.Text(text)
	}
	return strictyaml.Truth(b)
}

// mapOf returns a mapping of key=value pairs, sorted; the last of a key counts.
func mapOf(pairs []string, value func(string) strictyaml.Value) strictyaml.Value {
	v := strictyaml.Value{Kind: strictyaml.Map}
	for _, pair := range pairs {
		key, text, _ := strings.Cut(pair, "=")
		v.Put([]string{key}, value(text))
	}
	slices.SortFunc(v.Fields, func(a, b strictyaml.Field) int { return cmp.Compare(a.Name, b.Name) })
	return v
}

// set gives the flag the value, or says what is wrong with it.
func (f fileField) set(v strictyaml.Value) []strictyaml.Problem {
	s := setter{fileField: f}
	if list, ok := f.flag.Value.(pflag.SliceValue); ok {
		if texts, ok := s.items(v, f.itemKind()); ok {
			s.check(v, list.Replace(texts))
		}
		return s.problems
	}
	switch f.flag.Value.Type() {
	case "bool":
		s.scalar(v, strictyaml.Bool)
	case "int", "int32", "Level":
		s.scalar(v, strictyaml.Int)
	case "float32", "float64":
		s.scalar(v, strictyaml.Float, strictyaml.Int)
	case "duration", "quantity": // a number without a unit is refused by the flag
		s.scalar(v, strictyaml.String, strictyaml.Int, strictyaml.Float)
	case "pattern=N,...", "namedCertKey":
		s.each(v)
	case "stringToString":
		s.mapping(v, strictyaml.String)
	case "colonSeparatedMultimapStringString":
		s.mapping(v, strictyaml.Bool)
	default:
		s.scalar(v, strictyaml.String)
	}
	return s.problems
}

type setter struct {
	fileField
	problems []strictyaml.Problem
}

func (s *setter) report(line int, format string, args ...any) {
	s.problems = append(s.problems, strictyaml.Problem{Line: line, Text: s.path + ": " + fmt.Sprintf(format, args...)})
}

func (s *setter) check(v strictyaml.Value, err error) {
	if err != nil {
		s.report(v.Line, "%s: %v", v, err)
	}
}

// is reports whether the value is of one of the kinds; the first one is named if not.
func (s *setter) is(v strictyaml.Value, kinds ...strictyaml.Kind) bool {
	if slices.Contains(kinds, v.Kind) {
		return true
	}
	hint := ""
	if kinds[0] == strictyaml.String && v.Kind != strictyaml.Map && v.Kind != strictyaml.List {
		hint = ": put it in quotes"
	}
	s.report(v.Line, "want %s, got %s (%s)%s", kinds[0], v.Kind, v, hint)
	return false
}

func (s *setter) scalar(v strictyaml.Value, kinds ...strictyaml.Kind) {
	if s.is(v, kinds...) {
		text := v.Text
		if v.Kind == strictyaml.Float { // .inf of YAML is inf elsewhere
			text = strings.NewReplacer(".inf", "inf", ".nan", "nan").Replace(strings.ToLower(text))
		}
		before := s.flag.Value.String()
		if err := s.flag.Value.Set(text); err != nil {
			s.check(v, err)
			_ = s.flag.Value.Set(before) // some flags keep what they refuse, which would be named twice
		}
	}
}

func (s *setter) items(v strictyaml.Value, kind strictyaml.Kind) (texts []string, ok bool) {
	if !s.is(v, strictyaml.List) {
		return nil, false
	}
	ok = true
	for _, item := range v.Items {
		ok = s.is(item, kind) && ok
		texts = append(texts, item.Text)
	}
	return texts, ok
}

// each gives the flag one item after the other, as a command line does.
func (s *setter) each(v strictyaml.Value) {
	if _, ok := s.items(v, strictyaml.String); ok {
		for _, item := range v.Items {
			s.check(item, s.flag.Value.Set(item.Text))
		}
	}
}

// mapping gives the flag all pairs at once.
func (s *setter) mapping(v strictyaml.Value, kind strictyaml.Kind) {
	if !s.is(v, strictyaml.Map) {
		return
	}
	var record []string
	for _, f := range v.Fields {
		if kind == strictyaml.Bool && strings.ContainsAny(f.Name, "=,") || strings.Contains(f.Name, "=") {
			s.report(f.Line, "%q cannot be a name", f.Name)
			continue
		}
		if s.is(f.Value, kind) {
			record = append(record, f.Name+"="+f.Value.Text)
		}
	}
	if len(s.problems) == 0 && len(record) > 0 {
		s.check(v, s.flag.Value.Set(joined(record)))
	}
}

// joined is what a flag takes: CSV, but for a pair alone.
func joined(record []string) string {
	if len(record) == 1 && strings.Count(record[0], "=") == 1 {
		return record[0]
	}
	var out strings.Builder
	w := csv.NewWriter(&out)
	_ = w.Write(record) // a strings.Builder takes all
	w.Flush()
	return strings.TrimSuffix(out.String(), "\n")
}
