package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var pi = Key{Namespace: "ns", Name: "pi"}

// rig is a controller whose caches are filled by hand.
type rig struct {
	*Controller
	*fixture.Rig
}

func newRig(t testing.TB, client *fake.Clientset, cached ...runtime.Object) *rig {
	t.Helper()
	return newRigWith(t, client, func(*Options, *fixture.Rig) {}, cached...)
}

// rigOf has a Job and pods there and in the caches, and an API server with these faults, if any.
func rigOf(t testing.TB, job *batchv1.Job, pods []*corev1.Pod, faults func(*fake.Clientset)) *rig {
	t.Helper()
	objects := []runtime.Object{job}
	for _, pod := range pods {
		objects = append(objects, pod)
	}
	client := fake.NewClientset(objects...)
	if faults != nil {
		faults(client)
	}
	return newRig(t, client, objects...)
}

// together has pods scheduled together.
func together(o *Options, r *fixture.Rig) { o.Gangs = r.In.Scheduling().V1alpha2() }

func newRigWith(t testing.TB, client *fake.Clientset, with func(*Options, *fixture.Rig), cached ...runtime.Object) *rig {
	t.Helper()
	r := fixture.New(client, noon)
	o := Options{Workers: 1}
	with(&o, r)
	c, err := New(r.In.Batch().V1().Jobs(), r.In.Core().V1().Pods(), r.In.Core().V1().Namespaces(), r.Hand(), o)
	if err != nil {
		t.Fatal(err)
	}
	c.LookLive(looking(client))
	r.Cache(t, cached...)
	return &rig{c, r}
}

// looking reads live what a fake API server holds, by requests that may fail.
func looking(client *fake.Clientset) consistency.List {
	return func(ctx context.Context, resource schema.GroupResource, namespace string, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
		kind := corev1.SchemeGroupVersion.WithKind("Pod")
		if resource == jobResource {
			kind = batchv1.SchemeGroupVersion.WithKind("Job")
		}
		request := ktesting.NewListAction(resource.WithVersion("v1"), kind, namespace, o)
		if _, err := client.Invokes(request, &corev1.PodList{}); err != nil {
			return nil, err
		}
		return fixture.Live(client)(ctx, resource, namespace, o)
	}
}

func (r *rig) sync(ctx context.Context, key Key) runner.Result { return r.jobs.Reconcile(ctx, key) }

func (r *rig) syncOrphan(ctx context.Context, key Key) runner.Result {
	return r.orphans.Reconcile(ctx, key)
}

func fails(verb, resource string, err error) func(*fake.Clientset) {
	return func(c *fake.Clientset) {
		c.PrependReactor(verb, resource, func(ktesting.Action) (bool, runtime.Object, error) { return true, nil, err })
	}
}

var (
	denied   = apierrors.NewForbidden(corev1.Resource("pods"), "pi-x", errors.New("exceeded quota"))
	conflict = apierrors.NewConflict(batchv1.Resource("jobs"), "pi", errors.New("changed"))
	gone     = apierrors.NewNotFound(corev1.Resource("pods"), "p0")
	ending   = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Message: "ending",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}}}
)

