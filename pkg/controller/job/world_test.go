package job

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// world is the server, a controller whose caches lag and that is killed, and
// what becomes of its pods.
type world struct {
	*testworld.World
	t *testing.T
	*server
	*rig
	podWatch, jobWatch, workloadWatch, groupWatch *fixture.Watch

	clock time.Time
	waits bool
	// wait is how long the controller waits; time passes by that when it is exact.
	wait  time.Duration
	exact bool
	// patient tells the controller to replace rejected pods ever more rarely, and
	// rejects whether nodes reject pods now.
	patient bool
	rejects func() bool
}

func newWorld(t *testing.T, seed uint64, j *batchv1.Job) *world {
	w := &world{World: testworld.New(seed), t: t, clock: noon, rejects: func() bool { return false }}
	w.server = newServer(w.Rand, j)
	w.server.now = func() time.Time { return w.clock }
	w.restart()
	w.Add(
		testworld.Actor{Name: "controller", Step: w.reconcile},
		testworld.Actor{Name: "pod watch", Step: func() string { return w.podWatch.Show() }},
		testworld.Actor{Name: "job watch", Step: func() string { return w.jobWatch.Show() }},
		testworld.Actor{Name: "kubelet", Step: w.kubelet},
		testworld.Actor{Name: "time", Step: w.pass},
		w.times("kill", 5, func() string {
			w.LifeLeft = w.Rand.IntN(6)
			return fmt.Sprintf("due after %d more calls", w.LifeLeft)
		}),
	)
	w.Always(w.server.broken)
	return w
}

// restart gives a controller that knows nothing but a fresh list.
func (w *world) restart() {
	client := &fake.Clientset{}
	client.AddReactor("*", "*", w.server.handle)
	w.rig = newRigWith(w.t, client, w.options)
	w.LookLive(w.server.look)
	w.rig.Clock.SetTime(w.clock)
	w.rig.patient = w.patient
	w.LifeLeft = -1
	w.podWatch = fixture.NewWatch(w.Server, w.pods, w.podIndex)
	w.jobWatch = fixture.NewWatch(w.Server, w.server.jobs(), w.jobIndex)
	if w.together {
		w.workloadWatch = fixture.NewWatch(w.Server, w.server.workloads, w.rig.workloads)
		w.groupWatch = fixture.NewWatch(w.Server, w.server.groups, w.rig.groups)
	}
}

// options are those of the next controller.
func (w *world) options(o *Options, r *fixture.Rig) {
	if w.together {
		together(o, r)
	}
}

// reconcile does what the runner does: hold the key back, or sync it.
func (w *world) reconcile() string {
	if fixture.Held(context.Background(), w.Controller.jobs.Writes, pi) {
		return ""
	}
	before, waited, forgotten := w.Version, w.waits, w.forgotten()
	w.server.reconciling = true
	result := w.sync(context.Background(), pi)
	w.server.reconciling = false
	w.wait = result.After()
	w.waits = w.wait > 0
	switch {
	case w.LifeLeft == 0:
		w.restart()
		return "was killed and started again"
	case result.Err() != nil:
		return "failed: " + result.Err().Error()
	case len(forgotten) > 0:
		w.stillForgotten(forgotten)
		return "dealt with " + strings.Join(forgotten, ", ")
	case w.Version == before && w.waits && !waited:
		return "waits"
	case w.Version == before:
		return ""
	}
	s := w.server.job.Status
	return fmt.Sprintf("made %d writes; %s", w.Version-before, written(s))
}

// kubelet starts pods, ends them one way or the other, and finishes those that are deleted.
func (w *world) kubelet() string {
	for _, name := range sortedNames(w.server.pods) {
		p := w.server.pods[name].DeepCopy()
		terminal := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		switch {
		case !terminal && p.DeletionTimestamp != nil:
			w.server.end(p, corev1.PodFailed, 143)
			return "stopped " + name
		case terminal && p.DeletionTimestamp != nil && len(p.Finalizers) == 0:
			fixture.Remove(w.Server, w.pods, name)
			return "finished " + name
		case p.Status.Phase == "" && w.rejects():
			p.Spec.NodeName = "n"
			p.Status.Phase, p.Status.Reason = corev1.PodFailed, "OutOfcpu"
			with("Rejected")(p)
			w.server.put(p)
			return name + " was rejected"
		case p.Status.Phase == "":
			p.Status.Phase = corev1.PodRunning
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			w.server.put(p)
			return "started " + name
		case !terminal && w.Rand.IntN(3) == 0:
			w.server.end(p, corev1.PodFailed, int32(1+w.Rand.IntN(2)))
			return name + " failed"
		case !terminal:
			w.server.end(p, corev1.PodSucceeded, 0)
			return name + " succeeded"
		}
	}
	return ""
}

// pass lets time pass while the controller waits for it.
func (w *world) pass() string {
	if !w.waits {
		return ""
	}
	w.waits = false
	passed := 15 * time.Minute
	if w.exact {
		passed = w.wait
	}
	w.clock = w.clock.Add(passed)
	w.rig.Clock.SetTime(w.clock)
	return w.clock.Format(time.TimeOnly)
}

func (w *world) times(name string, n int, do func() string) testworld.Actor {
	return testworld.Actor{Name: name, Step: func() string {
		if n == 0 || finished(w.server.job) {
			return ""
		}
		n--
		return do()
	}}
}

// evict deletes running pods from outside.
func (w *world) evict(n int) testworld.Actor {
	return w.times("eviction", n, func() string {
		for _, name := range sortedNames(w.server.pods) {
			if p := w.server.pods[name].DeepCopy(); p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil && len(p.Finalizers) > 0 {
				p.DeletionTimestamp, p.DeletionGracePeriodSeconds = ptr.To(ago(0)), ptr.To[int64](30)
				w.server.put(p)
				return name
			}
		}
		return "found nobody"
	})
}

