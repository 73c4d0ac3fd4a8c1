package deployment

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
)

// line prints a plan for comparison: what is done, and the reason of the
// Progressing condition at the end.
func line(d *appsv1.Deployment, p act.Plan) string {
	var parts []string
	last, report := carryOut(p, func(step act.Step) client.Object {
		switch step := step.(type) {
		case act.Create:
			set := step.Object.(*appsv1.ReplicaSet)
			parts = append(parts, fmt.Sprintf("create %s with %d", set.Name[:strings.LastIndex(set.Name, "-")], size(set)))
		case act.Patch:
			parts = append(parts, editOf(step))
		case act.Delete:
			parts = append(parts, "remove "+step.Of.GetName())
		case act.Update:
			parts = append(parts, "to "+step.Object.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Image)
		case act.Event:
			parts = append(parts, "tell "+step.Reason)
		}
		return step.About()
	})
	if last.Terminal != nil {
		parts = append(parts, "refused")
	}
	if c := condition(&reportedBy(d, report).Status, appsv1.DeploymentProgressing); c != nil {
		parts = append(parts, c.Reason)
	}
	return strings.Join(parts, "; ")
}

// seeing is what is observed of a Deployment that owns these sets.
func seeing(d *appsv1.Deployment, sets []*appsv1.ReplicaSet, pods map[types.UID][]*corev1.Pod) observed {
	return observed{deployment: d, selector: labels.Everything(), claims: ownership.Claims[*appsv1.ReplicaSet]{Owned: sets}, oldPods: pods, countTerminating: true}
}

// settled is the status of a complete rollout of n pods.
func settled(n int32, reason string) deploymentOption {
	return withStatus(appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
		TerminatingReplicas: ptr.To[int32](0),
		Conditions: []appsv1.DeploymentCondition{
			newCondition(appsv1.DeploymentAvailable, corev1.ConditionTrue, reasonAvailable, messageAvailable, noon.Add(-time.Hour)),
			newCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, reason, "m", noon.Add(-time.Hour))}})
}

func leavingDeployment(d *appsv1.Deployment) { at := metav1.NewTime(noon); d.DeletionTimestamp = &at }