func TestRequests(t *testing.T) {
	running := func(n int32) jobOption {
		return func(j *batchv1.Job) { j.Status.Active, j.Status.Ready = n, ptr.To(n) }
	}
	for name, tc := range map[string]struct {
		job    *batchv1.Job
		pods   []*corev1.Pod
		faults func(*fake.Clientset)
		did    string
		told   string
		err    bool
	}{
		"a settled one costs nothing": {job: newJob(2, running(2)), pods: some(2)},
		"the first pods cost one status": {job: newJob(1, fresh), did: "create pods, update jobs/status",
			told: "Normal SuccessfulCreate Created pod: "},
		"the end of all pods: two statuses and a patch each": {job: newJob(4, running(4)), pods: some(4, success),
			did: "update jobs/status, 4 patch pods, update jobs/status", told: "Normal Completed Job completed"},
		"one that ends badly": {job: newJob(1, running(1), limit(0)), pods: some(1, broken),
			did: "update jobs/status, patch pods, update jobs/status", told: "Warning BackoffLimitExceeded Job has reached the specified backoff limit"},
		"one that is given up with a pod running": {job: newJob(2, running(2), limit(0)), pods: []*corev1.Pod{newPodOf("a", broken), newPodOf("b")}, faults: fails("delete", "pods", nil),
			did: "delete pods, update jobs/status, 2 patch pods, update jobs/status", told: "Normal SuccessfulDelete Deleted pod: b"},
		"suspended: finalizers go first": {job: newJob(1, running(1), suspend), pods: some(1), did: "patch pods, delete pods, update jobs/status",
			told: "Normal SuccessfulDelete Deleted pod: p0; Normal Suspended Job suspended"},
		"a status that changed in between is counted again later": {job: newJob(1, running(1)), pods: some(1, success), faults: fails("update", "jobs", conflict),
			did: "update jobs/status", err: true},
		"no Suspended event when the status update fails": {job: newJob(1, suspend), faults: fails("update", "jobs", conflict), did: "update jobs/status", err: true},
		"a finalizer that stays is tried again": {job: newJob(1, running(1)), pods: some(1, success), faults: fails("patch", "pods", denied),
			did: "update jobs/status, patch pods", err: true},
		"a pod that is gone needs no finalizer": {job: newJob(1, running(1)), pods: some(1, success),
			faults: func(c *fake.Clientset) {
				c.PrependReactor("patch", "pods", func(ktesting.Action) (bool, runtime.Object, error) {
					return true, nil, errors.Join(c.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), "ns", "p0"), gone)
				})
			},
			did: "update jobs/status, patch pods, list pods, update jobs/status", told: "Normal Completed Job completed"},
		"pods that may not be made are told": {job: newJob(3, fresh), faults: fails("create", "pods", denied), did: "create pods, update jobs/status", err: true,
			told: `Warning FailedCreate Error creating: pods "pi-x" is forbidden: exceeded quota`},
		"nothing is told in a namespace that ends": {job: newJob(3, fresh), faults: fails("create", "pods", ending), did: "create pods, update jobs/status"},
		"a pod that stays is told": {job: newJob(1, running(1), suspend), pods: some(1), faults: fails("delete", "pods", denied), did: "patch pods, delete pods, update jobs/status", err: true,
			told: `Warning FailedDelete Error deleting: pods "pi-x" is forbidden: exceeded quota; Normal Suspended Job suspended`},
		"an end whose pods stay is not announced": {job: newJob(2, running(2), limit(0)), pods: []*corev1.Pod{newPodOf("a", broken), newPodOf("b")}, faults: fails("delete", "pods", denied), err: true,
			did: "delete pods, update jobs/status, patch pods, update jobs/status", told: `Warning FailedDelete Error deleting: pods "pi-x" is forbidden: exceeded quota`},
		"the pod that fails its Job stays till then": {job: newJob(2, running(2), rules(exit(failJob, in, 42))), pods: []*corev1.Pod{newPodOf("a", failedWith(42)), newPodOf("b")}, faults: fails("delete", "pods", denied), err: true,
			did: "delete pods, update jobs/status", told: `Warning FailedDelete Error deleting: pods "pi-x" is forbidden: exceeded quota`},
		"nor is it suspended meanwhile": {job: newJob(2, running(2), limit(0), suspend), pods: []*corev1.Pod{newPodOf("a", broken), newPodOf("b")}, faults: fails("delete", "pods", denied), err: true,
			did: "delete pods, update jobs/status, patch pods, update jobs/status", told: `Warning FailedDelete Error deleting: pods "pi-x" is forbidden: exceeded quota`},
		"an orphan is adopted and tracked":                    {job: newJob(1, running(1)), pods: some(1, orphaned), did: "get jobs, patch pods"},
		"an orphan whose adoption is refused is not replaced": {job: newJob(1, fresh), pods: some(1, orphaned), faults: fails("patch", "pods", conflict), did: "get jobs, patch pods, list pods", err: true},
		"a pod that no longer matches is let go":              {job: newJob(1), pods: some(1, func(p *corev1.Pod) { p.Labels = nil }), did: "patch pods, create pods, update jobs/status", told: "Normal SuccessfulCreate Created pod: "},
		"one comes and one goes":                              {job: newJob(1, running(1)), pods: []*corev1.Pod{newPodOf("a", orphaned), newPodOf("b", func(p *corev1.Pod) { p.Labels = nil })}, did: "get jobs, 2 patch pods"},
		"one that is deleted makes nothing":                   {job: newJob(3, leaving)},
		"one that somebody else runs":                         {job: newJob(3, fresh, func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To("example.com/mine") })},
		"one that names this controller":                      {job: newJob(1, fresh, func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To(batchv1.JobControllerName) }), did: "create pods, update jobs/status", told: "Normal SuccessfulCreate Created pod: "},
		"one that is finished":                                {job: newJob(3, announced(batchv1.JobComplete, "", ""))},
		"an unknown mode is told": {job: newJob(3, fresh, func(j *batchv1.Job) { j.Spec.CompletionMode = ptr.To(batchv1.CompletionMode("Odd")) }),
			told: "Warning UnknownCompletionMode Skipped Job sync because completion mode is unknown"},
		"a selector that misses the template is given up": {job: newJob(3, fresh, func(j *batchv1.Job) { j.Spec.Template.Labels = nil }), err: true},
		"a note of before is looked for":                  {job: newJob(2, parallel(0), noted([]types.UID{"x"}, nil)), did: "list pods, update jobs/status"},
		"a note of a pod that is there is not":            {job: newJob(2, parallel(0), noted([]types.UID{"p0"}, nil)), pods: some(1, success), did: "patch pods, update jobs/status"},
	} {
		t.Run(name, func(t *testing.T) {
			r := rigOf(t, tc.job, tc.pods, tc.faults)
			result := r.sync(t.Context(), pi)
			check(t, r.Requests(), tc.did)
			check(t, r.Told(), tc.told)
			check(t, result.Err() != nil, tc.err)
		})
	}
}

