package explore

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

var moreReady = regexp.MustCompile(`\A(?:  .*\n)*-   ready: (\d)\n\+   ready: (\d)\n(?:  .*\n?)*\z`)

// readyThoughTaken finds pods that could not be deleted and are ready only with ours. The original
// counts them as active, and no more as ready.
func readyThoughTaken(_ *Script, requests []harness.AuditEvent, finding *compare.Finding) string {
	refused := func(r harness.AuditEvent) bool {
		return r.Verb == "delete" && r.ObjectRef != nil && r.ObjectRef.Resource == "pods" && r.ResponseStatus.Code >= http.StatusBadRequest
	}
	ready := moreReady.FindStringSubmatch(finding.Detail)
	if finding.Kind == compare.KindObject && strings.HasPrefix(finding.Subject, "Job ") && ready != nil && ready[1] < ready[2] && slices.ContainsFunc(requests, refused) {
		return "A pod whose deletion is refused is still ready. The original counts it as active, and no more as ready."
	}
	return ""
}

func init() {
	register(&Family{
		Name:     "job",
		Start:    []string{"job-controller", "ttl-after-finished-controller", "garbage-collector-controller"},
		Compared: []string{"jobs", "pods"},
		Begin: func(d *Draw, s *Script) {
			s.Add("web.yaml", drawJob(d))
			s.Objects["indexed.yaml"] = Object{"apiVersion": "batch/v1", "kind": "Job", "metadata": Object{"name": "indexed"}, "spec": limitedJob(d)}
			if d.Chance(15) {
				s.Add("stranger.yaml", Object{"apiVersion": "v1", "kind": "Pod", "metadata": Object{"name": "stranger",
					"labels": Object{"app": "web", "batch.kubernetes.io/controller-uid": "$(jobs/web .metadata.uid)"}},
					"spec": Object{"containers": []any{Object{"name": "c", "image": "one"}}}})
			}
		},
		Moves: slices.Concat([]Move{
			{5, Change("web.yaml", "jobs/web", "spec", "spec.selector", "spec.template", "spec.completionMode", "spec.podFailurePolicy", "spec.successPolicy",
				"spec.managedBy", "spec.manualSelector", "spec.backoffLimitPerIndex", "spec.completions")},
			{2, changeSuspended},
			{4, Line("scale jobs/web %d")},
			{3, Line(`patch jobs/web {"spec":{"completions":1,"parallelism":1}}`, `patch jobs/web {"spec":{"completions":3,"parallelism":3}}`,
				`patch jobs/web {"spec":{"completions":2,"parallelism":2}}`, `patch jobs/web {"spec":{"completions":0,"parallelism":0}}`)},
			{6, Line(`patch jobs/web {"spec":{"suspend":true}}`, `patch jobs/web {"spec":{"suspend":false}}`)},
			{3, Lines([]string{"kubelet slow-stop", `patch jobs/web {"spec":{"suspend":true}}`}, []string{"kubelet slow-stop", "scale jobs/web %d"})},
			{3, takenWhileStopping},
			{1, Line("delete jobs/web background", "delete jobs/web foreground", "delete jobs/web orphan")},
			{1, Line("apply web.yaml")},
			{5, Line("succeed jobs/web#%d", "succeed jobs/web#%d", "succeed jobs/web")},
			{3, Line("fail jobs/web#%d exitcode=%d", "fail jobs/web#%d exitcode=%d container=c", "fail jobs/web exitcode=%d")},
			{4, endedPods},
			{1, Line("kubelet reject OutOfcpu", "kubelet reject OutOfcpu", "kubelet on")},
			{1, Line(`status pods,app=web {"conditions":[{"type":"DisruptionTarget","status":"True","reason":"a"}]}`,
				`status pods,app=web {"conditions":[{"type":"x.example/gate","status":"True"}]}`)},
			{1, Line(`patch jobs/web {"metadata":{"finalizers":null}}`, "label jobs/web app=other", "annotate jobs/web x.example/note=n",
				`status jobs/web {"conditions":null}`)},
			{1, Quota},
		}, MadeAgain("jobs/web", "web.yaml"), PodMoves("jobs/web"), Disturbances("pods", "jobs")),
		Explains: readyThoughTaken,
		Leave: func(_ *Script, before []string, step string) bool {
			return step == "restart" && slices.ContainsFunc(before, failsPods)
		},
	})
}

