package job

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// described is a plan as a test reads it.
func described(p change) string {
	var parts []string
	if p.conclusion != nil {
		parts = append(parts, string(p.conclusion.terminal()))
	}
	if len(p.create) > 0 && p.create[0] == noIndex {
		parts = append(parts, fmt.Sprintf("create %d", len(p.create)))
	} else if len(p.create) > 0 {
		parts = append(parts, "create "+of(p.create).String())
	}
	for what, pods := range map[string][]*corev1.Pod{"remove": p.remove, "end": p.end} {
		if len(pods) > 0 {
			parts = append(parts, what)
			var names []string
			for _, pod := range pods {
				names = append(names, pod.Name)
			}
			slices.Sort(names)
			parts = append(parts, names...)
		}
	}
	if p.wait > 0 {
		parts = append(parts, "wait "+p.wait.String())
	}
	return strings.Join(parts, " ")
}

func TestPlans(t *testing.T) {
	onIndexes := func(list ...int) (all []*corev1.Pod) {
		for n, i := range list {
			all = append(all, newPodOf(fmt.Sprintf("p%d", n), index(i)))
		}
		return all
	}
	plus := func(all []*corev1.Pod, more ...*corev1.Pod) []*corev1.Pod { return append(all, more...) }
	lost := func(name string, i, before int, at time.Duration) *corev1.Pod {
		return newPodOf(name, ended(corev1.PodFailed, 1, at), index(i), failures(before, 0))
	}
	for name, tc := range map[string]struct {
		job  *batchv1.Job
		pods []*corev1.Pod
		want string
	}{
		"the first pods":                                  {newJob(4, parallel(3), fresh), nil, "create 3"},
		"as many as wanted":                               {newJob(4, parallel(3)), some(3), ""},
		"no more than are left to do":                     {newJob(4, parallel(3), counted(3, 0)), nil, "create 1"},
		"no parallelism":                                  {newJob(4, parallel(0)), nil, ""},
		"at most 500 at once":                             {newJob(2000, fresh), nil, "create 500"},
		"less parallelism":                                {newJob(4, parallel(1)), []*corev1.Pod{newPodOf("a"), newPodOf("b", unready), newPodOf("c")}, "remove a b"},
		"a success that leaves one too many":              {newJob(2, parallel(2)), []*corev1.Pod{newPodOf("a", success), newPodOf("b"), newPodOf("c")}, "remove b"},
		"suspended":                                       {newJob(4, suspend), some(2), "remove p0 p1"},
		"being deleted":                                   {newJob(4, leaving), some(2), ""},
		"a Job that ends ends its pods":                   {newJob(4, limit(0)), []*corev1.Pod{newPodOf("a", broken), newPodOf("b")}, "Failed end b"},
		"after a failure, a while":                        {newJob(2), []*corev1.Pod{newPodOf("a", just), newPodOf("b")}, "wait 10s"},
		"the rest of a backoff":                           {newJob(2), []*corev1.Pod{newPodOf("a", ended(corev1.PodFailed, 1, 9500*time.Millisecond)), newPodOf("b")}, "wait 1s"},
		"after a failure, later":                          {newJob(2), []*corev1.Pod{newPodOf("a", broken), newPodOf("b")}, "create 1"},
		"the deadline comes before the backoff":           {newJob(2, deadline(3605)), []*corev1.Pod{newPodOf("a", just), newPodOf("b")}, "wait 5s"},
		"the deadline is waited for":                      {newJob(2, deadline(7200)), some(2), "wait 1h0m0s"},
		"a work queue":                                    {newJob(3, workQueue), some(1), "create 2"},
		"a work queue that is empty makes no more":        {newJob(3, workQueue), []*corev1.Pod{newPodOf("a", success), newPodOf("b")}, ""},
		"a deleted pod is replaced at once after a while": {newJob(1), []*corev1.Pod{newPodOf("a", goingAway, unready)}, "wait 10s"},
		"a deleted pod is replaced when it has failed":    {newJob(1, replaceFailed), []*corev1.Pod{newPodOf("a", goingAway)}, ""},
		"one that is on its way out takes a place":        {newJob(3, replaceFailed), []*corev1.Pod{newPodOf("a", goingAway), newPodOf("b")}, "create 1"},
		"one that is on its way out makes none go":        {newJob(3, replaceFailed, parallel(1)), []*corev1.Pod{newPodOf("a", goingAway), newPodOf("b")}, ""},
		"indexes":                              {newJob(5, indexedMode, parallel(3), fresh), nil, "create 0-2"},
		"indexes that are left":                {newJob(5, indexedMode, parallel(3), doneIndexes("0,2")), onIndexes(1), "create 3,4"},
		"an index twice":                       {newJob(5, indexedMode, parallel(2)), plus(onIndexes(0, 1), newPodOf("twin", index(1), unready)), "remove twin"},
		"an index beyond the last":             {newJob(2, indexedMode), onIndexes(0, 1, 5), "remove p2"},
		"no index":                             {newJob(2, indexedMode), plus(onIndexes(0, 1), newPodOf("bare")), "remove bare"},
		"grown":                                {newJob(4, indexedMode, doneIndexes("0,1")), onIndexes(2), "create 3"},
		"shrunk":                               {newJob(2, indexedMode, doneIndexes("0,3")), onIndexes(1, 2), "remove p1"},
		"an index whose pod is on its way out": {newJob(2, indexedMode, replaceFailed), plus(onIndexes(0), newPodOf("out", index(1), goingAway)), ""},
		"per index: a while for each":          {newJob(3, limitPerIndex(5)), plus(onIndexes(2), lost("x", 0, 0, 4*time.Second), lost("y", 1, 2, 4*time.Second)), "wait 6s"},
		"per index: one is due":                {newJob(3, limitPerIndex(5)), plus(onIndexes(2), lost("x", 0, 0, time.Minute), lost("y", 1, 2, 4*time.Second)), "create 0 wait 36s"},
		"per index: the rest of a backoff":     {newJob(3, limitPerIndex(5)), plus(onIndexes(1, 2), lost("x", 0, 0, 9500*time.Millisecond)), "wait 1s"},
		"per index: the others go on":          {newJob(4, limitPerIndex(5)), plus(onIndexes(2), lost("x", 0, 0, 4*time.Second)), "create 1,3 wait 6s"},
		"per index: one is given up":           {newJob(3, limitPerIndex(1)), plus(onIndexes(2), lost("x", 0, 1, time.Hour)), "create 1"},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, described(decide(look(tc.job, tc.pods, streak{}, noon))), tc.want)
		})
	}
}