func TestAJobThatIsGoneCostsNothing(t *testing.T) {
	client := fake.NewClientset()
	r := newRig(t, client)
	check(t, r.sync(t.Context(), pi).Err(), nil)
	check(t, r.Requests(), "")
}

func TestAFailureIsRememberedWhenItsPodIsGone(t *testing.T) {
	j, p := newJob(1), newPodOf("p0", just, untracked)
	r := newRig(t, fake.NewClientset(j, p), j, p)
	check(t, r.sync(t.Context(), pi).After(), 10*time.Second)
	if err := r.podIndex.Delete(p); err != nil {
		t.Fatal(err)
	}
	r.Clock.SetTime(noon.Add(4 * time.Second))
	check(t, r.sync(t.Context(), pi).After(), 6*time.Second)
	check(t, r.Requests(), "")
}

// A plan that ends after its Job has gone leaves nothing behind.
func TestAJobThatWentMeanwhileIsForgotten(t *testing.T) {
	j := newJob(1)
	r := newRig(t, fake.NewClientset(j), j)
	failed := remembered{job: j.UID, streak: streak{failures: []failure{{pod: "a", at: noon}}}}
	r.note(pi, failed)
	check(t, len(r.memory.streak(j.UID).failures), 1)
	if err := r.jobIndex.Delete(j); err != nil {
		t.Fatal(err)
	}
	r.jobGone(j)
	r.note(pi, failed)
	check(t, len(r.memory.streak(j.UID).failures), 0)
}

func TestALostAnswerMakesNoSecondPod(t *testing.T) {
	j := newJob(1, fresh)
	client := fake.NewClientset(j)
	fails("create", "pods", apierrors.NewTimeoutError("lost", 1))(client)
	r := newRig(t, client, j)
	check(t, r.sync(t.Context(), pi).Err() != nil, true)
	late := newPodOf("late")
	late.ResourceVersion = "7"
	if err := client.Tracker().Add(late); err != nil {
		t.Fatal(err)
	}
	check(t, fixture.Held(t.Context(), r.jobs.Writes, pi), true)
	r.Cache(t, late)
	check(t, fixture.Held(t.Context(), r.jobs.Writes, pi), false)
}