// changeSuspended changes the template, which only a suspended Job allows.
func changeSuspended(d *Draw, s *Script) []string {
	change := Change("web.yaml", "jobs/web", "spec.template", "spec.template.metadata.ownerReferences")(d, s)
	if d.Chance(40) {
		change = []string{One(d, `patch jobs/web {"spec":{"template":{"spec":{"nodeSelector":{"disk":"ssd"}}}}}`, `patch jobs/web {"spec":{"template":{"metadata":{"labels":{"tier":"a"}}}}}`,
			`patch jobs/web {"spec":{"template":{"spec":{"tolerations":[{"operator":"Exists"}]}}}}`, `patch jobs/web {"spec":{"template":{"metadata":{"annotations":{"x.example/y":"new"}}}}}`)}
	}
	return append([]string{`patch jobs/web {"spec":{"suspend":true}}`}, change...)
}

// limitedJob has indexes that may fail so often, and nothing that may have ended it before.
func limitedJob(d *Draw) Object {
	template := PodTemplate(Object{"app": "indexed"})
	Set(template, []string{"spec", "restartPolicy"}, "Never")
	spec := Object{"template": template, "completionMode": "Indexed", "completions": 3, "parallelism": d.Int(2, 3), "backoffLimitPerIndex": One(d, 0, 0, 1)}
	if d.Chance(40) {
		spec["maxFailedIndexes"] = d.Int(0, 2)
	}
	return spec
}

// takenWhileStopping has a Job take away pods that stop slowly.
func takenWhileStopping(d *Draw, _ *Script) []string {
	return []string{"kubelet on", "apply indexed.yaml", `patch jobs/indexed {"spec":{"suspend":false}}`, "kubelet slow-stop",
		One(d, `patch jobs/indexed {"spec":{"suspend":true}}`, `patch jobs/indexed {"spec":{"suspend":true}}`, "scale jobs/indexed 1"), "kubelet on"}
}

// failsPods reports whether pods of a Job may fail in a step. After a restart the
// original begins its backoff again.
func failsPods(step string) bool {
	word, rest, _ := strings.Cut(step, " ")
	return slices.Contains([]string{"fail", "kill", "lose"}, word) || word == "status" && strings.HasPrefix(rest, "pods") || strings.HasPrefix(step, "kubelet reject")
}

func drawJob(d *Draw) Object {
	template := d.Template(Object{"app": "web"})
	Set(template, []string{"spec", "restartPolicy"}, One(d, "Never", "Never", "Never", "OnFailure"))
	spec := Object{"template": template}
	o := Object{"apiVersion": "batch/v1", "kind": "Job", "metadata": d.Metadata("web"), "spec": spec}
	put := func(field string, value any) { Set(o, []string{"spec", field}, value) }
	if d.Chance(60) {
		put("parallelism", d.Int(1, 3))
	}
	if d.Chance(45) {
		maps.Copy(spec, drawIndexes(d))
	}
	if d.Chance(25) {
		put("podFailurePolicy", Object{"rules": failureRules(d)})
		Set(template, []string{"spec", "restartPolicy"}, "Never")
	}
	if d.Chance(55) {
		Set(template, []string{"spec", "initContainers"}, initContainers(d))
	}
	if d.Chance(8) {
		put("manualSelector", true)
		put("selector", Object{"matchLabels": Object{"app": "web"}})
	}
	d.Dress(o, 4, []string{"spec"}, "spec.template", "spec.selector")
	d.Dress(o, 1, []string{"spec.template"}, "spec.template.metadata.ownerReferences")
	return o
}

// drawIndexes are the fields of a Job whose pods have indexes.
func drawIndexes(d *Draw) Object {
	o := Object{"completionMode": "Indexed", "completions": d.Int(1, 4)}
	if d.Chance(60) {
		o["backoffLimitPerIndex"] = One(d, 0, 0, 0, 1, 2)
		if d.Chance(40) {
			o["maxFailedIndexes"] = d.Int(0, 2)
		}
	}
	if d.Chance(30) {
		o["successPolicy"] = Object{"rules": successRules(d)}
	}
	return o
}

// endedPods fails pods as if at another time, with a sidecar that ended then or has not.
func endedPods(d *Draw, _ *Script) []string {
	ended := func(name, at string) Object {
		return Object{"name": name, "image": "i", "imageID": "i", "ready": false, "restartCount": 0, "state": Object{
			"terminated": Object{"exitCode": d.Int(1, 3), "finishedAt": at}}}
	}
	times := []string{"2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z"}
	if d.Chance(30) {
		slices.Reverse(times)
	}
	status := Object{"phase": "Failed", "containerStatuses": []any{ended("c", times[0])}, "conditions": []any{
		Object{"type": "Ready", "status": "False", "lastTransitionTime": One(d, "2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z")}}}
	if d.Chance(60) {
		along := ended("i", times[1])
		if d.Chance(30) {
			along["state"] = Object{"running": Object{}}
		}
		status["initContainerStatuses"] = []any{along}
	}
	return []string{"status pods,app=web " + jsonOf(status)}
}
