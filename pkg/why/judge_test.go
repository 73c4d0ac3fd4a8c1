package why

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// judgement is what a judge says, and what it should say.
type judgement struct {
	finding
	verdict Verdict
	says    string
}

func check(t *testing.T, cases map[string]judgement) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			said := strings.TrimSuffix(tc.finding.sentence+": "+tc.finding.cause, ": ")
			if tc.finding.verdict != tc.verdict || said != tc.says {
				t.Errorf("%s: %q\nwant %s: %q", tc.finding.verdict, said, tc.verdict, tc.says)
			}
		})
	}
}

func ago(d time.Duration) *metav1.Time { return &metav1.Time{Time: noon.Add(-d)} }

func deployment(replicas int32, change ...func(*appsv1.Deployment)) *appsv1.Deployment {
	d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Replicas: &replicas}}
	d.Generation, d.Status.ObservedGeneration = 1, 1
	for _, f := range change {
		f(d)
	}
	return d
}

func have(all, updated, available int32) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas, d.Status.ReadyReplicas = all, updated, available, available
	}
}

func says(kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) {
		d.Status.Conditions = append(d.Status.Conditions, appsv1.DeploymentCondition{Type: kind, Status: status, Reason: reason, Message: message})
	}
}

func TestDeployments(t *testing.T) {
	paused := func(d *appsv1.Deployment) { d.Spec.Paused = true }
	check(t, map[string]judgement{
		"all is well":        {judgeDeployment(deployment(3, have(3, 3, 3))), Complete, "all 3 replicas are available and up to date"},
		"none is wanted":     {judgeDeployment(deployment(0)), Complete, "no replica is wanted, and there is none"},
		"a rollout":          {judgeDeployment(deployment(3, have(4, 2, 2))), Progressing, "2 of 3 replicas are up to date, and 2 are available"},
		"an old pod is left": {judgeDeployment(deployment(3, have(4, 3, 3))), Progressing, "3 of 3 replicas are up to date, and 3 are available"},
		"a change that was not seen": {judgeDeployment(deployment(3, have(3, 3, 3), func(d *appsv1.Deployment) { d.Generation = 2 })),
			Progressing, "its controller has not looked at its last change yet"},
		"a quota": {judgeDeployment(deployment(5, have(2, 2, 2), says(appsv1.DeploymentReplicaFailure, corev1.ConditionTrue, "FailedCreate", "exceeded quota"))),
			Blocked, "2 of 5 replicas are up to date, and 2 are available; making pods fails: exceeded quota"},
		"no progress": {judgeDeployment(deployment(5, have(5, 5, 2), says(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded", "it has timed out"))),
			Blocked, "5 of 5 replicas are up to date, and 2 are available; it does not progress (ProgressDeadlineExceeded): it has timed out"},
		"complete after a deadline": {judgeDeployment(deployment(1, have(1, 1, 1), says(appsv1.DeploymentProgressing, corev1.ConditionFalse, "ProgressDeadlineExceeded", ""))),
			Complete, "its one replica is available and up to date"},
		"paused and complete": {judgeDeployment(deployment(2, have(2, 2, 2), paused)), Paused, "its rollout is paused (spec.paused); all 2 replicas are available"},
		"paused halfway":      {judgeDeployment(deployment(2, have(2, 1, 2), paused)), Paused, "its rollout is paused (spec.paused); 1 of 2 replicas are up to date, and 2 are available"},
	})
}

func TestReplicas(t *testing.T) {
	check(t, map[string]judgement{
		"all is well":     {replicas{want: 2, have: 2, ready: 2, available: 2, seen: true}.judge(), Complete, "all 2 replicas are available"},
		"pods are made":   {replicas{want: 2, have: 1, seen: true}.judge(), Progressing, "1 of 2 pods exist"},
		"pods are slow":   {replicas{want: 2, have: 2, available: 1, seen: true}.judge(), Progressing, "all 2 pods exist, and 1 are available"},
		"a change unseen": {replicas{want: 2, have: 2, available: 2}.judge(), Progressing, unseen},
		"refused":         {replicas{want: 5, have: 2, available: 2, seen: true, failed: true, failure: "quota"}.judge(), Blocked, "2 of 5 pods exist, and making more fails: quota"},
		"kept":            {replicas{want: 1, have: 2, available: 2, seen: true, failed: true, failure: "webhook"}.judge(), Blocked, "2 pods exist and 1 are wanted, and deleting fails: webhook"},
	})
}

func TestStatefulSetsAndDaemonSets(t *testing.T) {
	set := func(want, have, available, updated int32, change ...func(*appsv1.StatefulSet)) finding {
		s := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &want}, Status: appsv1.StatefulSetStatus{
			Replicas: have, AvailableReplicas: available, UpdatedReplicas: updated, CurrentRevision: "a", UpdateRevision: "b"}}
		for _, f := range change {
			f(s)
		}
		return judgeStatefulSet(s)
	}
	onDelete := func(s *appsv1.StatefulSet) {
		s.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	}
	partition := func(s *appsv1.StatefulSet) {
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](2)}
	}
	daemons := func(want, have, available, updated, too int32, change ...func(*appsv1.DaemonSet)) finding {
		s := &appsv1.DaemonSet{Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: want, CurrentNumberScheduled: have,
			NumberAvailable: available, UpdatedNumberScheduled: updated, NumberMisscheduled: too}}
		for _, f := range change {
			f(s)
		}
		return judgeDaemonSet(s)
	}
	check(t, map[string]judgement{
		"a set that is complete":    {set(3, 3, 3, 3), Complete, "all 3 replicas are available"},
		"a set that grows":          {set(3, 1, 1, 1), Progressing, "1 of 3 pods exist, and 1 are available"},
		"a set that is updated":     {set(3, 3, 3, 1), Progressing, "1 of 3 pods are updated"},
		"a set that waits for us":   {set(3, 3, 3, 1, onDelete), Waiting, "2 pods keep an older revision until somebody deletes them (OnDelete)"},
		"a set with a partition":    {set(3, 3, 3, 1, partition), Paused, "all 3 replicas are available, and the update stops at partition 2"},
		"daemons everywhere":        {daemons(3, 3, 3, 3, 0), Complete, "a pod is available on each of 3 nodes"},
		"daemons on the way":        {daemons(3, 2, 1, 1, 0), Progressing, "pods are on 2 of 3 nodes, 1 are up to date, and 1 are available"},
		"daemons in a wrong place":  {daemons(3, 3, 3, 3, 1), Progressing, "1 pod on nodes where none should be"},
		"daemons that wait for us":  {daemons(3, 3, 3, 1, 0, func(s *appsv1.DaemonSet) { s.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType }), Waiting, "2 pods keep an older revision until somebody deletes them (OnDelete)"},
		"daemons that were changed": {daemons(3, 3, 3, 3, 0, func(s *appsv1.DaemonSet) { s.Generation = 1 }), Progressing, unseen},
	})
}