func TestOrphans(t *testing.T) {
	owner := func(change func(*metav1.OwnerReference)) podOption {
		return func(p *corev1.Pod) { change(&p.OwnerReferences[0]) }
	}
	elsewhere := func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To("example.com/mine") }
	for name, tc := range map[string]struct {
		job  *batchv1.Job
		pod  *corev1.Pod
		want string
	}{
		"its Job is not there yet":            {nil, newPodOf("p"), ""},
		"its Job is not there yet, it ended":  {nil, newPodOf("p", broken), ""},
		"its Job is gone, and it is to go":    {nil, newPodOf("p", goingAway), "patch pods"},
		"its Job is another now":              {newJob(1), newPodOf("p", owner(func(o *metav1.OwnerReference) { o.UID = "old" })), ""},
		"its Job is another, and it is to go": {newJob(1), newPodOf("p", goingAway, owner(func(o *metav1.OwnerReference) { o.UID = "old" })), "patch pods"},
		"its Job runs":                        {newJob(1), newPodOf("p"), ""},
		"its Job has ended":                   {newJob(1, announced(batchv1.JobFailed, "", "")), newPodOf("p"), "patch pods"},
		"its Job is run elsewhere":            {newJob(1, elsewhere, announced(batchv1.JobFailed, "", "")), newPodOf("p"), ""},
		"it has no owner":                     {nil, newPodOf("p", func(p *corev1.Pod) { p.OwnerReferences = nil }), "patch pods"},
		"another kind owns it":                {nil, newPodOf("p", owner(func(o *metav1.OwnerReference) { o.Kind = "JobSet" })), ""},
		"it is not tracked":                   {nil, newPodOf("p", untracked), ""},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{tc.pod}
			if tc.job != nil {
				objects = append(objects, tc.job)
			}
			client := fake.NewClientset(objects...)
			r := newRig(t, client, objects...)
			check(t, r.syncOrphan(t.Context(), Key{Namespace: "ns", Name: "p"}).Err(), nil)
			check(t, r.Requests(), tc.want)
		})
	}
	check(t, newRig(t, fake.NewClientset()).syncOrphan(t.Context(), pi).Err(), nil)
}

// woken collects the keys that a rule wakes, those that wait with how long.
type woken []string

func (w *woken) Add(key Key)                       { *w = append(*w, key.Name) }
func (w *woken) AddAfter(key Key, d time.Duration) { *w = append(*w, key.Name+" after "+d.String()) }

func newer(p *corev1.Pod) { p.ResourceVersion = "2" }

func TestWhatPodsWake(t *testing.T) {
	named := func(name string, options ...jobOption) *batchv1.Job {
		return newJob(1, append(options, func(j *batchv1.Job) {
			j.Name, j.UID = name, types.UID(name)
			j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"job": name}}
		})...)
	}
	elsewhere := named("elsewhere", func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To("example.com/mine") })
	ownedBy := func(name string) podOption {
		return func(p *corev1.Pod) { p.OwnerReferences[0].Name, p.OwnerReferences[0].UID = name, types.UID(name) }
	}
	labeled := func(name string) podOption {
		return func(p *corev1.Pod) { p.Labels = map[string]string{"job": name} }
	}
	p := func(options ...podOption) *corev1.Pod { return newPodOf("p", options...) }
	for name, tc := range map[string]struct {
		old, now *corev1.Pod
		want     string
		orphans  int
	}{
		"a pod appears":                        {nil, p(), "[pi after 1s]", 0},
		"a pod changes":                        {p(), p(newer), "[pi after 1s]", 0},
		"a pod is gone":                        {p(), nil, "[pi after 1s]", 0},
		"a resync is nothing new":              {p(), p(), "[]", 0},
		"a pod changes hands":                  {p(), p(newer, ownedBy("other")), "[pi after 1s other after 1s]", 0},
		"a pod of a Job that is gone":          {nil, p(ownedBy("lost")), "[]", 1},
		"one that was counted":                 {nil, p(ownedBy("lost"), untracked), "[]", 0},
		"a pod of a Job that is run elsewhere": {nil, p(ownedBy("elsewhere")), "[]", 1},
		"an orphan":                            {nil, p(orphaned), "[pi after 1s]", 0},
		"an orphan that changes otherwise":     {p(orphaned), p(orphaned, newer), "[]", 0},
		"an orphan with other labels":          {p(orphaned), p(orphaned, newer, labeled("other")), "[other after 1s]", 0},
		"an orphan for a Job run elsewhere":    {nil, p(orphaned, labeled("elsewhere")), "[]", 0},
		"an orphan that goes away":             {nil, p(orphaned, goingAway), "[]", 0},
		"a pod that is let go":                 {p(), p(orphaned, newer), "[pi after 1s pi after 1s]", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, fake.NewClientset(), newJob(1), named("other"), elsewhere)
			w := woken{}
			r.podChanged(runner.Change[corev1.Pod]{Old: tc.old, New: tc.now}, &w)
			check(t, fmt.Sprint(w), tc.want)
			check(t, r.orphans.Len(), tc.orphans)
		})
	}
}

