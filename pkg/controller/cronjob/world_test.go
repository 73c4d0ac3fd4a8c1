package cronjob

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

// sim is a CronJob and its Jobs, on a server and in caches that lag behind it,
// with the plan under test, whose process is killed now and then, a clock, Jobs
// that end, and a user.
type sim struct {
	*testworld.World
	cron, cachedCron *batchv1.CronJob
	version, cached  int
	jobs, cachedJobs []*batchv1.Job
	// behind is set from the controller's own writes, or its start, until the
	// caches have been brought up to date.
	behind bool
	now    time.Time
	ticks  int
	user   int
	// safe is set when nobody kills the process any more.
	safe bool
	// made is how often a Job of that name was created, wrong what went wrong.
	made  map[string]int
	wrong string
}

func newSim(seed uint64, policy batchv1.ConcurrencyPolicy) *sim {
	c := hourly(created(noon))
	c.Spec.ConcurrencyPolicy = policy
	s := &sim{World: testworld.New(seed), cron: c, cachedCron: c, now: noon, ticks: 60, user: 8, made: map[string]int{}}
	s.Add(testworld.Actor{Name: "controller", Step: s.stepController}, testworld.Actor{Name: "caches", Step: s.stepCaches},
		testworld.Actor{Name: "clock", Step: s.stepClock}, testworld.Actor{Name: "pods", Step: s.stepPods}, testworld.Actor{Name: "user", Step: s.stepUser})
	s.Always(func() string { return s.wrong }, s.oneAJobATime, s.policyHolds)
	return s
}

func (s *sim) stepController() string {
	if s.behind {
		return ""
	}
	o := observed{cron: s.cachedCron, jobs: s.cachedJobs, live: map[types.UID]bool{}}
	version := s.cached
	if forgotten(o.cron, o.jobs) {
		o.cron, version = s.cron, s.version
	}
	for _, ref := range missing(&o.cron.Status, o.jobs) {
		o.live[ref.UID] = slices.ContainsFunc(s.jobs, func(j *batchv1.Job) bool { return j.UID == ref.UID })
	}
	did := s.carryOut(plan(o, s.now), version)
	s.behind = s.behind || did != nil
	return strings.Join(did, ", ")
}

// carryOut does what a plan wants, and what follows from it, unless the process is
// killed before the status.
func (s *sim) carryOut(p act.Plan, version int) (did []string) {
	var results act.Results
	for {
		for _, stage := range p.Stages {
			for _, step := range stage.Steps {
				result := s.take(step)
				if result.Step = step; result.Became == act.Done {
					did = append(did, step.Verb()+" "+step.About().GetName())
				}
				results = append(results, result)
			}
		}
		next := p.Then
		if _, err := results.Failed(); err != nil {
			next = p.Else
		}
		if next == nil {
			break
		}
		p = next(results)
	}
	if !s.safe && s.Rand.IntN(8) == 0 {
		if did != nil {
			did = append(did, "killed")
		}
		return did
	}
	report := p.Status(results).(act.Status)
	after := report.Of.(*batchv1.CronJob).DeepCopy()
	report.Set(after)
	if statusLine(report.Of.(*batchv1.CronJob).Status) != statusLine(after.Status) {
		did = append(did, s.write(version, after.Status))
	}
	return did
}

func (s *sim) take(step act.Step) act.Result {
	at := slices.IndexFunc(s.jobs, func(j *batchv1.Job) bool { return j.Name == step.About().GetName() })
	switch wanted := step.(type) {
	case act.Check:
		if at < 0 {
			return act.Result{Became: act.Refused, Err: wanted.Is(nil)}
		}
		return act.Result{Became: act.Done, Object: s.jobs[at]}
	case act.Delete:
		if at < 0 || s.jobs[at].UID != wanted.Of.GetUID() {
			return act.Result{Became: act.WasGone}
		}
		s.remove(wanted.Of.GetName())
		return act.Result{Became: act.Done}
	case act.Create:
		if at >= 0 {
			return act.Result{Became: act.Existed, Object: s.jobs[at]}
		}
		j := wanted.Object.(*batchv1.Job)
		s.made[j.Name]++
		j.UID = types.UID(fmt.Sprintf("%s-%d", j.Name, s.made[j.Name]))
		j.Status.StartTime = &metav1.Time{Time: s.now}
		s.jobs = append(slices.Clone(s.jobs), j)
		return act.Result{Became: act.Done, Object: j}
	}
	return act.Result{} // an event
}

func (s *sim) remove(name string) []string {
	before := len(s.jobs)
	s.jobs = slices.DeleteFunc(slices.Clone(s.jobs), func(j *batchv1.Job) bool { return j.Name == name })
	if len(s.jobs) == before {
		return nil
	}
	return []string{"delete " + name}
}

