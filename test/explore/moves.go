package explore

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The moves that several families have. A target is RES/NAME.

// Change changes a field of the object of a file, below "spec" or another path,
// except the fields that the API server never lets change.
func Change(file, target, under string, except ...string) func(*Draw, *Script) []string {
	return func(d *Draw, s *Script) []string {
		o := s.Objects[file]
		if o == nil {
			return nil
		}
		field := d.Field(Kind(o), under, except...)
		patch := Object{}
		if _, there := Get(o, field.Path); there && d.Chance(25) {
			Set(patch, field.Path, nil)
		} else {
			Set(patch, field.Path, d.Value(field))
		}
		return []string{"patch " + target + " " + jsonOf(patch)}
	}
}

func jsonOf(v any) string {
	encoded, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(encoded)
}

// Line draws one of the lines. A "%d" in one becomes a number from 0 to 3.
func Line(lines ...string) func(*Draw, *Script) []string {
	return func(d *Draw, _ *Script) []string { return []string{d.numbered(One(d, lines...))} }
}

// Lines draws one of the groups of lines.
func Lines(groups ...[]string) func(*Draw, *Script) []string {
	return func(d *Draw, _ *Script) []string {
		var out []string
		for _, line := range One(d, groups...) {
			out = append(out, d.numbered(line))
		}
		return out
	}
}

// About draws one of the lines, and one of the names for every "%s" in it.
func About(names []string, lines ...string) func(*Draw, *Script) []string {
	return func(d *Draw, _ *Script) []string {
		line := strings.ReplaceAll(One(d, lines...), "%s", One(d, names...))
		return []string{d.numbered(line)}
	}
}

func (d *Draw) numbered(line string) string {
	out := ""
	for i := 0; i < len(line); i++ {
		if i+1 < len(line) && line[i] == '%' && line[i+1] == 'd' {
			out += fmt.Sprint(d.Int(0, 3))
			i++
			continue
		}
		out += line[i : i+1]
	}
	return out
}

// PodMoves are what happens to the pods of an object.
func PodMoves(target string) []Move {
	// Jobs look after a finalizer of their own.
	tracking, hold := "null", `["x.example/hold"]`
	if strings.HasPrefix(target, "jobs/") {
		tracking, hold = `["batch.kubernetes.io/job-tracking"]`, `["batch.kubernetes.io/job-tracking","x.example/hold"]`
	}
	return []Move{
		{3, Line("unready "+target+"#%d", "ready "+target+"#%d")},
		{3, Line("fail "+target+"#%d exitcode=%d", "fail "+target+" exitcode=1", "fail "+target+"#%d reason=Evicted")},
		{1, Line("succeed " + target + "#%d")},
		{2, Line("kill "+target+"#%d", "kill "+target+"#%d now", "kill "+target+"#%d orphan", "lose "+target+"#%d")},
		{2, Line("label-pod "+target+"#%d app=other", "label-pod "+target+"#%d app-", "label pods,app=other app=web")},
		{2, Line("kubelet off", "kubelet pending", "kubelet slow-start", "kubelet slow-stop")},
		{3, Line("kubelet on")},
		{1, Line(`patch pods,app=web {"metadata":{"finalizers":`+tracking+`}}`, `patch pods,app=web {"metadata":{"ownerReferences":null}}`,
			`patch pods,app=web {"metadata":{"finalizers":`+hold+`}}`, `annotate pods,app=web controller.kubernetes.io/pod-deletion-cost=5`,
			`patch pods,app=web {"spec":{"schedulingGates":null}}`)},
	}
}

// Disturbances are what happens to the manager and to its requests.
func Disturbances(resources ...string) []Move {
	var hooks, faults, lost []string
	for _, resource := range resources {
		status := strings.TrimSuffix(resource, "/status") + "/status"
		hooks = append(hooks, "webhook create "+resource+" 403", "webhook delete "+resource+" 409", "webhook update "+resource+" 500")
		faults = append(faults, "proxy refuse 409 write "+resource+" times=2", "proxy refuse 500 create "+resource+" times=1",
			"proxy refuse 503 delete "+resource+" times=1", "proxy refuse 429 write "+status+" times=1", "proxy refuse 409 write "+status+" times=1",
			"proxy delay 300ms write "+resource+" times=3", "proxy stall 500ms write "+resource+" times=3",
			"proxy watches cut "+resource, "proxy watches expire "+resource)
		lost = append(lost, "proxy lag 1s "+resource, "proxy lose reset write "+resource+" times=1", "proxy lose 504 write "+resource+" times=1",
			"proxy cut write "+resource+" times=1", "proxy lose reset write "+status+" times=1")
	}
	return []Move{
		{1, Line("restart")},
		{1, Line("pass 1s", "pass 3s")},
		{1, Line(hooks...)},
		{2, Line("webhook off")},
		{2, Line(faults...)},
		{1, Line(lost...)},
		{1, Line("proxy off")},
	}
}

// MadeAgain deletes an object and applies it again at once, before the sides are at rest.
func MadeAgain(target, file string) []Move {
	var lines []string
	for _, how := range []string{"background", "foreground", "orphan"} {
		lines = append(lines, "delete "+target+" "+how+"\napply "+file)
	}
	return []Move{{1, Line(lines...)}}
}

// PodTemplate is a template of pods that run, with the labels that a selector wants.
func PodTemplate(labels Object) Object {
	return Object{
		"metadata": Object{"labels": labels},
		"spec":     Object{"containers": []any{Object{"name": "c", "image": "one"}}},
	}
}

// Template is a template of pods with further labels and such, sometimes.
func (d *Draw) Template(labels Object) Object {
	t := PodTemplate(labels)
	m, _ := t["metadata"].(Object)
	if d.Chance(20) {
		m["annotations"] = Object{"x.example/y": "z"}
	}
	if d.Chance(10) {
		labels["tier"] = "a"
	}
	if d.Chance(5) {
		m["finalizers"] = []any{"x.example/hold"}
	}
	if d.Chance(30) {
		t["spec"] = Object{"containers": containers(d)}
	}
	return t
}

// Quota limits the pods of the script's namespace for a while: to none more, or to a few.
func Quota(d *Draw, s *Script) []string {
	if s.Objects["quota.yaml"] == nil {
		s.Objects["quota.yaml"] = Object{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": Object{"name": "q"}, "spec": Object{"hard": Object{"pods": "2"}}}
	} else if d.Chance(60) {
		return []string{"delete resourcequotas/q"}
	}
	return []string{"apply quota.yaml", fmt.Sprintf(`status resourcequotas/q {"hard":{"pods":"2"},"used":{"pods":"%d"}}`, d.Int(1, 2))}
}

// Dress gives an object fields that it does not have yet: some of those below
// each path.
func (d *Draw) Dress(o Object, atMost int, unders []string, except ...string) {
	for _, under := range unders {
		for range d.Int(0, atMost) {
			field := d.Field(Kind(o), under, except...)
			if _, there := Get(o, field.Path); !there {
				Set(o, field.Path, d.Value(field))
			}
		}
	}
}

// Metadata draws what any object may have.
func (d *Draw) Metadata(name string) Object {
	m := Object{"name": name}
	if d.Chance(20) {
		m["labels"] = Object{"app": One(d, "web", "other")}
	}
	if d.Chance(20) {
		m["annotations"] = Object{"x.example/y": "z"}
	}
	if d.Chance(10) {
		m["finalizers"] = []any{"x.example/hold"}
	}
	return m
}