func TestJobs(t *testing.T) {
	job := func(active, succeeded, failed int32, change ...func(*batchv1.Job)) *batchv1.Job {
		j := &batchv1.Job{Status: batchv1.JobStatus{Active: active, Succeeded: succeeded, Failed: failed}}
		for _, f := range change {
			f(j)
		}
		return j
	}
	is := func(kind batchv1.JobConditionType) func(*batchv1.Job) {
		return func(j *batchv1.Job) {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, Reason: "Why", Message: "because"})
		}
	}
	soon := noon.Add(20 * time.Second)
	check(t, map[string]judgement{
		"it runs":             {jobFinding(job(1, 0, 0), time.Time{}, noon), Progressing, "1 pod is active, 0 succeeded, 0 failed"},
		"it has ended":        {jobFinding(job(0, 2, 0, is(batchv1.JobComplete)), time.Time{}, noon), Complete, "it has ended: 2 pods succeeded"},
		"it has failed":       {jobFinding(job(0, 0, 7, is(batchv1.JobFailureTarget), is(batchv1.JobFailed)), time.Time{}, noon), Blocked, "it has failed for good (Why), after 7 failed pods: because"},
		"it is about to fail": {jobFinding(job(1, 0, 7, is(batchv1.JobFailureTarget)), time.Time{}, noon), Progressing, "it is about to end (Why), once 1 pod is gone"},
		"backoff":             {jobFinding(job(0, 0, 2), soon, noon), Waiting, "2 pods have failed, and the next is made in 20s (backoff, limit 6)"},
		"nor when pods are missing": {jobFinding(job(0, 0, 2, func(j *batchv1.Job) {
			j.Spec.ActiveDeadlineSeconds, j.Status.StartTime = ptr.To[int64](60), ptr.To(metav1.NewTime(noon.Add(-40*time.Second)))
		}), soon, noon), Progressing, "0 pods are active, 0 succeeded, 2 failed"},
		"backoff before a deadline": {jobFinding(job(0, 0, 2, func(j *batchv1.Job) {
			j.Spec.ActiveDeadlineSeconds, j.Status.StartTime = ptr.To[int64](600), ptr.To(metav1.NewTime(noon))
		}), soon, noon), Waiting, "2 pods have failed, and the next is made in 20s (backoff, limit 6)"},
		"a deadline is no backoff": {jobFinding(job(1, 0, 2), soon, noon), Progressing, "1 pod is active, 0 succeeded, 2 failed"},
		"suspended":                {jobFinding(job(0, 0, 0, func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(true) }), time.Time{}, noon), Paused, "it is suspended (spec.suspend), with 0 pods active"},
		"for another":              {jobFinding(job(0, 0, 0, func(j *batchv1.Job) { j.Spec.ManagedBy = ptr.To("example.com/kueue") }), time.Time{}, noon), Waiting, "it is for another controller (spec.managedBy): example.com/kueue"},
		"a schedule":               {cronJobFinding(&batchv1.CronJob{}, soon), Waiting, "it waits for its next start, at about 2026-06-01T12:00:20Z"},
		"a schedule unknown":       {cronJobFinding(&batchv1.CronJob{}, time.Time{}), Waiting, "it waits for its next start"},
		"a schedule at work":       {cronJobFinding(&batchv1.CronJob{Status: batchv1.CronJobStatus{Active: make([]corev1.ObjectReference, 2)}}, soon), Progressing, "2 Jobs active"},
		"a schedule held":          {cronJobFinding(&batchv1.CronJob{Spec: batchv1.CronJobSpec{Suspend: ptr.To(true)}}, soon), Paused, "it is suspended (spec.suspend)"},
	})
	if f := jobFinding(job(0, 0, 7, is(batchv1.JobFailed)), time.Time{}, noon); !f.over {
		t.Error("a Job that has failed holds up its CronJob")
	}
	if f := jobFinding(job(0, 0, 2), soon, noon); f.until != soon {
		t.Errorf("the backoff ends at %s", f.until)
	}
}

