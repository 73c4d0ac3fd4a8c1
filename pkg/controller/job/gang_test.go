package job

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func inGroup(name string) jobOption {
	return func(j *batchv1.Job) {
		j.Spec.Template.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
	}
}

func TestWhosePodsAreScheduledTogether(t *testing.T) {
	for name, tc := range map[string]struct {
		job  *batchv1.Job
		want bool
	}{
		"all indexes at once":           {newJob(4, indexedMode), true},
		"some of them":                  {newJob(4, indexedMode, parallel(3)), false},
		"more than there are":           {newJob(4, indexedMode, parallel(5)), false},
		"one pod":                       {newJob(1, indexedMode), false},
		"no pod":                        {newJob(0, indexedMode), false},
		"without indexes":               {newJob(4), false},
		"without completions":           {newJob(4, indexedMode, workQueue), false},
		"without parallelism":           {newJob(1, indexedMode, func(j *batchv1.Job) { j.Spec.Parallelism = nil }), false},
		"a group that the user chose":   {newJob(4, indexedMode, inGroup("mine")), false},
		"a suspended one":               {newJob(4, indexedMode, suspend), true},
		"one with limits of each":       {newJob(4, limitPerIndex(1)), true},
		"one that has some successes":   {newJob(4, indexedMode, doneIndexes("0-1")), true},
		"one that is its own manager's": {newJob(4, indexedMode, func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To(batchv1.JobControllerName) }), true},
	} {
		t.Run(name, func(t *testing.T) { check(t, ganged(tc.job), tc.want) })
	}
}

func TestWhatWasNotBegun(t *testing.T) {
	was := func(c corev1.ConditionStatus) jobOption {
		return func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobSuspended, Status: c}}
		}
	}
	for name, tc := range map[string]struct {
		job  *batchv1.Job
		pods []*corev1.Pod
		want bool
	}{
		"a new one":              {newJob(4, fresh), nil, true},
		"one that has started":   {newJob(4), nil, false},
		"one that has a pod":     {newJob(4, fresh), some(1, success), false},
		"one that has succeeded": {newJob(4, fresh, counted(1, 0)), nil, false},
		"one that has failed":    {newJob(4, fresh, counted(0, 1)), nil, false},
		"one that has had both":  {newJob(4, fresh, counted(1, 1)), nil, false},
		"one that is suspended":  {newJob(4, fresh, was(corev1.ConditionTrue)), nil, false},
		"one that was suspended": {newJob(4, fresh, was(corev1.ConditionFalse)), nil, false},
	} {
		t.Run(name, func(t *testing.T) { check(t, untouched(tc.job, tc.pods), tc.want) })
	}
}

// The names are those that the original gives, so that a change of binary makes no
// second objects.
func TestTheObjectsOfAGang(t *testing.T) {
	j := newJob(4, indexedMode)
	j.UID = "14c88afb-99ce-4bc0-ba20-c3b72dbf6cda"
	w := newWorkload(j)
	owner := metav1.OwnerReference{APIVersion: "batch/v1", Kind: "Job", Name: "pi", UID: j.UID, Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}
	gangOf4 := schedulingv1alpha2.PodGroupSchedulingPolicy{Gang: &schedulingv1alpha2.GangSchedulingPolicy{MinCount: 4}}
	if diff := cmp.Diff(&schedulingv1alpha2.Workload{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: w.Name, OwnerReferences: []metav1.OwnerReference{owner}},
		Spec: schedulingv1alpha2.WorkloadSpec{
			ControllerRef:     &schedulingv1alpha2.TypedLocalObjectReference{APIGroup: "batch", Kind: "Job", Name: "pi"},
			PodGroupTemplates: []schedulingv1alpha2.PodGroupTemplate{{Name: "pi-pgt-0", SchedulingPolicy: gangOf4}},
		},
	}, w); diff != "" {
		t.Error(diff)
	}
	w.UID = "w"
	w.Spec.PodGroupTemplates[0].Priority = ptr.To(int32(5)) // only the policy is copied
	g := newPodGroup(j, w)
	if diff := cmp.Diff(&schedulingv1alpha2.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: g.Name, OwnerReferences: []metav1.OwnerReference{
			owner, {APIVersion: "scheduling.k8s.io/v1alpha2", Kind: "Workload", Name: w.Name, UID: "w"}}},
		Spec: schedulingv1alpha2.PodGroupSpec{
			PodGroupTemplateRef: &schedulingv1alpha2.PodGroupTemplateReference{
				Workload: &schedulingv1alpha2.WorkloadPodGroupTemplateReference{WorkloadName: w.Name, PodGroupTemplateName: "pi-pgt-0"}},
			SchedulingPolicy: gangOf4,
		},
	}, g); diff != "" {
		t.Error(diff)
	}
	check(t, w.Name, "pi-668d464d5f")
	w.Name = "pi-7f97f66ff6"
	check(t, newPodGroup(j, w).Name, "pi-7f97f66ff6-pi-pgt-0-5f4d84b6fb")
}