func TestWhatJobsWake(t *testing.T) {
	changed := newJob(1, func(j *batchv1.Job) { j.Generation = 2 })
	again := newJob(1, func(j *batchv1.Job) { j.UID = "again" })
	elsewhere := newJob(1, func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To("example.com/mine") })
	for name, tc := range map[string]struct {
		old, now *batchv1.Job
		want     string
		orphans  int
	}{
		"it appears":                   {nil, newJob(1), "[pi]", 0},
		"its spec changes":             {newJob(1), changed, "[pi]", 0},
		"its status changes":           {newJob(1), newJob(1), "[pi after 1s]", 0},
		"it is gone, its pods are not": {newJob(1), nil, "[pi]", 1},
		"it is gone and there again":   {newJob(1), again, "[pi]", 1},
		"it is run elsewhere":          {nil, elsewhere, "[]", 0},
		"it was run elsewhere":         {elsewhere, nil, "[pi]", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, fake.NewClientset(), newPodOf("p"), newPodOf("counted", untracked))
			w := woken{}
			r.jobChanged(runner.Change[batchv1.Job]{Old: tc.old, New: tc.now}, &w)
			check(t, fmt.Sprint(w), tc.want)
			check(t, r.orphans.Len(), tc.orphans)
		})
	}
}

// The watch may tell the end of a Job when the next one of its name has made pods.
func TestTheEndOfAJobForgetsNoWritesOfTheNext(t *testing.T) {
	r := newRig(t, fake.NewClientset())
	r.jobs.Writes.Wrote(pi, corev1.Resource("pods"), newPodOf("p"))
	r.jobChanged(runner.Change[batchv1.Job]{Old: newJob(1)}, &woken{})
	check(t, len(r.jobs.Writes.Behind(pi)), 1)
	check(t, r.sync(t.Context(), pi).Err(), nil)
	check(t, len(r.jobs.Writes.Behind(pi)), 0) // there is no next one
}

func TestWhatAFinishedJobLeavesIsFreed(t *testing.T) {
	j := newJob(1, announced(batchv1.JobComplete, "", ""))
	p, counted := newPodOf("p"), newPodOf("counted", untracked)
	client := fake.NewClientset(p, counted)
	r := newRig(t, client, j, p, counted)
	check(t, r.sync(t.Context(), pi).Err(), nil)
	check(t, r.Requests(), "patch pods")
	for _, pod := range live(t, client) {
		check(t, tracked(pod), false)
	}
}

// BenchmarkSync is of a settled Job of 4 pods in namespaces of different sizes.
func BenchmarkSync(b *testing.B) {
	for _, size := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("namespace=%d", size), func(b *testing.B) {
			j := newJob(4, func(j *batchv1.Job) { j.Status.Active, j.Status.Ready = 4, ptr.To(int32(4)) })
			objects := []runtime.Object{j}
			for i := range size {
				p := newPodOf(fmt.Sprint("p", i))
				switch {
				case i < 4:
				case i%10 == 0:
					orphaned(p)
					p.Labels = map[string]string{"app": fmt.Sprint("a", i)}
				default:
					p.OwnerReferences[0].UID = types.UID(fmt.Sprint("other", i/4))
				}
				objects = append(objects, p)
			}
			r := newRig(b, fake.NewClientset(), objects...)
			before, after := newPodOf("p0"), newPodOf("p0", newer)
			b.ReportAllocs()
			for b.Loop() {
				w := woken{}
				r.podChanged(runner.Change[corev1.Pod]{Old: before, New: after}, &w)
				if err := r.sync(context.Background(), pi).Err(); err != nil || len(w) != 1 {
					b.Fatal(err, w)
				}
			}
		})
	}
}