func TestFailuresOfAnIndexAreCarriedOn(t *testing.T) {
	plain, ruled := newJob(3, limitPerIndex(3)), newJob(3, limitPerIndex(3), rules(exit(ignore, in, 42)))
	for name, tc := range map[string]struct {
		job      *batchv1.Job
		replaced *corev1.Pod
		counted  string
		ignored  string
	}{
		"the first pod":       {plain, nil, "0", ""},
		"the second":          {plain, newPodOf("p", broken, failures(0, 0)), "1", ""},
		"the third":           {plain, newPodOf("p", broken, failures(1, 0)), "2", ""},
		"after one ignored":   {ruled, newPodOf("p", failedWith(42), failures(1, 0)), "1", "1"},
		"after two ignored":   {ruled, newPodOf("p", failedWith(42), failures(0, 1)), "0", "2"},
		"counted after that":  {ruled, newPodOf("p", failedWith(1), failures(0, 2)), "1", "2"},
		"annotations of junk": {plain, newPodOf("p", broken, func(p *corev1.Pod) { p.Annotations[batchv1.JobIndexFailureCountAnnotation] = "-7" }), "1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newPod(tc.job, nil, 1, tc.replaced)
			check(t, pod.Annotations[batchv1.JobIndexFailureCountAnnotation], tc.counted)
			check(t, pod.Annotations[batchv1.JobIndexIgnoredFailureCountAnnotation], tc.ignored)
		})
	}
}

func TestWhichFailedPodSpeaksForItsIndex(t *testing.T) {
	pod := func(name string, i, counted, ignored int, at time.Duration, options ...podOption) *corev1.Pod {
		return newPodOf(name, append([]podOption{ended(corev1.PodFailed, 1, at), index(i), failures(counted, ignored)}, options...)...)
	}
	v := look(newJob(7, limitPerIndex(5), doneIndexes("4")), []*corev1.Pod{
		pod("a", 0, 0, 0, time.Minute), pod("b", 0, 1, 0, time.Second), pod("c", 0, 0, 0, time.Second),
		pod("d", 1, 1, 0, time.Second), pod("e", 1, 0, 2, time.Second),
		pod("f", 2, 0, 0, time.Second), newPodOf("runs", index(2)),
		pod("g", 3, 0, 0, time.Second, untracked), pod("h", 4, 0, 0, time.Second), pod("i", 5, 5, 0, time.Second), pod("j", 9, 0, 0, time.Second),
		pod("k", 6, 0, 0, time.Minute), pod("l", 6, 0, 0, time.Second),
	}, streak{}, noon)
	got := map[int]string{}
	for i, p := range v.held {
		got[i] = p.Name
	}
	check(t, fmt.Sprint(got), "map[0:b 1:e 6:l]")
	check(t, v.given.String(), "5")
}

func TestNewPods(t *testing.T) {
	j := newJob(3, indexedMode, func(j *batchv1.Job) {
		j.Spec.Template.Spec.InitContainers = []corev1.Container{{Name: "setup"}}
		j.Spec.Template.Spec.Containers = append(j.Spec.Template.Spec.Containers, corev1.Container{Name: "own", Env: []corev1.EnvVar{{Name: indexVariable, Value: "mine"}}})
		j.Spec.Template.Finalizers = []string{"example.com/mine"}
	})
	p := newPod(j, nil, 2, nil)
	check(t, p.GenerateName, "pi-2-")
	check(t, p.Spec.Hostname, "pi-2")
	check(t, p.Annotations[batchv1.JobCompletionIndexAnnotation], "2")
	check(t, p.Labels[batchv1.JobCompletionIndexAnnotation], "2")
	check(t, strings.Join(p.Finalizers, " "), "example.com/mine "+batchv1.JobTrackingFinalizer)
	for _, c := range []corev1.Container{p.Spec.InitContainers[0], p.Spec.Containers[0]} {
		check(t, c.Env[0].ValueFrom.FieldRef.FieldPath, "metadata.labels['batch.kubernetes.io/job-completion-index']")
	}
	check(t, len(p.Spec.Containers[1].Env), 1)
	check(t, len(j.Spec.Template.Spec.Containers[0].Env), 0)
	check(t, indexedPrefix(strings.Repeat("x", 60), 1000), strings.Repeat("x", 52)+"-1000-")

	p = newPod(newJob(3), nil, noIndex, nil)
	check(t, p.GenerateName, "pi-")
	check(t, p.Spec.Hostname, "")
	check(t, tracked(p), true)
	_, has := p.Annotations[batchv1.JobIndexFailureCountAnnotation]
	check(t, has, false)
}