func (s *sim) write(version int, status batchv1.CronJobStatus) string {
	if version != s.version {
		return "conflict"
	}
	if a, b := lastOf(&s.cron.Status), lastOf(&status); a != nil && (b == nil || b.Before(*a)) {
		s.wrong = "the last start went back"
	}
	s.cron = s.cron.DeepCopy()
	s.cron.Status = status
	s.version++
	return "status " + statusLine(status)
}

func statusLine(status batchv1.CronJobStatus) string {
	return fmt.Sprint(names(status.Active), lastOf(&status), status.LastSuccessfulTime)
}

func (s *sim) stepCaches() string {
	if !s.behind && s.cached == s.version && slices.Equal(s.cachedJobs, s.jobs) {
		return ""
	}
	s.cachedCron, s.cached, s.behind = s.cron, s.version, false
	s.cachedJobs = slices.Clone(s.jobs)
	return "up to date"
}

func (s *sim) stepClock() string {
	if s.ticks == 0 {
		return ""
	}
	s.ticks--
	s.now = s.now.Add(time.Duration(1+s.Rand.IntN(50)) * time.Minute)
	return s.now.Format("02 15:04")
}

// stepPods lets a Job end, well or not.
func (s *sim) stepPods() string {
	at := slices.IndexFunc(s.jobs, func(j *batchv1.Job) bool { return ended(j) == "" })
	if at < 0 || s.Rand.IntN(3) > 0 {
		return ""
	}
	j := s.jobs[at].DeepCopy()
	if s.Rand.IntN(2) == 0 {
		failed(j)
	} else {
		over(batchv1.JobComplete)(j)
		j.Status.CompletionTime = &metav1.Time{Time: s.now}
	}
	s.jobs = slices.Clone(s.jobs)
	s.jobs[at] = j
	return fmt.Sprintf("%s is %s", j.Name, ended(j))
}

// stepUser deletes a Job that the status knows of, or touches the CronJob.
func (s *sim) stepUser() string {
	if s.user == 0 || s.Rand.IntN(4) > 0 {
		return ""
	}
	s.user--
	if s.Rand.IntN(2) == 0 {
		s.version++
		return "touches it"
	}
	for _, j := range s.jobs {
		at, _ := madeFor(s.cron, j)
		if known := lastOf(&s.cron.Status); known != nil && !at.After(*known) {
			return strings.Join(s.remove(j.Name), "")
		}
	}
	return ""
}

func (s *sim) oneAJobATime() string {
	for name, times := range s.made {
		if times > 1 {
			return fmt.Sprintf("%s was created %d times", name, times)
		}
	}
	for _, j := range s.jobs {
		// A Job is named after the minute that it is made for.
		minute, err := strconv.ParseInt(j.Name[strings.LastIndex(j.Name, "-")+1:], 10, 64)
		if err != nil || time.Unix(minute*60, 0).After(s.now) {
			return j.Name + " came too early"
		}
	}
	return ""
}

// came reports whether the Job has ended so.
func came(j *batchv1.Job, how batchv1.JobConditionType) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == how && c.Status == "True" })
}

func (s *sim) policyHolds() string {
	running := 0
	for _, j := range s.jobs {
		if !came(j, batchv1.JobComplete) && !came(j, batchv1.JobFailed) {
			running++
		}
	}
	if running > 1 && s.cron.Spec.ConcurrencyPolicy != batchv1.AllowConcurrent {
		return fmt.Sprintf("%d run with %s", running, s.cron.Spec.ConcurrencyPolicy)
	}
	return ""
}

// settled is what must hold when nobody has anything to do any more.
func (s *sim) settled() string {
	var running, listed []string
	complete, failed := 0, 0
	for _, j := range s.jobs {
		switch {
		case came(j, batchv1.JobComplete):
			complete++
		case came(j, batchv1.JobFailed):
			failed++
		default:
			running = append(running, j.Name)
		}
	}
	for _, ref := range s.cron.Status.Active {
		listed = append(listed, ref.Name)
	}
	slices.Sort(listed)
	slices.Sort(running)
	switch {
	case !slices.Equal(listed, running):
		return fmt.Sprintf("%v run, and %v are listed", running, listed)
	case complete > 3 || failed > 1:
		return fmt.Sprintf("%d complete and %d failed Jobs are kept", complete, failed)
	case len(s.made) == 0:
		return "nothing was ever started"
	}
	return ""
}

func TestSmallWorld(t *testing.T) {
	for _, policy := range []batchv1.ConcurrencyPolicy{batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent} {
		t.Run(string(policy), func(t *testing.T) {
			for seed := range testworld.Seeds(t, 300) {
				s := newSim(seed, policy)
				if err := s.Run(5000); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				s.safe = true
				for s.stepCaches()+s.stepController() != "" {
				}
				if what := s.settled(); what != "" {
					t.Fatalf("seed %d: %s\n%s", seed, what, s.Transcript())
				}
			}
		})
	}
}