// end runs the world and checks that all is counted once.
func (w *world) end(seed uint64) {
	w.t.Helper()
	if err := w.Run(20000); err != nil {
		w.t.Fatalf("seed %d: %v", seed, err)
	}
	fail := func(format string, args ...any) {
		w.t.Helper()
		w.t.Fatalf("seed %d: %s\n%s\n%s", seed, fmt.Sprintf(format, args...), written(w.server.job.Status), w.Transcript())
	}
	j := w.server.job
	if !finished(j) {
		fail("the Job has not ended")
	}
	for _, p := range w.server.pods {
		if tracked(p) {
			fail("%s has its finalizer", p.Name)
		}
	}
	succeeded, done, failed := w.server.ledger()
	if conditionOf(j, batchv1.JobFailed) != nil {
		// A pod that succeeded after the Job was given up may count as failed, but once.
		if n := int(j.Status.Succeeded + j.Status.Failed); !indexed(j) && j.Spec.PodFailurePolicy == nil && n != succeeded+failed {
			fail("%d pods ended", succeeded+failed)
		}
		if n := int(j.Status.Failed); n > succeeded+failed || (n < failed && j.Spec.PodFailurePolicy == nil) {
			fail("%d pods failed, %d succeeded", failed, succeeded)
		}
		succeeded = int(j.Status.Succeeded)
		done = w.amongThem(done)
	} else if j.Spec.PodFailurePolicy == nil && j.Spec.SuccessPolicy == nil && int(j.Status.Failed) != failed {
		fail("%d pods failed", failed)
	}
	if j.Spec.SuccessPolicy != nil { // what ends after the Job has succeeded need not be counted
		done = w.amongThem(done)
		if n := int(j.Status.Failed); n+len(done) > w.Made {
			fail("%d pods failed of %d", failed, w.Made)
		}
	}
	if !indexed(j) && int(j.Status.Succeeded) != succeeded {
		fail("%d pods succeeded", succeeded)
	}
	if indexed(j) && (j.Status.CompletedIndexes != inWords(done) || int(j.Status.Succeeded) != len(done)) {
		fail("indexes %s succeeded", inWords(done))
	}
	if i, wrong := w.server.givenUpForNothing(listed(w.t, ptr.Deref(j.Status.FailedIndexes, ""))); wrong {
		fail("index %d was given up and none of its pods failed", i)
	}
	if u := j.Status.UncountedTerminatedPods; len(u.Succeeded)+len(u.Failed)+int(j.Status.Active)+int(*j.Status.Terminating) > 0 {
		fail("something is left")
	}
}

// amongThem are the indexes that the status says are complete, when each of them is;
// of a Job that is given up, or has enough, not all that end are counted.
func (w *world) amongThem(done map[int]bool) map[int]bool {
	w.t.Helper()
	told := listed(w.t, w.server.job.Status.CompletedIndexes)
	for i := range told {
		if !done[i] {
			w.t.Fatalf("index %d counts as complete, and no pod of it succeeded\n%s", i, w.Transcript())
		}
	}
	return told
}

// listed reads what a status says of indexes, such as 1,3-5.
func listed(t *testing.T, text string) map[int]bool {
	t.Helper()
	all := map[int]bool{}
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			continue
		}
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil {
			t.Fatalf("indexes %q", text)
		}
		for i := first; i <= last; i++ {
			all[i] = true
		}
	}
	return all
}

// inWords is what a status says of indexes: three in a row and more as a range.
func inWords(all map[int]bool) string {
	var parts []string
	list := slices.Sorted(maps.Keys(all))
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n] == list[0]+n {
			n++
		}
		switch n {
		case 1:
			parts = append(parts, fmt.Sprint(list[0]))
		case 2:
			parts = append(parts, fmt.Sprint(list[0]), fmt.Sprint(list[1]))
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", list[0], list[n-1]))
		}
		list = list[n:]
	}
	return strings.Join(parts, ",")
}

func TestAWorldWithKillsCountsEachPodOnce(t *testing.T) {
	for name, j := range map[string]func() *batchv1.Job{
		"by pod":                 func() *batchv1.Job { return newJob(6, fresh, parallel(3), limit(1000)) },
		"by pod, given up":       func() *batchv1.Job { return newJob(30, fresh, parallel(4), limit(2)) },
		"by index":               func() *batchv1.Job { return newJob(6, fresh, indexedMode, parallel(3), limit(1000)) },
		"by index, with limits":  func() *batchv1.Job { return newJob(6, fresh, limitPerIndex(1), parallel(3), limit(1000)) },
		"by index, few may fail": func() *batchv1.Job { return newJob(6, fresh, limitPerIndex(0), maxFailed(1), parallel(3), limit(1000)) },
		"replaced when failed":   func() *batchv1.Job { return newJob(5, fresh, replaceFailed, parallel(2), limit(1000)) },
		"with a failure policy":  func() *batchv1.Job { return newJob(5, fresh, rules(exit(ignore, in, 1)), parallel(2), limit(3)) },
		"a work queue":           func() *batchv1.Job { return newJob(3, fresh, workQueue, parallel(3), limit(1000)) },
		"a success policy": func() *batchv1.Job {
			return newJob(6, fresh, successRules(batchv1.SuccessPolicyRule{SucceededCount: ptr.To(int32(3))}), limit(1000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range testworld.Seeds(t, 60) {
				w := newWorld(t, seed, j())
				if w.server.job.Spec.SuccessPolicy == nil {
					w.Add(w.evict(3))
				}
				w.end(seed)
			}
		})
	}
}