func TestNamesAreNoLongerThanTheyMayBe(t *testing.T) {
	check(t, templateName("pi"), "pi-pgt-0")
	check(t, templateName(strings.Repeat("j", 57)), strings.Repeat("j", 57)+"-pgt-0")
	check(t, templateName(strings.Repeat("j", 61)), strings.Repeat("j", 57)+"-pgt-0")
	long := strings.Repeat("w", 253)
	a, b := hashedName(long, "a"), hashedName(long, "b")
	check(t, len(a), 253)
	check(t, a != b, true)
}

// gangOf are a Workload and a PodGroup as they are made for the Job.
func gangOf(j *batchv1.Job) (*schedulingv1alpha2.Workload, *schedulingv1alpha2.PodGroup) {
	w := newWorkload(j)
	w.UID, w.ResourceVersion = "w", "1"
	g := newPodGroup(j, w)
	g.UID, g.ResourceVersion = "g", "1"
	return w, g
}

func TestPodsOfAGang(t *testing.T) {
	four := func(options ...jobOption) *batchv1.Job { return newJob(4, append(options, indexedMode)...) }
	w, g := gangOf(four())
	workload := func(change func(*schedulingv1alpha2.Workload)) *schedulingv1alpha2.Workload {
		other := w.DeepCopy()
		change(other)
		return other
	}
	group := func(change func(*schedulingv1alpha2.PodGroup)) *schedulingv1alpha2.PodGroup {
		other := g.DeepCopy()
		change(other)
		return other
	}
	second := workload(func(w *schedulingv1alpha2.Workload) { w.Name = "second" })
	const (
		makesBoth = "create workloads, create podgroups, "
		makesPods = "4 create pods, update jobs/status"
		created   = "Normal WorkloadCreated Created Workload "
	)
	invalid := apierrors.NewInvalid(schedulingv1alpha2.SchemeGroupVersion.WithKind("Workload").GroupKind(), "w", nil)
	for name, tc := range map[string]struct {
		job    *batchv1.Job
		cached []runtime.Object
		faults func(*fake.Clientset)
		did    string
		group  bool // new pods are of the group
		told   bool // of the Workload
		err    bool
	}{
		"a new Job":                       {job: four(fresh), did: makesBoth + makesPods, group: true, told: true},
		"suspended from the start":        {job: four(fresh, suspend), did: makesBoth + "update jobs/status", told: true},
		"a Job that has begun":            {job: four(), did: makesPods},
		"a Workload of its own":           {job: four(), cached: []runtime.Object{w}, did: "create podgroups, " + makesPods, group: true},
		"both are there":                  {job: four(), cached: []runtime.Object{w, g}, did: makesPods, group: true},
		"both are there, before it began": {job: four(fresh), cached: []runtime.Object{w, g}, did: makesPods, group: true},
		"a group that goes is used": {job: four(), cached: []runtime.Object{w, group(func(g *schedulingv1alpha2.PodGroup) { g.DeletionTimestamp = ptr.To(ago(0)) })},
			did: makesPods, group: true},
		"a user's Workload without owner": {job: four(fresh), cached: []runtime.Object{workload(func(w *schedulingv1alpha2.Workload) { w.OwnerReferences = nil })}, did: makesPods},
		"of another Job of this name": {job: four(fresh), cached: []runtime.Object{workload(func(w *schedulingv1alpha2.Workload) { w.OwnerReferences[0].UID = "before" })},
			did: makesPods},
		"with two templates": {job: four(fresh), cached: []runtime.Object{workload(func(w *schedulingv1alpha2.Workload) {
			w.Spec.PodGroupTemplates = append(w.Spec.PodGroupTemplates, w.Spec.PodGroupTemplates[0])
		})}, did: makesPods},
		"with no template": {job: four(fresh), cached: []runtime.Object{workload(func(w *schedulingv1alpha2.Workload) { w.Spec.PodGroupTemplates = nil })}, did: makesPods},
		"two Workloads":    {job: four(fresh), cached: []runtime.Object{w, second}, did: makesPods},
		"a Workload that names another Job": {job: four(fresh), cached: []runtime.Object{workload(func(w *schedulingv1alpha2.Workload) { w.Spec.ControllerRef.Name = "e" })},
			did: makesBoth + makesPods, group: true, told: true},
		"a Workload that names another kind": {job: four(fresh), cached: []runtime.Object{workload(func(w *schedulingv1alpha2.Workload) { w.Spec.ControllerRef.Kind = "JobSet" })},
			did: makesBoth + makesPods, group: true, told: true},
		"a Workload that names nobody": {job: four(fresh), cached: []runtime.Object{workload(func(w *schedulingv1alpha2.Workload) { w.Spec.ControllerRef = nil })},
			did: makesBoth + makesPods, group: true, told: true},
		"a user's group": {job: four(fresh), cached: []runtime.Object{w, group(func(g *schedulingv1alpha2.PodGroup) { g.OwnerReferences = nil })}, did: makesPods},
		"two groups":     {job: four(fresh), cached: []runtime.Object{w, g, group(func(g *schedulingv1alpha2.PodGroup) { g.Name = "second" })}, did: makesPods},
		"a group of no Workload": {job: four(fresh), cached: []runtime.Object{w, group(func(g *schedulingv1alpha2.PodGroup) { g.Spec.PodGroupTemplateRef = nil })},
			did: "create podgroups, " + makesPods, group: true},
		"no gang":                 {job: newJob(4, fresh), did: makesPods},
		"a group that is chosen":  {job: four(fresh, inGroup("mine")), did: makesPods},
		"one that is deleted":     {job: four(leaving), cached: []runtime.Object{w}},
		"one that somebody runs":  {job: four(fresh, func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To("example.com/mine") })},
		"one that is finished":    {job: four(announced(batchv1.JobComplete, "", ""))},
		"a Workload is refused":   {job: four(fresh), faults: fails("create", "workloads", invalid), did: "create workloads", err: true},
		"its answer is lost":      {job: four(fresh), faults: fails("create", "workloads", apierrors.NewTimeoutError("lost", 1)), did: "create workloads", err: true},
		"its name is taken":       {job: four(fresh), faults: fails("create", "workloads", apierrors.NewAlreadyExists(schedulingv1alpha2.Resource("workloads"), "w")), did: "create workloads", err: true},
		"a PodGroup is refused":   {job: four(fresh), faults: fails("create", "podgroups", denied), did: "create workloads, create podgroups", told: true, err: true},
		"of a Job that has begun": {job: four(), cached: []runtime.Object{w}, faults: fails("create", "podgroups", denied), did: "create podgroups", err: true},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			var pods []*corev1.Pod
			client.PrependReactor("create", "pods", func(a ktesting.Action) (bool, runtime.Object, error) {
				pods = append(pods, a.(ktesting.CreateAction).GetObject().(*corev1.Pod))
				return true, nil, nil
			})
			fails("update", "jobs", nil)(client)
			if tc.faults != nil {
				tc.faults(client)
			}
			r := newRigWith(t, client, together, append(tc.cached, tc.job)...)
			before := countAmiss(t)
			result := r.sync(t.Context(), pi)
			check(t, r.Requests(), tc.did)
			check(t, result.Err() != nil, tc.err)
			check(t, countAmiss(t)-before == 1, tc.err)
			check(t, strings.Contains(r.Told(), created+w.Name+" for Job pi"), tc.told)
			for _, pod := range pods {
				var of string
				if in := pod.Spec.SchedulingGroup; in != nil {
					of = *in.PodGroupName
				}
				check(t, of == g.Name, tc.group)
				check(t, len(pod.OwnerReferences), 1)
			}
		})
	}
}