func TestPlan(t *testing.T) {
	back := func(to string) deploymentOption { return annotated(appsv1.DeprecatedRollbackTo, to) }
	history := func(n int32) deploymentOption {
		return func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = ptr.To(n) }
	}
	for name, tc := range map[string]struct {
		d    *appsv1.Deployment
		sets []*appsv1.ReplicaSet
		pods map[types.UID][]*corev1.Pod
		want string
	}{
		"the first rollout begins at full size":                            {deploy(3), nil, nil, "create web with 3; NewReplicaSetCreated"},
		"the first rollout of Recreate too":                                {deploy(3, recreateStrategy), nil, nil, "create web with 3; NewReplicaSetCreated"},
		"nothing wanted is complete at once":                               {deploy(0), nil, nil, "create web with 0; NewReplicaSetAvailable"},
		"a settled one is left alone":                                      {deploy(3, settled(3, reasonComplete)), sets(set(1, "v1", 3, 3)), nil, "NewReplicaSetAvailable"},
		"a set that is found is mentioned":                                 {deploy(3), sets(set(1, "v1", 3, 1)), nil, "ReplicaSetUpdated"},
		"a set that is found, and no progress":                             {deploy(3, withStatus(appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 1, ReadyReplicas: 1})), sets(set(1, "v1", 3, 1)), nil, "FoundNewReplicaSet"},
		"a new template makes a set and moves in the same breath":          {deploy(10, image("v2"), settled(10, reasonComplete)), sets(set(1, "v1", 10, 10, sizedFor("10", "13"))), nil, "create web with 3; web-1 10 -> 8; NewReplicaSetCreated"},
		"among twins the oldest is the new one":                            {deploy(3, settled(3, reasonComplete)), sets(set(2, "v1", 0, 0), set(1, "v1", 3, 3)), nil, "web-1 annotations; NewReplicaSetAvailable"},
		"a former template gets revision and size in one request":          {deploy(3, settled(3, reasonComplete)), sets(set(1, "v1", 0, 0), set(2, "v2", 3, 3)), nil, "web-1 0 -> 1, annotations; NewReplicaSetAvailable"},
		"another minReadySeconds frees no pods before its set has seen it": {deploy(10, image("v2"), posts("3", "0"), func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 600 }), sets(set(1, "v1", 10, 10, sizedFor("10", "13")), set(2, "v2", 3, 3, sizedFor("10", "13"))), nil, "web-2 minReadySeconds; ReplicaSetUpdated"},
		"another minReadySeconds is passed on":                             {deploy(3, settled(3, reasonComplete), func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 5 }), sets(set(1, "v1", 3, 3)), nil, "web-1 minReadySeconds; NewReplicaSetAvailable"},
		"scaling comes before a new template":                              {deploy(5, image("v2"), settled(3, reasonComplete)), sets(set(1, "v1", 3, 3)), nil, "web-1 3 -> 5, annotations; NewReplicaSetAvailable"},
		"scaling a rollout is in proportion":                               {deploy(6, image("v2"), settled(3, reasonUpdated)), sets(set(1, "v1", 3, 3), set(2, "v2", 1, 0)), nil, "web-1 3 -> 6, annotations; web-2 1 -> 2, annotations; ReplicaSetUpdated"},
		"a note that does not fit the size is corrected":                   {deploy(3, settled(3, reasonComplete)), sets(set(1, "v1", 3, 3, sizedFor("2", "3"))), nil, "web-1 annotations; NewReplicaSetAvailable"},
		"a changed surge alone is no reason to write":                      {deploy(3, settled(3, reasonComplete), posts("2", "1")), sets(set(1, "v1", 3, 3)), nil, "NewReplicaSetAvailable"},
		"Recreate takes the old pods first":                                {deploy(3, image("v2"), recreateStrategy, settled(3, reasonComplete)), sets(set(1, "v1", 3, 3)), nil, "web-1 3 -> 0, annotations; NewReplicaSetAvailable"},
		"Recreate waits for the set to notice":                             {deploy(3, image("v2"), recreateStrategy, settled(3, reasonUpdated)), sets(set(1, "v1", 0, 0, func(rs *appsv1.ReplicaSet) { rs.Status.Replicas = 1 })), nil, "ProgressDeadlineExceeded"},
		"Recreate waits for the last old pod":                              {deploy(3, image("v2"), recreateStrategy, settled(0, reasonUpdated)), sets(set(1, "v1", 0, 0)), map[types.UID][]*corev1.Pod{"web-1": {{}}}, "ProgressDeadlineExceeded"},
		"Recreate that waits at first has no progress to tell":             {deploy(3, image("v2"), recreateStrategy), sets(set(1, "v1", 0, 0)), map[types.UID][]*corev1.Pod{"web-1": {{}}}, ""},
		"Recreate corrects a note while it waits":                          {deploy(3, recreateStrategy, settled(3, reasonComplete)), sets(set(1, "v0", 0, 0), set(2, "v1", 3, 3, sizedFor("2", "2"))), map[types.UID][]*corev1.Pod{"web-1": {{}}}, "web-2 annotations; NewReplicaSetAvailable"},
		"Recreate goes on when it is gone":                                 {deploy(3, image("v2"), recreateStrategy, settled(0, reasonUpdated)), sets(set(1, "v1", 0, 0)), nil, "create web with 3; NewReplicaSetCreated"},
		"Recreate scales the set it has":                                   {deploy(3, recreateStrategy, settled(0, reasonUpdated)), sets(set(1, "v1", 0, 0)), nil, "web-1 0 -> 3, annotations; ProgressDeadlineExceeded"},
		"Recreate that is scaled with several sets still retires":          {deploy(5, image("v3"), recreateStrategy, settled(3, reasonComplete)), sets(set(1, "v1", 2, 2), set(2, "v2", 1, 1)), nil, "web-1 2 -> 0, annotations; web-2 1 -> 0, annotations; NewReplicaSetAvailable"},
		"a pause stops the rollout":                                        {deploy(3, image("v2"), paused, settled(3, reasonComplete)), sets(set(1, "v1", 3, 3)), nil, "DeploymentPaused"},
		"a paused one is scaled":                                           {deploy(5, image("v2"), paused, settled(3, reasonPaused)), sets(set(1, "v1", 3, 3)), nil, "web-1 3 -> 5, annotations; DeploymentPaused"},
		"a paused Recreate does not start beside old pods":                 {deploy(3, image("v2"), recreateStrategy, paused, settled(0, reasonPaused)), sets(set(1, "v1", 0, 0), set(2, "v2", 0, 0)), map[types.UID][]*corev1.Pod{"web-1": {{}}}, "DeploymentPaused"},
		"a paused Recreate scales the old set that it has":                 {deploy(5, image("v2"), recreateStrategy, paused, settled(3, reasonPaused)), sets(set(1, "v1", 3, 3), set(2, "v2", 0, 0)), map[types.UID][]*corev1.Pod{"web-1": {{}}}, "web-1 3 -> 5, annotations; DeploymentPaused"},
		"nor another old set":                                              {deploy(3, image("v3"), recreateStrategy, paused, settled(0, reasonPaused)), sets(set(1, "v1", 0, 0), set(2, "v2", 0, 0)), map[types.UID][]*corev1.Pod{"web-1": {{}}}, "DeploymentPaused"},
		"a paused Recreate keeps old sets whose pods still go":             {deploy(0, image("v2"), recreateStrategy, paused, history(0), settled(0, reasonPaused)), sets(set(1, "v1", 0, 0)), map[types.UID][]*corev1.Pod{"web-1": {{}}}, "DeploymentPaused"},
		"a paused one loses its history":                                   {deploy(3, paused, history(0), settled(3, reasonPaused)), sets(set(1, "v1", 3, 3), set(2, "v2", 0, 0)), nil, "web-1 annotations; remove web-2; DeploymentPaused"},
		"a paused one keeps the old set that it gives pods":                {deploy(2, image("v2"), paused, history(0), settled(0, reasonPaused)), sets(set(1, "v1", 0, 0)), nil, "web-1 0 -> 2, annotations; DeploymentPaused"},
		"a paused one at zero needs no notes":                              {deploy(0, paused, settled(0, reasonPaused)), sets(set(1, "v1", 0, 0)), nil, "DeploymentPaused"},
		"a paused one without sets makes none":                             {deploy(3, paused), nil, nil, "DeploymentPaused"},
		"resuming goes on where the rollout was":                           {deploy(3, image("v2"), settled(3, reasonPaused)), sets(set(1, "v1", 3, 3)), nil, "create web with 1; DeploymentResumed"},
		"a new set after an earlier resume is reported":                    {deploy(3, image("v2"), settled(3, reasonResumed)), sets(set(1, "v1", 3, 3)), nil, "create web with 1; NewReplicaSetCreated"},
		"resuming a complete one completes it":                             {deploy(3, settled(3, reasonPaused)), sets(set(1, "v1", 3, 3)), nil, "NewReplicaSetAvailable"},
		"a complete one loses the history beyond the limit":                {deploy(3, image("v3"), history(1), settled(3, reasonComplete)), sets(set(1, "v1", 0, 0), set(2, "v2", 0, 0), set(3, "v3", 3, 3)), nil, "remove web-1; NewReplicaSetAvailable"},
		"an unfinished one keeps its history":                              {deploy(3, image("v3"), history(1), settled(2, reasonUpdated)), sets(set(1, "v1", 0, 0), set(2, "v2", 0, 0), set(3, "v3", 3, 2)), nil, "ReplicaSetUpdated"},
		"a rollback changes the template and nothing else":                 {deploy(3, image("v2"), back("1"), settled(3, reasonComplete)), sets(set(1, "v1", 0, 0), set(2, "v2", 3, 3)), nil, "to v1; tell DeploymentRollback; NewReplicaSetAvailable"},
		"a rollback from a template without a set makes it first":          {deploy(3, image("v3"), back("1"), settled(3, reasonComplete)), sets(set(1, "v1", 0, 0), set(2, "v2", 3, 3)), nil, "create web with 1; NewReplicaSetCreated"},
		"and under Recreate without pods, as old ones are there":           {deploy(3, image("v3"), recreateStrategy, back("1"), settled(3, reasonComplete)), sets(set(1, "v1", 0, 0), set(2, "v2", 3, 3)), nil, "create web with 0; NewReplicaSetCreated"},
		"a paused one is not rolled back":                                  {deploy(3, image("v2"), back("1"), paused, history(0), settled(3, reasonPaused)), sets(set(1, "v1", 0, 0), set(2, "v2", 3, 3)), nil, "DeploymentPaused"},
		"one being deleted reports and moves nothing":                      {deploy(3, image("v2"), leavingDeployment, settled(3, reasonComplete)), sets(set(1, "v1", 3, 3)), nil, "NewReplicaSetAvailable"},
		"a selector for everything is refused with a word":                 {deploy(3, func(d *appsv1.Deployment) { d.Spec.Selector = &metav1.LabelSelector{} }), nil, nil, "tell SelectingAll"},
		"an unknown strategy is refused":                                   {deploy(3, func(d *appsv1.Deployment) { d.Spec.Strategy.Type = "Magic" }), nil, nil, "refused"},
		"a set whose revision is no number is left alone":                  {deploy(3, settled(3, reasonComplete)), sets(set(1, "v1", 3, 3, noted(revisionAnnotation, "x"))), nil, "NewReplicaSetAvailable"},
	} {
		t.Run(name, func(t *testing.T) {
			o := seeing(tc.d, tc.sets, tc.pods)
			before, _ := json.Marshal([]any{tc.d, tc.sets})
			check(t, line(tc.d, plan(o, noon)), tc.want)
			after, _ := json.Marshal([]any{tc.d, tc.sets})
			check(t, string(after), string(before))
			check(t, line(tc.d, plan(o, noon)), tc.want)
		})
	}
}

