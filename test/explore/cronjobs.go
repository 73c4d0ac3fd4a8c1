package explore

import (
	"fmt"
	"slices"
)

// schedules have few times, so that none falls into a play; those of each hour and
// each minute have missed too many once their status says that the last was years ago.
var schedules = []any{"0 0 1 1 *", "0 0 2 1 *", "0 0 3 1 *", "0 0 1 1 *", "@yearly", "30 4 * 2 *", "0 0 31 2 *", "@every 9000h"}

func init() {
	register(&Family{
		Name:     "cronjob",
		Start:    []string{"cronjob-controller", "job-controller", "garbage-collector-controller"},
		Compared: []string{"cronjobs", "jobs", "pods"},
		Begin: func(d *Draw, s *Script) {
			s.Add("web.yaml", drawCronJob(d))
			for i := range d.Int(0, 3) {
				s.Steps = append(s.Steps, ownJob(fmt.Sprint("old-", i))(d, s)...)
			}
			if d.Chance(70) {
				s.Steps = append(s.Steps, missed(d, s)...)
			}
		},
		Moves: slices.Concat([]Move{
			{7, Change("web.yaml", "cronjobs/web", "spec", "spec.jobTemplate", "spec.schedule", "spec.timeZone")},
			{2, Change("web.yaml", "cronjobs/web", "spec.jobTemplate.spec", "spec.jobTemplate.spec.template", "spec.jobTemplate.spec.selector")},
			{1, Change("web.yaml", "cronjobs/web", "spec.jobTemplate.metadata", "spec.jobTemplate.metadata.ownerReferences")},
			{5, missed},
			{4, func(d *Draw, _ *Script) []string {
				// A Job that changes just then wakes the CronJob of the original, and may start what is overdue.
				change := Object{"schedule": One(d, schedules...)}
				if d.Chance(20) {
					change = Object{"timeZone": One(d, "Etc/UTC", "Europe/Berlin", "Pacific/Kiritimati")}
				}
				return []string{"pass 1500ms\npatch cronjobs/web " + jsonOf(Object{"spec": change})}
			}},
			{3, Line(`patch cronjobs/web {"spec":{"suspend":true}}`, `patch cronjobs/web {"spec":{"suspend":false}}`, `patch cronjobs/web {"spec":{"suspend":false}}`)},
			{3, Line(`patch cronjobs/web {"spec":{"successfulJobsHistoryLimit":%d}}`, `patch cronjobs/web {"spec":{"failedJobsHistoryLimit":%d}}`,
				`patch cronjobs/web {"spec":{"successfulJobsHistoryLimit":0,"failedJobsHistoryLimit":0}}`, `patch cronjobs/web {"spec":{"successfulJobsHistoryLimit":null}}`)},
			{4, func(d *Draw, s *Script) []string { return ownJob(fmt.Sprint("old-", d.Int(0, 4)))(d, s) }},
			{2, Line("delete jobs/old-%d", "delete jobs/old-%d orphan", "delete jobs/old-%d foreground", "delete jobs/web-*", "delete jobs/web-* orphan", "delete jobs/web-* foreground")},
			{1, Line(`patch jobs/web-* {"metadata":{"ownerReferences":null}}`, `patch jobs/old-%d {"metadata":{"ownerReferences":null}}`, `patch jobs/old-%d {"metadata":{"finalizers":["x.example/hold"]}}`,
				`patch jobs/old-%d {"metadata":{"finalizers":null}}`)},
			{3, Line("succeed jobs/web-*", "fail jobs/web-* exitcode=%d", "succeed jobs/old-%d", `patch jobs/web-* {"spec":{"suspend":true}}`, `patch jobs/web-* {"spec":{"activeDeadlineSeconds":1}}`)},
			{1, Line("delete cronjobs/web background", "delete cronjobs/web foreground", "delete cronjobs/web orphan")},
			{1, Line("apply web.yaml")},
			{1, Line("kubelet off", "kubelet slow-stop", "kubelet on", "kubelet on")},
		}, Disturbances("jobs", "cronjobs")),
	})
}

func drawCronJob(d *Draw) Object {
	template := d.Template(Object{"app": "web"})
	Set(template, []string{"spec", "restartPolicy"}, "Never")
	o := Object{"apiVersion": "batch/v1", "kind": "CronJob", "metadata": d.Metadata("web"), "spec": Object{
		"schedule": One(d, schedules...), "jobTemplate": Object{"spec": Object{"template": template}}}}
	if d.Chance(30) {
		Set(o, []string{"spec", "jobTemplate", "metadata"}, Object{"labels": Object{"app": "web"}, "annotations": Object{"x.example/y": "z"}})
	}
	d.Dress(o, 3, []string{"spec"}, "spec.jobTemplate")
	d.Dress(o, 2, []string{"spec.jobTemplate.spec"}, "spec.jobTemplate.spec.template", "spec.jobTemplate.spec.selector")
	return o
}

// missed says that the last time was long ago, so that another one is due, or too many.
func missed(d *Draw, _ *Script) []string {
	return []string{`status cronjobs/web {"lastScheduleTime":"` + One(d, "2020-06-01T00:00:00Z", "2025-06-01T00:00:00Z", "2024-01-01T00:00:00Z", "2090-01-01T00:00:00Z") + `"}`}
}

// ownJob is a Job that the CronJob owns and has not made, and that may have ended.
func ownJob(name string) func(*Draw, *Script) []string {
	return func(d *Draw, s *Script) []string {
		file := name + ".yaml"
		lines := []string{"apply " + file}
		if s.Objects[file] == nil {
			owner := Object{"apiVersion": "batch/v1", "kind": "CronJob", "name": "web", "uid": "$(cronjobs/web .metadata.uid)"}
			if !d.Chance(15) {
				owner["controller"] = true
			}
			template := PodTemplate(Object{"app": "web"})
			Set(template, []string{"spec", "restartPolicy"}, "Never")
			s.Objects[file] = Object{"apiVersion": "batch/v1", "kind": "Job", "metadata": Object{"name": name, "ownerReferences": []any{owner}},
				"spec": Object{"template": template, "suspend": true}}
		}
		since := "2020-01-01T00:0" + fmt.Sprint(d.Int(0, 9)) + ":00Z"
		condition := func(kind string) Object { return Object{"type": kind, "status": "True", "lastTransitionTime": since} }
		switch d.Int(0, 2) {
		case 0:
			return append(lines, "status jobs/"+name+" "+jsonOf(Object{"startTime": "2020-01-01T00:00:00Z", "completionTime": since, "succeeded": 1,
				"conditions": []any{condition("SuccessCriteriaMet"), condition("Complete")}}))
		case 1:
			return append(lines, "status jobs/"+name+" "+jsonOf(Object{"startTime": since, "failed": 1,
				"conditions": []any{condition("FailureTarget"), condition("Failed")}}))
		}
		return lines
	}
}