func pod(change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	for _, f := range change {
		f(p)
	}
	return p
}

func TestPods(t *testing.T) {
	condition := func(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message})
		}
	}
	phase := func(phase corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = phase } }
	unbound := func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "", corev1.PodPending }
	container := func(reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", RestartCount: 4, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
		}
	}
	deleted := func(since time.Duration, finalizers ...string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = ago(since), finalizers }
	}
	check(t, map[string]judgement{
		"ready":         {judgePod(pod(condition(corev1.PodReady, corev1.ConditionTrue, "", "")), noon), Complete, "it runs on node n and is ready"},
		"not ready":     {judgePod(pod(condition(corev1.PodReady, corev1.ConditionFalse, "", "containers with unready status: [c]")), noon), Progressing, "it runs on node n and is not ready: containers with unready status: [c]"},
		"starting":      {judgePod(pod(phase(corev1.PodPending), container("ContainerCreating", "")), noon), Progressing, "it is starting on node n: ContainerCreating"},
		"crashing":      {judgePod(pod(container("CrashLoopBackOff", "back-off 5m0s")), noon), Blocked, "container c cannot start (CrashLoopBackOff), after 4 restarts: back-off 5m0s"},
		"no image":      {judgePod(pod(phase(corev1.PodPending), container("ImagePullBackOff", "no such image")), noon), Blocked, "container c cannot start (ImagePullBackOff), after 4 restarts: no such image"},
		"unschedulable": {judgePod(pod(unbound, condition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/3 nodes are available")), noon), Waiting, "no node has place for it: 0/3 nodes are available"},
		"unscheduled":   {judgePod(pod(unbound), noon), Waiting, "it waits for the scheduler to choose a node"},
		"gated": {judgePod(pod(unbound, func(p *corev1.Pod) {
			p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/b"}, {Name: "example.com/a"}}
		}), noon), Waiting, "it is not to be scheduled before its 2 scheduling gates are taken off: example.com/a, example.com/b"},
		"ended":          {judgePod(pod(phase(corev1.PodSucceeded)), noon), Complete, "it has ended, with success"},
		"evicted":        {judgePod(pod(phase(corev1.PodFailed), func(p *corev1.Pod) { p.Status.Reason, p.Status.Message = "Evicted", "out of memory" }), noon), Blocked, "it has failed (Evicted): out of memory"},
		"stopping":       {judgePod(pod(deleted(-20*time.Second)), noon), Progressing, "it is being deleted, and has 20s to stop"},
		"a dead kubelet": {judgePod(pod(deleted(time.Hour)), noon), Waiting, "it should have stopped 60m ago, and waits for the kubelet of node n"},
		"held back":      {judgePod(pod(phase(corev1.PodFailed), deleted(time.Hour, "example.com/a")), noon), Waiting, "it is being deleted, and stays until its finalizers have been taken off: example.com/a"},
	})
}

func TestClaimsAndVolumes(t *testing.T) {
	claim := func(change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("late")}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
		for _, f := range change {
			f(c)
		}
		return c
	}
	late := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Provisioner: "csi", VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}
	never := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Provisioner: "kubernetes.io/no-provisioner"}
	bound := func(c *corev1.PersistentVolumeClaim) { c.Status.Phase, c.Spec.VolumeName = corev1.ClaimBound, "v" }
	check(t, map[string]judgement{
		"no consumer":   {judgeClaim(claim(), late, nil), Waiting, "it waits for its first consumer: class late binds when a pod is scheduled, and no pod uses the claim"},
		"a waiting pod": {judgeClaim(claim(), late, []*corev1.Pod{pod()}), Waiting, "it waits for its first consumer: class late binds when a pod is scheduled, and 1 pod is not: p"},
		"a chosen node": {judgeClaim(claim(func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{"volume.kubernetes.io/selected-node": "n", "volume.kubernetes.io/storage-provisioner": "csi"}
		}), late, nil), Waiting, "it waits for csi to provision a volume"},
		"no class":         {judgeClaim(claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }), nil, nil), Blocked, "no volume matches it, and it has no class that would provision one"},
		"an unknown class": {judgeClaim(claim(), nil, nil), Blocked, "no volume matches it, and its class late is not there"},
		"by hand only":     {judgeClaim(claim(), never, nil), Blocked, "no volume of class late matches it, and the class does not provision any"},
		"a named volume":   {judgeClaim(claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "v" }), late, nil), Waiting, "it waits for volume v, which it names"},
		"bound":            {judgeClaim(claim(bound), late, nil), Complete, "it is bound to volume v"},
		"growing": {judgeClaim(claim(bound, func(c *corev1.PersistentVolumeClaim) {
			c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimResizing, Status: corev1.ConditionTrue}}
		}), late, nil), Progressing, "it is bound to volume v, and Resizing"},
		"lost":              {judgeClaim(claim(bound, func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }), late, nil), Blocked, "its volume v is gone, or belongs to another claim"},
		"a free volume":     {judgeVolume(&corev1.PersistentVolume{Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable}}), Complete, "it is free to be bound"},
		"a failed volume":   {judgeVolume(&corev1.PersistentVolume{Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeFailed, Message: "no recycler"}}), Blocked, "it could not be reclaimed: no recycler"},
		"a retained volume": {judgeVolume(&corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased}}), Waiting, "its claim none is gone, and it is kept for somebody to look at (Retain)"},
		"a class":           {judgeClass(late), Complete, "volumes of it are provisioned by csi"},
	})
}