func TestASettledStatusIsWordForWordTheOneThatStands(t *testing.T) {
	d := deploy(3, settled(3, reasonComplete))
	p := plan(seeing(d, sets(set(1, "v1", 3, 3)), nil), noon)
	check(t, p.Stages, nil)
	check(t, p.Status(nil), nil)
	check(t, p.RequeueAfter, 0)
	check(t, p.Why, "complete: all 3 pods are new and available")
}

func TestTheNewSetIsTheOneThatClustersKnow(t *testing.T) {
	d := deploy(5, image("v2"), annotated("team", "a", corev1.LastAppliedConfigAnnotation, "{}"), func(d *appsv1.Deployment) {
		d.Spec.MinReadySeconds = 7
		d.Spec.Template.Labels["tier"] = "front"
	})
	got := newSetFor(d, sets(set(4, "v1", 5, 5)))
	hash := pods.TemplateHash(&d.Spec.Template, nil)
	labels := map[string]string{"app": "web", "tier": "front", "pod-template-hash": hash}
	want := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web-" + hash, Namespace: "ns", Labels: labels,
			Annotations: map[string]string{"team": "a", revisionAnnotation: "5", desiredAnnotation: "5", mostAnnotation: "7"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "d",
				Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}}},
		Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](2), MinReadySeconds: 7,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web", "pod-template-hash": hash}},
			Template: *d.Spec.Template.DeepCopy()},
	}
	want.Spec.Template.Labels = labels
	check(t, got, want)
}

func TestEditsAreBoundToWhatWasDecidedOn(t *testing.T) {
	e := edit{set: set(1, "v1", 3, 3), annotations: map[string]string{"a": "b"}, minReadySeconds: ptr.To[int32](0), to: 0}
	check(t, string(e.patch("7")), `{"metadata":{"annotations":{"a":"b"},"resourceVersion":"7","uid":"web-1"},"spec":{"minReadySeconds":0,"replicas":0}}`)
	e = edit{set: set(1, "v1", 3, 3), annotations: map[string]string{"a": "b"}, to: 3}
	check(t, string(e.patch("7")), `{"metadata":{"annotations":{"a":"b"},"resourceVersion":"7","uid":"web-1"}}`)
}
