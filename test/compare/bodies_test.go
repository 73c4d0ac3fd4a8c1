package compare

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// sent is a request of the deployment controller with a body.
func sent(t *testing.T, verb, reference, query, body string, code int) harness.AuditEvent {
	return request(t, `{"verb":"`+verb+`",`+user+`,"requestURI":"/x?`+query+`","objectRef":`+reference+`,"responseStatus":{"code":`+encode(code)+`},"requestObject":`+body+`}`)
}

func TestBodiesAreKeptOncePerObject(t *testing.T) {
	const pods, web, webStatus = `{"resource":"pods","namespace":"story-0001"}`, `{"resource":"pods","name":"web-bcdfg"}`, `{"resource":"pods","name":"web-bcdfg","subresource":"status"}`
	made := func(uid string) string {
		return `{"kind":"Pod","metadata":{"generateName":"web-","namespace":"story-0001","uid":"` + uid + `","creationTimestamp":null}}`
	}
	r := NewRecord("story-0001", nil, []harness.AuditEvent{
		sent(t, "create", pods, "", made("a"), 201), sent(t, "create", pods, "", made("b"), 201),
		sent(t, "create", pods, "", `{"kind":"Pod","metadata":{"name":"lost"}}`, 409),
		sent(t, "create", pods, "", `{"kind":"Pod","metadata":{"name":"no"}}`, 403),
		sent(t, "update", web, "", `{"kind":"Pod","metadata":{"name":"web-bcdfg"}}`, 200),
		sent(t, "delete", web, "", `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background","preconditions":{"uid":"u","resourceVersion":"7"}}`, 200),
		sent(t, "delete", web, "", `null`, 200),
		sent(t, "patch", web, "", `{"metadata":{"uid":"u","finalizers":[],"labels":{"a":"b"}}}`, 200),
		sent(t, "patch", web, "", `{"metadata":{"finalizers":null,"labels":{"a":"b"}}}`, 200),
		sent(t, "patch", web, "", `{"metadata":{"uid":"u"},"spec":{"x":1}}`, 200),
		sent(t, "patch", web, "", `{"spec":{"x":1}}`, 200),
		sent(t, "patch", web, "", `[{"op":"test","path":"/metadata/resourceVersion","value":"7"},{"op":"remove","path":"/x"}]`, 200),
		sent(t, "patch", web, "fieldManager=me&force=true", `{"apiVersion":"v1","kind":"Pod"}`, 200),
		sent(t, "patch", web, "", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-bcdfg"}}`, 200),
		sent(t, "patch", webStatus, "", `{"status":{"n":3,"$setElementOrder/conditions":[{"type":"A"}],"conditions":[{"type":"A"},{"type":"B","reason":"r"}]}}`, 200),
	}, nil)
	want := map[string][]string{
		"create pods web-*":       {"kind: Pod\nmetadata:\n  generateName: web-\n"},
		"create pods no":          {"kind: Pod\nmetadata:\n  name: \"no\"\n"},
		"delete pods web-*":       {"no options\n", "propagationPolicy: Background\n"},
		"patch pods web-*":        {"apply as me by force\napiVersion: v1\nkind: Pod\n", "json\n- op: remove\n  path: /x\n", "merge\napiVersion: v1\nkind: Pod\nmetadata:\n  name: web-*\n", "merge\nmetadata:\n  finalizers: null\n  labels:\n    a: b\n", "merge\nspec:\n  x: 1\n"},
		"patch pods/status web-*": {"merge\n.status.conditions[].reason\n.status.conditions[].type\n.status.n\n"},
	}
	if diff := cmp.Diff(want, r.Bodies["deployment-controller"]); diff != "" {
		t.Error(diff)
	}
	guards := map[string][]string{"delete pods": {"none", "uid resourceVersion"}, "patch pods": {"none", "resourceVersion", "uid"}, "patch pods/status": {"none"}}
	if diff := cmp.Diff(guards, r.Guards["deployment-controller"]); diff != "" {
		t.Error(diff)
	}
}

func TestWhatOursSendsTheReferenceHasSent(t *testing.T) {
	bodies := func(what string, texts ...string) *Record {
		return &Record{Bodies: map[string]map[string][]string{"c": {what: texts}}}
	}
	guards := func(texts ...string) *Record {
		return &Record{Guards: map[string]map[string][]string{"c": {"delete pods": texts}}}
	}
	const made, sets = "create pods web-*", "create sets.apps web"
	for name, c := range map[string]struct {
		reference, ours *Record
		want            string
	}{
		"the same":                        {bodies(made, "a", "b"), bodies(made, "a", "b"), ""},
		"one not sent":                    {bodies(made, "a", "b"), bodies(made, "a"), ""},
		"another":                         {bodies(made, "a\nb\n"), bodies(made, "a\nc\n"), "body create pods web-*:   a\n- b\n+ c"},
		"another that is nearer to one":   {bodies(made, "a\nb\n", "x\ny\n"), bodies(made, "x\nz\n"), "body create pods web-*:   x\n- y\n+ z"},
		"another name":                    {bodies("create pods a", "a"), bodies("create pods b", "a"), "body create pods b: only with ours:\na"},
		"another verb is found elsewhere": {bodies(made, "a"), bodies(sets, "a"), ""},
		"a request with a like beginning": {bodies("create pods/eviction a", "a"), bodies("create pods a", "a"), ""},
		"the same guards":                 {guards("uid"), guards("uid"), ""},
		"more guards":                     {guards("none"), guards("uid"), "guard delete pods: - none\n+ uid"},
		"no guards at times":              {guards("uid"), guards("none", "uid"), "guard delete pods: - uid\n+ none, uid"},
		"guards of a request of ours":     {&Record{}, guards("uid"), ""},
	} {
		var got []string
		for _, f := range Compare("s", c.reference, c.ours) {
			got = append(got, f.Kind+" "+f.Subject+": "+f.Detail)
		}
		if diff := cmp.Diff(c.want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