func sortedNames(pods map[string]*corev1.Pod) []string {
	var names []string
	for name := range pods {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// A Job that waits for its pods in the foreground releases none, and they wait for its finalizer.
func TestPodsOfAJobThatIsDeletedAreLetGo(t *testing.T) {
	job := newJob(2, leaving)
	job.Finalizers = []string{metav1.FinalizerDeleteDependents}
	aside := func(p *corev1.Pod) { p.Labels = nil }
	r := rigOf(t, job, []*corev1.Pod{newPodOf("a", goingAway), newPodOf("b", goingAway, aside)}, nil)
	if err := r.jobs.Reconcile(t.Context(), Key{Namespace: "ns", Name: "pi"}).Err(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		pod, err := r.Client.CoreV1().Pods("ns").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || len(pod.Finalizers) > 0 {
			t.Errorf("%s has the finalizers %v: %v", name, pod.Finalizers, err)
		}
	}
}

func TestNumbersOfAJobThatGoesOnCanWait(t *testing.T) {
	running := func(j *batchv1.Job) { j.Status.Active, j.Status.Ready = 2, ptr.To(int32(2)) }
	stays := func(*batchv1.Job) {}
	for name, tc := range map[string]struct {
		job  func(*batchv1.Job)
		pods []*corev1.Pod
		did  string
		wait time.Duration
	}{
		"how many are ready":             {stays, []*corev1.Pod{newPodOf("a", unready), newPodOf("b")}, "", time.Second},
		"a number that is noted":         {stays, []*corev1.Pod{newPodOf("a", success), newPodOf("b")}, "update jobs/status, patch pods", time.Second},
		"not how many are active":        {func(j *batchv1.Job) { j.Status.Active = 1 }, some(2), "update jobs/status", 0},
		"not the end":                    {stays, some(2, success), "update jobs/status, 2 patch pods, update jobs/status", 0},
		"nor of a pod that is gone then": {stays, []*corev1.Pod{newPodOf("a", success, goingAway), newPodOf("b")}, "update jobs/status, patch pods, update jobs/status", 0},
		"nor if the Job may be going":    {leaving, []*corev1.Pod{newPodOf("a", success), newPodOf("b")}, "update jobs/status, 2 patch pods, update jobs/status", 0},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{newJob(2, running, tc.job)}
			for _, pod := range tc.pods {
				objects = append(objects, pod)
			}
			client := fake.NewClientset(objects...)
			r := newRig(t, client, objects...)
			r.reports.Sent(pi, noon.Add(-50*time.Millisecond))
			result := r.sync(t.Context(), pi)
			check(t, result.Err(), nil)
			check(t, r.Requests(), tc.did)
			check(t, result.After(), tc.wait)
		})
	}
}

// The next look at a Job that fails is put off ever longer, so nothing of it waits.
func TestNumbersOfAJobThatFailsDoNotWait(t *testing.T) {
	running := func(j *batchv1.Job) { j.Status.Active, j.Status.Ready = 2, ptr.To(int32(2)) }
	for name, tc := range map[string]struct {
		pods []*corev1.Pod
		did  string
	}{
		"how many are ready":     {[]*corev1.Pod{newPodOf("a", unready), newPodOf("b")}, "create pods, update jobs/status"},
		"a number that is noted": {[]*corev1.Pod{newPodOf("a", success), newPodOf("b")}, "create pods, update jobs/status, patch pods, update jobs/status"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{newJob(3, running), tc.pods[0], tc.pods[1]}
			client := fake.NewClientset(objects...)
			fails("create", "pods", denied)(client)
			r := newRig(t, client, objects...)
			r.reports.Sent(pi, noon.Add(-50*time.Millisecond))
			result := r.sync(t.Context(), pi)
			check(t, errors.Is(result.Err(), denied), true)
			check(t, r.Requests(), tc.did)
			check(t, result.After(), 0)
		})
	}
}