func TestLeasesAndServices(t *testing.T) {
	lease := func(age time.Duration) finding {
		return leaseFinding(&coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To("n"), LeaseDurationSeconds: ptr.To[int32](40), RenewTime: &metav1.MicroTime{Time: noon.Add(-age)}}}, noon)
	}
	service := func(kind corev1.ServiceType, selector map[string]string, ready ...bool) finding {
		slice := &discoveryv1.EndpointSlice{}
		for _, is := range ready {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Conditions: discoveryv1.EndpointConditions{Ready: ptr.To(is)}})
		}
		return judgeService(&corev1.Service{Spec: corev1.ServiceSpec{Type: kind, Selector: selector}}, []*discoveryv1.EndpointSlice{slice})
	}
	web := map[string]string{"app": "web"}
	check(t, map[string]judgement{
		"a lease":            {lease(5 * time.Second), Complete, "n renewed it 5s ago"},
		"an old lease":       {lease(time.Minute), Waiting, "n renewed it 60s ago, which is longer than it lasts"},
		"a free lease":       {leaseFinding(&coordinationv1.Lease{}, noon), Waiting, "nobody holds it"},
		"a service":          {service(corev1.ServiceTypeClusterIP, web, true, false), Complete, "1 of 2 endpoints ready"},
		"nobody is ready":    {service(corev1.ServiceTypeClusterIP, web, false), Waiting, "none of its 1 endpoint is ready"},
		"nobody is there":    {service(corev1.ServiceTypeClusterIP, web), Waiting, "no pod that has an address matches its selector"},
		"no selector":        {service(corev1.ServiceTypeClusterIP, nil), Waiting, "it has no selector, and nobody has written endpoints for it"},
		"a cloud is missing": {service(corev1.ServiceTypeLoadBalancer, web, true), Waiting, "it waits for a cloud to give it a load balancer"},
	})
}
