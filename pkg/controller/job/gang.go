package job

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/dump"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// gang is what the caches hold of a Job whose pods are to be scheduled all or none.
type gang struct {
	// workloads are those that name the Job, groups those that were made from the only one.
	workloads []*schedulingv1alpha2.Workload
	groups    []*schedulingv1alpha2.PodGroup
}

// ganged reports whether the pods of the Job all run at the same time, one for each
// index, and nobody has chosen a group for them.
func ganged(job *batchv1.Job) bool {
	n := ptr.Deref(job.Spec.Parallelism, 1)
	return indexed(job) && n > 1 && ptr.Deref(job.Spec.Completions, 0) == n && job.Spec.Template.Spec.SchedulingGroup == nil
}

// untouched reports whether nothing was done for the Job yet. What has begun with pods
// of no group goes on so.
func untouched(job *batchv1.Job, all []*corev1.Pod) bool {
	s := &job.Status
	wasSuspended := slices.ContainsFunc(s.Conditions, func(c batchv1.JobCondition) bool { return c.Type == batchv1.JobSuspended })
	return len(all) == 0 && s.StartTime == nil && s.Succeeded+s.Failed == 0 && !wasSuspended
}

// gather sees to the Workload and the PodGroup of the Job before its round. Both are
// made once, and never changed or deleted.
func (o observed) gather(all []*corev1.Pod, now time.Time) act.Plan {
	if o.gang == nil || o.job.DeletionTimestamp != nil {
		return o.round(all, now)
	}
	switch workloads := o.gang.workloads; {
	case len(workloads) == 0 && untouched(o.job, all):
		w := newWorkload(o.job)
		return act.Plan{
			Why: fmt.Sprintf("its %d pods are to be scheduled together: creating their Workload", *o.job.Spec.Parallelism),
			Stages: act.Stages(act.Create{Object: w, Events: act.Events{On: o.job, DoneReason: "WorkloadCreated",
				Done: fmt.Sprintf("Created Workload %s for Job %s", w.Name, o.job.Name)}}),
			Then:   func(act.Results) act.Plan { return o.group(w, all, now) },
			Counts: func(r act.Results) []act.Count { return o.endedAmiss(actionReconciling, r) },
		}
	case len(workloads) == 1 && len(workloads[0].Spec.PodGroupTemplates) == 1 && metav1.IsControlledBy(workloads[0], o.job):
		return o.group(workloads[0], all, now)
	}
	return o.round(all, now)
}

// group sees to the PodGroup that is made from a Workload. A Job that has begun counts
// its pods also when there is none.
func (o observed) group(w *schedulingv1alpha2.Workload, all []*corev1.Pod, now time.Time) act.Plan {
	switch groups := o.gang.groups; {
	case len(groups) == 1 && metav1.IsControlledBy(groups[0], o.job):
		o.podGroup = groups[0].Name
		return o.round(all, now)
	case len(groups) > 0:
		return o.round(all, now)
	}
	g := newPodGroup(o.job, w)
	p := act.Plan{
		Why:    fmt.Sprintf("creating the PodGroup of Workload %s", w.Name),
		Stages: act.Stages(act.Create{Object: g}),
		Then: func(act.Results) act.Plan {
			o.podGroup = g.Name
			return o.round(all, now)
		},
	}
	if untouched(o.job, all) { // without a status it stays so
		p.Counts = func(r act.Results) []act.Count { return o.endedAmiss(actionReconciling, r) }
		return p
	}
	p.Else = func(r act.Results) act.Plan {
		o.refused = r
		return o.round(all, now)
	}
	return p
}

// newWorkload has one template, of a group that is as large as the Job.
func newWorkload(job *batchv1.Job) *schedulingv1alpha2.Workload {
	return &schedulingv1alpha2.Workload{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: hashedName(job.Name, dump.ForHash(job.UID)),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, kind)},
		},
		Spec: schedulingv1alpha2.WorkloadSpec{
			ControllerRef: &schedulingv1alpha2.TypedLocalObjectReference{APIGroup: kind.Group, Kind: kind.Kind, Name: job.Name},
			PodGroupTemplates: []schedulingv1alpha2.PodGroupTemplate{{
				Name: templateName(job.Name),
				SchedulingPolicy: schedulingv1alpha2.PodGroupSchedulingPolicy{
					Gang: &schedulingv1alpha2.GangSchedulingPolicy{MinCount: *job.Spec.Parallelism}},
			}},
		},
	}
}

// newPodGroup goes with the Job and with the Workload.
func newPodGroup(job *batchv1.Job, w *schedulingv1alpha2.Workload) *schedulingv1alpha2.PodGroup {
	template := &w.Spec.PodGroupTemplates[0]
	return &schedulingv1alpha2.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace, Name: hashedName(w.Name+"-"+template.Name, w.Name+template.Name),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, kind), {
				APIVersion: schedulingv1alpha2.SchemeGroupVersion.String(), Kind: "Workload", Name: w.Name, UID: w.UID}},
		},
		Spec: schedulingv1alpha2.PodGroupSpec{
			PodGroupTemplateRef: &schedulingv1alpha2.PodGroupTemplateReference{
				Workload: &schedulingv1alpha2.WorkloadPodGroupTemplateReference{WorkloadName: w.Name, PodGroupTemplateName: template.Name}},
			SchedulingPolicy: *template.SchedulingPolicy.DeepCopy(),
		},
	}
}

// templateName is a DNS label: of a name that is too long the end is left out.
func templateName(job string) string {
	const suffix = "-pgt-0"
	return job[:min(len(job), validation.DNS1123LabelMaxLength-len(suffix))] + suffix
}

// hashedName is a name with a hash, which a long name does not push out.
func hashedName(name, of string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(of)) // never fails
	suffix := "-" + rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
	return name[:min(len(name), validation.DNS1123SubdomainMaxLength-len(suffix))] + suffix
}
