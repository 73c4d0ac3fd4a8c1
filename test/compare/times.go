package compare

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// KindTime: a time of ours moves, stays or lies where that of the reference does not.
const KindTime = "time"

// Machines are slow at times, so a time counts as of the write, or as that of
// another field, within this; and a time that could not be seen to move has not
// stayed. Times have whole seconds.
const near, stayed = 5 * time.Second, 2 * time.Second

var (
	timestamp = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)
	wholeTime = regexp.MustCompile(`^` + timestamp.String() + `$`)
)

// timeForm stands in for a time: whole seconds in UTC, or what is else.
func timeForm(s string) string {
	parts := timestamp.FindStringSubmatch(s)
	form := "<time"
	switch len(parts[1]) {
	case 0:
	case len(".000000"):
		form += " micro"
	default:
		form += " fraction"
	}
	if parts[2] != "Z" {
		form += " zone"
	}
	return form + ">"
}

// moment is a time in an object, and the condition that it is in.
type moment struct {
	text      string
	at        time.Time
	condition map[string]any
}

// moments finds the times of an object. In lists it looks for conditions and taints only.
func moments(path string, v any, condition map[string]any, found map[string]moment) {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if key != "managedFields" && key != "deletionTimestamp" { // the API server's own
				moments(strings.TrimPrefix(path+"."+key, "."), inner, condition, found)
			}
		}
	case []any:
		for _, inner := range v {
			element, _ := inner.(map[string]any)
			for _, key := range []string{"type", "key"} {
				name, _ := element[key].(string)
				if name != "" && (strings.HasSuffix(path, "conditions") || strings.HasSuffix(path, "taints")) {
					moments(path+"["+name+"]", element, element, found)
				}
			}
		}
	case string:
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil && wholeTime.MatchString(v) {
			found[path] = moment{v, at, condition}
		}
	}
}

// times notes how the times of an object lie after a write: to what they were
// after the write before, to the moment of the write and to each other. Those of
// the status are not the work of a write to the object itself, which shows how far
// others, such as a kubelet, were by then.
func (b *builder) times(identity string, o map[string]any, written time.Time, itself bool) {
	key := fmt.Sprint(identity, fields(o, "metadata")["uid"])
	before, known := b.moments[key]
	now := map[string]moment{}
	moments("", o, nil, now)
	maps.DeleteFunc(now, func(field string, _ moment) bool { return itself && inStatus(field) })
	b.moments[key] = maps.Clone(now)
	for field, was := range before {
		if itself && inStatus(field) {
			b.moments[key][field] = was
		}
	}
	if written.IsZero() {
		return
	}
	note := func(field, what string) { insert(b.record.Times, identity, b.level.text(field), what) }
	for field, m := range now {
		was, there := before[field]
		if field != "metadata.creationTimestamp" && was.text != m.text {
			note(field, "written as "+timeForm(m.text))
			note(field, "set "+lies(m.at, written)+" the write")
		}
		if there && m.condition != nil {
			if what := changes(was, m, written); what != "" {
				note(field, what)
			}
		} else if there && was.text != m.text && !noted(field) {
			note(field, "moves")
		}
		for other, o := range now {
			if comparable(field, other) {
				note(field, lies(m.at, o.at)+" "+other)
			}
		}
	}
	for field, was := range before {
		if _, there := b.moments[key][field]; known && !there && was.condition == nil && !noted(field) {
			note(field, "goes")
		}
	}
}

// noted reports whether a time is metadata. That of a change, in an annotation, moves
// or goes with the next one, and how many changes there are is chance; and the answer
// to a deletion may be written down before that to an earlier request.
func noted(field string) bool { return strings.HasPrefix(field, "metadata.") }

func inStatus(field string) bool { return strings.HasPrefix(field, "status.") }

// lies says where a time is, beside another one.
func lies(t, other time.Time) string {
	switch d := t.Sub(other); {
	case d < -near:
		return "before"
	case d > near:
		return "after"
	}
	return "at"
}

// changes says whether the time of a condition has moved, and with what. A time
// that is as young as the write may have moved to where it was.
func changes(was, now moment, written time.Time) string {
	what := "nothing"
	for _, key := range []string{"message", "reason", "status"} {
		if fmt.Sprint(was.condition[key]) != fmt.Sprint(now.condition[key]) {
			what = "the " + key
		}
	}
	switch {
	case was.text != now.text:
		return "moves when " + what + " changes"
	case what != "nothing" && written.Sub(now.at) > stayed:
		return "stays when " + what + " changes"
	}
	return ""
}

// comparable are the times of one condition, and those outside of conditions; of
// each two, one way around. Any time can be held against the birth of the object.
func comparable(field, other string) bool {
	const birth = "metadata.creationTimestamp"
	if field == birth || field == other {
		return false
	}
	if other == birth {
		return true
	}
	of := func(path string) string { return path[:strings.LastIndex(path, ".")+1] }
	return field < other && of(field) == of(other) && !strings.HasPrefix(field, "metadata.")
}

// compareTimes: what is said of a time of ours must be true of that of the
// reference too. That a time stays needs one that moves with the same change, and
// the other way around, as not every write comes to both.
func (c *comparison) compareTimes() {
	for _, identity := range slices.Sorted(maps.Keys(c.ours.Times)) {
		for _, field := range slices.Sorted(maps.Keys(c.ours.Times[identity])) {
			theirs, ours := c.reference.Times[identity][field], c.ours.Times[identity][field]
			var odd []string
			for _, what := range without(ours, theirs) {
				if len(theirs) > 0 && contradicts(what, theirs) && !lateWrite(what, ours, theirs) {
					odd = append(odd, what)
				}
			}
			if len(odd) > 0 {
				c.add(c.authors(identity), KindTime, identity+" "+field, "ours:\n%s\nthe reference:\n%s", steps(odd), steps(theirs))
			}
		}
	}
}

// lateWrite reports whether a time comes after another one only because the write came
// later on one side: both set it to the moment of the write.
func lateWrite(what string, ours, theirs []string) bool {
	if !strings.HasPrefix(what, "after ") {
		return false
	}
	for _, said := range [][]string{ours, theirs} {
		if !slices.Contains(said, "set at the write") ||
			slices.Contains(said, "set before the write") || slices.Contains(said, "set after the write") {
			return false
		}
	}
	return true
}

func contradicts(what string, theirs []string) bool {
	verb, rest, conditional := strings.Cut(what, " when ")
	switch {
	case strings.HasPrefix(what, "at "):
		return false
	case !conditional || rest == "nothing changes":
		return true
	case verb == "moves":
		return slices.Contains(theirs, "stays when "+rest)
	}
	return slices.Contains(theirs, "moves when "+rest)
}
