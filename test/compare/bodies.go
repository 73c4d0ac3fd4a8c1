package compare

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// The kinds of findings about what requests carry.
const (
	// KindBody: ours sent a body, or options of a deletion, that the reference did not.
	KindBody = "body"
	// KindGuard: the UID or the resource version that a request insists on is another.
	KindGuard = "guard"
)

// body keeps what a request carries. An update carries the whole object, so what
// it does is seen in the objects and statuses.
func (b *builder) body(who string, request harness.AuditEvent) {
	code := request.ResponseStatus.Code
	judged := code < 300 || code == http.StatusForbidden || code == http.StatusUnprocessableEntity
	if !judged || !slices.Contains([]string{"create", "patch", "delete"}, request.Verb) {
		return
	}
	text, guards := "", ""
	switch request.Verb {
	case "create":
		text = b.created(decoded(request.RequestObject), request.ObjectRef.Namespace)
	case "delete":
		text, guards = b.options(decoded(request.RequestObject))
	case "patch":
		text, guards = b.patch(request)
	}
	what := requestName(request) + " " + b.bodyOf(request)
	insert(b.record.Bodies, who, what, text)
	if request.Verb != "create" {
		insert(b.record.Guards, who, requestName(request), cmp.Or(guards, "none"))
	}
}

// bodyOf names the object of a request. One that is created may have its name in the body only.
func (b *builder) bodyOf(request harness.AuditEvent) string {
	name := request.ObjectRef.Name
	if meta := fields(decoded(request.RequestObject), "metadata"); request.Verb == "create" && name == "" {
		name, _ = meta["name"].(string)
		if prefix, _ := meta["generateName"].(string); name == "" {
			return b.level.text(prefix) + "*"
		}
	}
	return b.level.text(name)
}

// created is a body of a create, without what the server fills in: a name, and the namespace of the request.
func (b *builder) created(o map[string]any, namespace string) string {
	levelled := b.level.object(o)
	if meta := fields(levelled, "metadata"); meta != nil {
		if fields(o, "metadata")["namespace"] == namespace {
			delete(meta, "namespace")
		}
		if prefix, _ := fields(o, "metadata")["generateName"].(string); prefix != "" {
			meta["generateName"] = b.level.text(prefix)
			delete(meta, "name")
		}
	}
	return asYAML(levelled)
}

// options are those of a deletion, and what it insists on.
func (b *builder) options(o map[string]any) (text, guards string) {
	rest := maps.Clone(o)
	for _, key := range []string{"kind", "apiVersion", "preconditions"} {
		delete(rest, key)
	}
	text = "no options\n"
	if len(rest) > 0 {
		text = asYAML(rest)
	}
	return text, guardsOf(fields(o, "preconditions"))
}

// patch shows the form of a patch as far as the body and the address tell it: a
// merge patch and a strategic one differ by directives only, and what is applied
// says as whom, while a patch may name its kind as well. Of a patch of a
// status it shows the fields alone; their values are compared as the status.
func (b *builder) patch(request harness.AuditEvent) (text, guards string) {
	var body any
	if json.Unmarshal(request.RequestObject, &body) != nil {
		return "", ""
	}
	o, _ := body.(map[string]any)
	guards = guardsOf(fields(o, "metadata"))
	var query url.Values
	if address, err := url.Parse(request.RequestURI); err == nil {
		query = address.Query()
	}
	head, manager := "merge", query.Get("fieldManager")
	switch {
	case o == nil:
		head = "json"
		body, guards = jsonGuards(body)
	case o["apiVersion"] != nil && o["kind"] != nil && manager != "":
		head = "apply"
	}
	if manager != "" {
		head += " as " + manager
	}
	if query.Get("force") == "true" {
		head += " by force"
	}
	if request.ObjectRef.Subresource == "status" {
		paths := map[string]bool{}
		shape("", plainPatch(b.level.value("", body)), paths)
		return head + "\n" + strings.Join(slices.Sorted(maps.Keys(paths)), "\n") + "\n", guards
	}
	return head + "\n" + asYAML(plainPatch(b.level.value("", body))), guards
}

