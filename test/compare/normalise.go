package compare

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-kcm/kube-controller-manager/test/certs"
)

// leveller replaces what differs between two runs of one binary.
type leveller struct {
	names *strings.Replacer
	// made finds names made of a prefix that are those of no object, such as
	// in the message of a refused request.
	made *regexp.Regexp
}

var (
	patterns = []struct {
		pattern *regexp.Regexp
		with    string
	}{
		{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<uid>"},
		{regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)? [+-]\d{4} UTC( m=[+-][\d.]+)?`), "<time>"},
		{regexp.MustCompile(`(?s)-----BEGIN [A-Z ]+-----.*-----END [A-Z ]+-----\n?`), "<pem>"},
		{regexp.MustCompile(`\b10\.244\.\d+\.\d+\b`), "<pod-ip>"},
		{regexp.MustCompile(`\b10\.96\.\d+\.\d+\b`), "<service-ip>"},
		{regexp.MustCompile(`\bfd00:10:244:[0-9a-f]+::/64\b`), "<pod-range>"},
		{regexp.MustCompile(`\b127\.0\.0\.1:\d+\b`), "127.0.0.1:<port>"},
		{regexp.MustCompile(`\bX509SHA256=[0-9a-f]{64}\b`), "X509SHA256=<hash>"},
		{regexp.MustCompile(`\bkube-api-access-[a-z0-9]{5}\b`), "kube-api-access-*"},
	}
	// sharers are the autoscalers of the same pods, which the original names in any order.
	sharers = regexp.MustCompile(`(controlled by multiple HPAs: )\[([^]]*)]`)
	number  = regexp.MustCompile(`\b\d+\b`)
	// dropped are fields that no two runs share, wherever they are.
	dropped = []string{"managedFields", "resourceVersion", "uid", "selfLink", "creationTimestamp", "generation", "nodePort", "generateName"}
	// unordered are lists whose order follows addresses or moments.
	unordered = []string{"endpoints", "subsets", "addresses", "notReadyAddresses", "conditions", "taints", "ownerReferences", "volumesAttached"}
)

// newLeveller knows the namespace of the story and the names that the server
// has generated in it: name to prefix. Objects with the same prefix become
// indistinguishable, as it is chance which of them does what.
func newLeveller(namespace string, generated map[string]string) *leveller {
	names := make([]string, 0, len(generated))
	for name := range generated {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, name := range names {
		pairs = append(pairs, name, generated[name]+"*")
	}
	return &leveller{names: strings.NewReplacer(append(pairs, namespace, "$NS")...), made: madeNames(generated)}
}

// madeNames uses that the server makes suffixes of five of these letters.
func madeNames(generated map[string]string) *regexp.Regexp {
	var prefixes []string
	for _, prefix := range generated {
		if !slices.Contains(prefixes, regexp.QuoteMeta(prefix)) {
			prefixes = append(prefixes, regexp.QuoteMeta(prefix))
		}
	}
	if len(prefixes) == 0 {
		return nil
	}
	slices.Sort(prefixes)
	return regexp.MustCompile(`\b(` + strings.Join(prefixes, "|") + `)[bcdfghjklmnpqrstvwxz2456789]{5}\b`)
}

// text levels a string. A prefix may hold the namespace, hence two passes.
func (l *leveller) text(s string) string {
	if l.made != nil {
		s = l.made.ReplaceAllString(s, "$1*")
	}
	s = l.names.Replace(l.names.Replace(s))
	s = timestamp.ReplaceAllStringFunc(s, timeForm)
	for _, p := range patterns {
		s = p.pattern.ReplaceAllString(s, p.with)
	}
	return sharers.ReplaceAllStringFunc(s, func(found string) string {
		parts := sharers.FindStringSubmatch(found)
		return parts[1] + "[" + strings.Join(slices.Sorted(strings.FieldsSeq(parts[2])), " ") + "]"
	})
}

// form is the text without its numbers.
func (l *leveller) form(s string) string { return number.ReplaceAllString(l.text(s), "#") }

// object levels a decoded JSON object; the original stays as it is.
func (l *leveller) object(o map[string]any) map[string]any {
	levelled, _ := l.value("", o).(map[string]any)
	meta := fields(o, "metadata")
	if status := fields(levelled, "status"); status != nil && status["observedGeneration"] != nil && meta["generation"] != nil {
		status["observedGeneration"] = map[bool]string{true: "<current>", false: "<behind>"}[status["observedGeneration"] == meta["generation"]]
	}
	if o["kind"] == "Secret" && o["type"] == "kubernetes.io/service-account-token" {
		for key := range fields(levelled, "data") {
			fields(levelled, "data")[key] = "<data>"
		}
	}
	return levelled
}

func (l *leveller) value(key string, v any) any {
	switch v := v.(type) {
	case string:
		if held, ok := certificate(v); ok {
			return l.value("", held)
		}
		return l.text(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, inner := range v {
			if !slices.Contains(dropped, k) {
				out[l.text(k)] = l.value(k, inner)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = l.value("", inner)
		}
		if slices.Contains(unordered, key) {
			slices.SortStableFunc(out, func(a, b any) int { return strings.Compare(encode(a), encode(b)) })
		}
		return out
	}
	return v
}

// certificatePEM is how every certificate in PEM begins, encoded once more.
var certificatePEM = base64.StdEncoding.EncodeToString([]byte("-----BEGIN CERTIFICATE-----"))

// certificate says what an encoded certificate holds that two that are issued alike have in common.
func certificate(encoded string) (map[string]any, bool) {
	if !strings.HasPrefix(encoded, certificatePEM) {
		return nil, false
	}
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, false
	}
	held, err := certs.Describe(text)
	return held, err == nil
}

// identity names an object for a reader: kind, namespace where it is not the
// story's, and levelled name.
func (l *leveller) identity(o map[string]any) string {
	kind, _ := o["kind"].(string)
	meta := fields(o, "metadata")
	name, _ := meta["name"].(string)
	namespace, _ := meta["namespace"].(string)
	if version, _ := o["apiVersion"].(string); strings.Contains(version, ".") {
		kind += "." + strings.Split(strings.Split(version, "/")[0], ".")[0]
	}
	name = l.text(name)
	if namespace = l.text(namespace); namespace != "" && namespace != "$NS" {
		name = namespace + "/" + name
	}
	return kind + " " + name
}

func fields(o map[string]any, key string) map[string]any {
	inner, _ := o[key].(map[string]any)
	return inner
}

func encode(v any) string {
	// What was decoded from JSON can be encoded.
	b, _ := json.Marshal(v)
	return string(b)
}