// countAmiss counts the turns of indexed Jobs that have failed.
func countAmiss(t *testing.T) (n float64) {
	for _, action := range []string{actionReconciling, actionTracking, actionCreated, actionDeleted} {
		n += count(t, syncs.WithLabelValues("Indexed", "error", action))
	}
	return n
}

func TestAJobKnowsTheObjectsThatItHasJustMade(t *testing.T) {
	j := newJob(2, fresh, indexedMode)
	client := fake.NewClientset(j)
	client.PrependReactor("create", "*", func(a ktesting.Action) (bool, runtime.Object, error) {
		made := a.(ktesting.CreateAction).GetObject().DeepCopyObject()
		m := made.(metav1.Object)
		m.SetResourceVersion("7")
		return true, made, nil
	})
	r := newRigWith(t, client, together, j)
	check(t, r.sync(t.Context(), pi).Err(), nil)
	waits := map[string]bool{}
	for _, b := range r.jobs.Writes.Behind(pi) {
		waits[b.Resource.Resource] = true
	}
	check(t, waits["workloads"] && waits["podgroups"] && waits["pods"], true)
}

func TestThePlanOfAGangSaysWhy(t *testing.T) {
	j := newJob(2, fresh, indexedMode)
	w, _ := gangOf(j)
	begun := newJob(2, indexedMode, func(j *batchv1.Job) { j.Status.Active, j.Status.Ready = 2, ptr.To(int32(2)) })
	with := func(o observed, workloads ...*schedulingv1alpha2.Workload) observed {
		o.gang = &gang{workloads: workloads}
		return o
	}
	w.Name = "w"
	g := newPodGroup(j, w).Name
	w0 := newWorkload(j).Name
	g0 := newPodGroup(j, newWorkload(j)).Name
	for name, tc := range map[string]struct {
		of      observed
		answers map[string]act.Outcome
		want    []string
	}{
		"a new one": {with(observing(j)), nil, []string{
			"its 2 pods are to be scheduled together: creating their Workload", "  create " + w0,
			"creating the PodGroup of Workload " + w0, "  create " + g0,
			"0 pods active, 2 to create", "  create", "  create",
			"0 pods active, 2 to create; reporting 2 pods active, 0 terminating",
			"  report pi: 2 active 0 ready 0 terminating, 0 succeeded 0 failed"}},
		"refused": {with(observing(j)), map[string]act.Outcome{"create": act.Refused}, []string{
			"its 2 pods are to be scheduled together: creating their Workload", "  create " + w0}},
		"without its group it counts": {with(observing(begun, newPodOf("a", index(0), success)), w), map[string]act.Outcome{"create": act.Refused}, []string{
			"creating the PodGroup of Workload w", "  create " + g,
			"reporting 0 pods active, 0 terminating; noting 1 pods before their finalizers are removed",
			"  report pi: 0 active 0 ready 0 terminating, 1 succeeded 0 failed; indexes 0",
			"0 pods active, 1 to create, none of them without a PodGroup; removing the finalizers of 1 pods that are noted in the status",
			"  patch a"}},
		"without its group it has its pods": {with(observing(begun, newPodOf("a", index(0)), newPodOf("b", index(1))), w), map[string]act.Outcome{"create": act.Refused}, []string{
			"creating the PodGroup of Workload w", "  create " + g,
			"2 pods active as wanted; 0 succeeded, 0 failed"}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, strings.Join(played(plan(tc.of, noon), tc.answers), "\n"), strings.Join(tc.want, "\n"))
		})
	}
}

