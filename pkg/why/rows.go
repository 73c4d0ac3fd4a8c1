package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds that have a verdict of their own, or are looked up for another one.
var (
	deployments   = schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}
	replicaSets   = schema.GroupKind{Group: appsv1.GroupName, Kind: "ReplicaSet"}
	statefulSets  = schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"}
	daemonSets    = schema.GroupKind{Group: appsv1.GroupName, Kind: "DaemonSet"}
	replications  = schema.GroupKind{Kind: "ReplicationController"}
	jobs          = schema.GroupKind{Group: batchv1.GroupName, Kind: "Job"}
	cronJobs      = schema.GroupKind{Group: batchv1.GroupName, Kind: "CronJob"}
	podKind       = schema.GroupKind{Kind: "Pod"}
	claims        = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	volumes       = schema.GroupKind{Kind: "PersistentVolume"}
	classes       = schema.GroupKind{Group: storagev1.GroupName, Kind: "StorageClass"}
	nodes         = schema.GroupKind{Kind: "Node"}
	leases        = schema.GroupKind{Group: coordinationv1.GroupName, Kind: "Lease"}
	namespaces    = schema.GroupKind{Kind: "Namespace"}
	services      = schema.GroupKind{Kind: "Service"}
	endpointSlice = schema.GroupKind{Group: discoveryv1.GroupName, Kind: "EndpointSlice"}
	budgets       = schema.GroupKind{Group: policyv1.GroupName, Kind: "PodDisruptionBudget"}
	autoscalers   = schema.GroupKind{Group: autoscalingv2.GroupName, Kind: "HorizontalPodAutoscaler"}
	quotas        = schema.GroupKind{Kind: "ResourceQuota"}
	attachments   = schema.GroupKind{Group: storagev1.GroupName, Kind: "VolumeAttachment"}
	devices       = schema.GroupKind{Group: resourcev1.GroupName, Kind: "ResourceClaim"}
	signings      = schema.GroupKind{Group: certificatesv1.GroupName, Kind: "CertificateSigningRequest"}
	secrets       = schema.GroupKind{Kind: "Secret"}
)

// rows has what is known of each kind. It is filled by init, because rows lead to others.
var rows map[schema.GroupKind]row

func init() {
	rows = map[schema.GroupKind]row{
		deployments:   {of(plainly(judgeDeployment)), below(controlled[appsv1.Deployment, appsv1.ReplicaSet](replicaSets))},
		replicaSets:   {of(plainly(judgeReplicaSet)), below(controlled[appsv1.ReplicaSet, corev1.Pod](podKind))},
		replications:  {of(plainly(judgeReplicationController)), below(controlled[corev1.ReplicationController, corev1.Pod](podKind))},
		statefulSets:  {of(plainly(judgeStatefulSet)), below(ofStatefulSet)},
		daemonSets:    {of(plainly(judgeDaemonSet)), below(controlled[appsv1.DaemonSet, corev1.Pod](podKind))},
		cronJobs:      {of(judgeCronJob), below(controlled[batchv1.CronJob, batchv1.Job](jobs))},
		jobs:          {of(judgeJob), below(controlled[batchv1.Job, corev1.Pod](podKind))},
		podKind:       {of(judgePodNow), below(ofPod)},
		claims:        {of(judgeClaimHere), below(ofClaim)},
		volumes:       {of(plainly(judgeVolume)), below(ofVolume)},
		classes:       {of(plainly(judgeClass)), nil},
		nodes:         {of(judgeNodeHere), below(ofNode)},
		leases:        {of(judgeLease), nil},
		namespaces:    {of(judgeNamespaceHere), below(ofNamespace)},
		services:      {of(judgeServiceHere), below(ofService)},
		endpointSlice: {of(plainly(judgeSlice)), nil},
		budgets:       {of(plainly(judgeBudget)), below(ofBudget)},
		autoscalers:   {of(plainly(judgeAutoscaler)), below(ofAutoscaler)},
		quotas:        {of(plainly(judgeQuota)), nil},
		attachments:   {of(plainly(judgeAttachment)), nil},
		devices:       {of(plainly(judgeDevices)), nil},
		signings:      {of(plainly(judgeSigning)), nil},
		secrets:       {judgeSecretHere, nil},
	}
}

// of is the judge of a row, for objects of one type. What is being deleted is the same
// for all kinds but those that end in a way of their own.
func of[T any](judge func(*look, *T, []Controller) finding) func(*look, any, []Controller) (finding, bool) {
	return func(l *look, object any, views []Controller) (finding, bool) {
		o, ok := object.(*T)
		if !ok {
			return finding{}, false
		}
		f := judge(l, o, views)
		switch object.(type) {
		case *corev1.Pod, *corev1.Namespace, *storagev1.VolumeAttachment:
			return f, true
		}
		if m := object.(metav1.Object); m.GetDeletionTimestamp() != nil {
			leaves := judgeAny(m, l.now)
			f.verdict, f.sentence, f.cause, f.until = leaves.verdict, leaves.sentence, "", time.Time{}
			f.facts = append(f.facts, leaves.facts...)
		}
		return f, true
	}
}

// plainly is a judge that needs nothing but the object.
func plainly[T any](judge func(*T) finding) func(*look, *T, []Controller) finding {
	return func(_ *look, o *T, _ []Controller) finding { return judge(o) }
}

func below[T any](relatives func(*look, *T) []relative) func(*look, any) []relative {
	return func(l *look, object any) []relative {
		if o, ok := object.(*T); ok {
			return relatives(l, o)
		}
		return nil
	}
}

// judgeAny is about objects of kinds that have no verdict of their own. It has one for those
// that are being deleted; whether another is as it should be, is not known here.
func judgeAny(o metav1.Object, now time.Time) finding {
	var f finding
	if refs := o.GetOwnerReferences(); len(refs) > 0 {
		var names []string
		for _, ref := range refs {
			names = append(names, ref.Kind+" "+ref.Name)
		}
		f.facts = append(f.facts, "owned by "+strings.Join(names, ", "))
	}
	since := o.GetDeletionTimestamp()
	finalizers := slices.Clone(o.GetFinalizers())
	slices.Sort(finalizers)
	if since == nil {
		if len(finalizers) > 0 {
			f.facts = append(f.facts, "finalizers "+strings.Join(finalizers, ", "))
		}
		if _, is := o.(*metav1.PartialObjectMetadata); is {
			return f.with(Unknown, "it exists, and no controller here reads more of it than its metadata")
		}
		return f.with(Unknown, "it exists, and nothing here judges objects of its kind")
	}
	age := inWords(now.Sub(since.Time))
	if len(finalizers) == 0 {
		return f.with(Progressing, "it is being deleted")
	}
	f.facts = append(f.facts, "deletion asked for at "+since.UTC().Format(time.RFC3339))
	return f.with(Waiting, fmt.Sprintf("it has been deleted for %s, and stays until %s been taken off: %s", age, its(len(finalizers), "finalizer", "has", "have"), strings.Join(finalizers, ", ")))
}

// counted is a number with its noun and verb.
func counted[N int | int32](n N, noun, one, many string) string {
	if n == 1 {
		return plural(n, noun) + " " + one
	}
	return plural(n, noun) + " " + many
}

// its is the same of what an object has; a single one is not counted.
func its(n int, noun, one, many string) string {
	return "its " + strings.TrimPrefix(counted(n, noun, one, many), "1 ")
}

// plural is a number with its noun.
func plural[N int | int32 | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