// plainPatch shows an empty list as nothing, which it is once it is stored, and
// leaves the order of lists out, and metadata that only said whom the patch is for.
func plainPatch(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = plainPatch(inner)
			metadata, _ := inner.(map[string]any)
			if strings.HasPrefix(key, "$setElementOrder/") || key == "metadata" && metadata != nil && len(metadata) == 0 {
				delete(v, key)
			}
		}
	case []any:
		if len(v) == 0 {
			return nil
		}
	}
	return v
}

// guardsOf says what a request insists on.
func guardsOf(meta map[string]any) string {
	var found []string
	for _, key := range []string{"uid", "resourceVersion"} {
		if value, _ := meta[key].(string); value != "" {
			found = append(found, key)
		}
	}
	return strings.Join(found, " ")
}

// jsonGuards takes the tests of the UID and the version out of a JSON patch.
func jsonGuards(body any) (rest any, guards string) {
	meta := map[string]any{}
	operations, _ := body.([]any)
	kept := []any{}
	for _, operation := range operations {
		o, _ := operation.(map[string]any)
		path, _ := o["path"].(string)
		if key := strings.TrimPrefix(path, "/metadata/"); o["op"] == "test" && (key == "uid" || key == "resourceVersion") {
			meta[key] = o["value"]
			continue
		}
		kept = append(kept, operation)
	}
	return kept, guardsOf(meta)
}

// shape gathers the paths of the leaves; elements of lists are alike.
func shape(path string, v any, paths map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			shape(path+"."+key, inner, paths)
		}
	case []any:
		for _, inner := range v {
			shape(path+"[]", inner, paths)
		}
	default:
		paths[path] = true
	}
}

func asYAML(v any) string {
	text, err := yaml.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// insert keeps sorted lists without duplicates.
func insert(table map[string]map[string][]string, row, column, value string) {
	if table[row] == nil {
		table[row] = map[string][]string{}
	}
	if at, found := slices.BinarySearch(table[row][column], value); !found {
		table[row][column] = slices.Insert(table[row][column], at, value)
	}
}

// bodies: whatever ours sends the reference must have sent to an object of that
// name too. That it uses another verb is a finding of its own, and fewer bodies are none.
func (c *comparison) bodies() {
	for _, who := range slices.Sorted(maps.Keys(c.ours.Bodies)) {
		for _, what := range slices.Sorted(maps.Keys(c.ours.Bodies[who])) {
			verb := what[:strings.LastIndex(what, " ")]
			if !uses(c.reference.Bodies[who], verb) {
				continue
			}
			theirs, ours := c.reference.Bodies[who][what], c.ours.Bodies[who][what]
			gone := without(theirs, ours)
			for _, text := range without(ours, theirs) {
				if len(gone) == 0 {
					gone = theirs
				}
				if len(gone) == 0 {
					c.add(who, KindBody, what, "only with ours:\n%s", text)
					continue
				}
				c.add(who, KindBody, what, "%s", lineDiff(nearest(text, gone), text))
			}
		}
	}
	for _, who := range slices.Sorted(maps.Keys(c.ours.Guards)) {
		for _, what := range slices.Sorted(maps.Keys(c.ours.Guards[who])) {
			theirs, ours := c.reference.Guards[who][what], c.ours.Guards[who][what]
			if len(theirs) > 0 && len(without(ours, theirs)) > 0 {
				c.add(who, KindGuard, what, "- %s\n+ %s", strings.Join(theirs, ", "), strings.Join(ours, ", "))
			}
		}
	}
}

// uses reports whether a request of that name is among the keys, which have a name of an object too.
func uses(bodies map[string][]string, request string) bool {
	for what := range bodies {
		if strings.HasPrefix(what, request+" ") {
			return true
		}
	}
	return false
}

// nearest is the text that has the most lines in common with another.
func nearest(text string, all []string) string {
	lines := strings.Split(text, "\n")
	best, most := all[0], -1
	for _, other := range all {
		theirs := strings.Split(other, "\n")
		if shared := len(lines) - len(without(lines, theirs)) - len(without(theirs, lines)); most < 0 || shared > most {
			best, most = other, shared
		}
	}
	return best
}