func TestAJobThatIsSuspendedMayKeepItsStartTime(t *testing.T) {
	for name, keeps := range map[string]bool{"it keeps it": true, "it loses it": false} {
		t.Run(name, func(t *testing.T) {
			j := newJob(1, suspend)
			client := fake.NewClientset(j)
			r := newRigWith(t, client, func(o *Options, _ *fixture.Rig) { o.KeepStartTime = keeps }, j)
			check(t, r.sync(t.Context(), pi).Err(), nil)
			got, err := client.BatchV1().Jobs("ns").Get(t.Context(), "pi", metav1.GetOptions{})
			check(t, err, nil)
			check(t, conditionOf(got, batchv1.JobSuspended) != nil, true)
			check(t, got.Status.StartTime != nil, keeps)

			resumed := got.DeepCopy()
			resumed.Spec.Suspend = ptr.To(false)
			if err := client.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("jobs"), resumed, "ns"); err != nil {
				t.Fatal(err)
			}
			r.Cache(t, resumed)
			r.Clock.SetTime(noon.Add(time.Minute))
			check(t, r.sync(t.Context(), pi).Err(), nil)
			got, err = client.BatchV1().Jobs("ns").Get(t.Context(), "pi", metav1.GetOptions{})
			check(t, err, nil)
			check(t, got.Status.StartTime.Equal(ptr.To(ago(-time.Minute))), true)
		})
	}
}
