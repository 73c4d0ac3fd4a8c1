package deployment

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

const badImage = "bad" // its pods never become ready

// simPod is a pod of the small world.
type simPod struct {
	set            types.UID
	image          string
	ready, leaving bool
}

// sim is a Deployment, its ReplicaSets and their pods, with the actors that
// work on them: the plan under test, a simplified ReplicaSet controller for each
// set, a pretend kubelet and a user.
type sim struct {
	*testworld.World
	d       *appsv1.Deployment
	sets    []*appsv1.ReplicaSet
	pods    []*simPod
	now     time.Time
	created int
	// reached tells that as many pods were reported available as have to stay so,
	// since the user changed the numbers or a change of them was carried out.
	reached bool
	// total is what the sets asked for together before the last step.
	total int32
	// begun is how many pods a set of Recreate still makes of those that it was to make when
	// its reconcile began, whatever its size is by now.
	begun map[types.UID]int
}

func newSim(seed uint64, d *appsv1.Deployment, changes []change) *sim {
	s := &sim{World: testworld.New(seed), d: d, now: noon, begun: map[types.UID]int{}}
	s.Add(testworld.Actor{Name: "deployment", Step: s.stepDeployment},
		testworld.Actor{Name: "replicasets", Step: s.stepSets},
		testworld.Actor{Name: "kubelet", Step: s.stepKubelet},
		testworld.Actor{Name: "user", Step: s.user(changes)})
	s.Always(s.staysAvailable, s.staysWithinSurge, s.versionsDoNotMeet, s.oneNewSet)
	return s
}

// stepDeployment carries one plan out. Writes are seen at once, as the runner
// promises; the statuses of the sets are as old as their actor left them.
func (s *sim) stepDeployment() string {
	p := plan(seeing(s.d, s.sets, s.podsBySet()), s.now)
	var did []string
	last, report := carryOut(p, func(step act.Step) client.Object {
		what, object := s.take(p.Why, step)
		if what != "" {
			did = append(did, what)
		}
		return object
	})
	after := reportedBy(s.d, report)
	if diff := statusLine(s.d.Status, after.Status); diff != "" || s.d.Annotations[revisionAnnotation] != after.Annotations[revisionAnnotation] {
		s.d = after
		did = append(did, "status "+diff)
	}
	if did == nil {
		return ""
	}
	return fmt.Sprintf("(%s) %v", last.Why, did)
}

// take carries out one step of a plan that is made for this reason.
func (s *sim) take(why string, step act.Step) (string, client.Object) {
	switch step := step.(type) {
	case act.Create:
		return "create " + s.create(step.Object.(*appsv1.ReplicaSet)), step.Object
	case act.Patch:
		scales := s.edit(step)
		if scales && strings.HasPrefix(why, "scaled") || strings.HasPrefix(why, "paused") {
			s.reached = false
		}
		return editOf(step), step.Of
	case act.Update:
		generation := s.d.Generation
		s.d = step.Object.(*appsv1.Deployment)
		s.d.Generation = generation + 1
		return "rolled back", s.d
	case act.Delete:
		s.sets = slices.DeleteFunc(s.sets, func(rs *appsv1.ReplicaSet) bool { return rs.UID == step.Of.GetUID() })
		return "remove " + step.Of.GetName(), step.Of
	}
	return "", step.About()
}

// statusLine prints a status that differs from the one before.
func statusLine(before, after appsv1.DeploymentStatus) string {
	print := func(s appsv1.DeploymentStatus) string {
		reasons := ""
		for _, kind := range []appsv1.DeploymentConditionType{appsv1.DeploymentAvailable, appsv1.DeploymentProgressing} {
			if c := condition(&s, kind); c != nil {
				reasons += " " + c.Reason
			}
		}
		return fmt.Sprintf("%d/%d/%d gen %d%s", s.UpdatedReplicas, s.Replicas, s.AvailableReplicas, s.ObservedGeneration, reasons)
	}
	if print(before) == print(after) {
		return ""
	}
	return print(after)
}

func (s *sim) create(set *appsv1.ReplicaSet) string {
	s.created++
	made := set.DeepCopy()
	made.UID, made.Generation = types.UID(made.Name), 1
	made.CreationTimestamp = metav1.NewTime(s.now)
	s.sets = append(s.sets, made)
	return fmt.Sprintf("%s with %d", made.Name, size(made))
}

// edit patches a set and reports whether its size changes.
func (s *sim) edit(patch act.Patch) (scales bool) {
	for i, set := range s.sets {
		if set.UID != patch.Of.GetUID() {
			continue
		}
		s.sets[i] = patched(set, patch)
		if scales = size(s.sets[i]) != size(set); scales {
			s.sets[i].Generation++
		}
	}
	return scales
}

// stepSets takes one step of one set that has something to do: add or take pods,
// or report.
func (s *sim) stepSets() string {
	for _, i := range s.Rand.Perm(len(s.sets)) {
		set := s.sets[i]
		live := s.live(set.UID)
		switch missing := int(size(set)) - len(live); {
		case missing > 0 || s.begun[set.UID] > 0:
			if s.begun[set.UID] == 0 && s.d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
				s.begun[set.UID] = missing
				return fmt.Sprintf("%s is to make %d pods", set.Name, missing)
			}
			s.begun[set.UID] = max(0, s.begun[set.UID]-1)
			s.pods = append(s.pods, &simPod{set: set.UID, image: set.Spec.Template.Spec.Containers[0].Image})
			return set.Name + " adds a pod"
		case missing < 0:
			victim := slices.MinFunc(live, func(a, b *simPod) int { return cmp.Compare(rank(a), rank(b)) })
			victim.leaving = true
			return set.Name + " takes a pod"
		}
		if status := s.statusOf(set); status != set.Status.String() {
			s.sets[i] = set.DeepCopy()
			s.report(s.sets[i])
			return fmt.Sprintf("%s reports %d of %d", set.Name, s.sets[i].Status.AvailableReplicas, size(set))
		}
	}
	return ""
}

func rank(p *simPod) int {
	if p.ready {
		return 1
	}
	return 0
}

func (s *sim) report(set *appsv1.ReplicaSet) {
	live := s.live(set.UID)
	leaving := int32(0)
	for _, p := range s.pods {
		if p.set == set.UID && p.leaving {
			leaving++
		}
	}
	set.Status = appsv1.ReplicaSetStatus{Replicas: int32(len(live)), ReadyReplicas: s.ready(set.UID), AvailableReplicas: s.ready(set.UID),
		ObservedGeneration: set.Generation, TerminatingReplicas: &leaving}
}

func (s *sim) statusOf(set *appsv1.ReplicaSet) string {
	fresh := *set
	s.report(&fresh)
	return fresh.Status.String()
}

// stepKubelet makes one pod ready or lets one end.
func (s *sim) stepKubelet() string {
	for _, i := range s.Rand.Perm(len(s.pods)) {
		switch p := s.pods[i]; {
		case p.leaving:
			s.pods = slices.Delete(s.pods, i, i+1)
			return "a pod of " + string(p.set) + " is gone"
		case !p.ready && p.image != badImage:
			p.ready = true
			return "a pod of " + string(p.set) + " is ready"
		}
	}
	return ""
}

// change is one edit of the Deployment by its user.
type change struct {
	name string
	do   deploymentOption
}

// user makes the changes in order, each after some steps of chance.
func (s *sim) user(changes []change) func() string {
	return func() string {
		s.now = s.now.Add(time.Second)
		if len(changes) == 0 {
			return ""
		}
		if s.Rand.IntN(6) > 0 {
			return "waits"
		}
		next := changes[0]
		changes = changes[1:]
		s.d = s.d.DeepCopy()
		before := *s.d.Spec.DeepCopy()
		next.do(s.d)
		s.d.Generation++
		if ptr.Deref(before.Replicas, 1) != wanted(s.d) || before.Strategy.String() != s.d.Spec.Strategy.String() {
			s.reached = false
		}
		return next.name
	}
}

func (s *sim) live(uid types.UID) []*simPod {
	var live []*simPod
	for _, p := range s.pods {
		if p.set == uid && !p.leaving {
			live = append(live, p)
		}
	}
	return live
}

func (s *sim) ready(uid types.UID) int32 {
	n := int32(0)
	for _, p := range s.live(uid) {
		n += int32(rank(p))
	}
	return n
}

func (s *sim) podsBySet() map[types.UID][]*corev1.Pod {
	found := map[types.UID][]*corev1.Pod{}
	for _, p := range s.pods {
		found[p.set] = append(found[p.set], &corev1.Pod{})
	}
	return found
}

// bounds are how many pods a rollout has to keep available, and how many it may ask
// for: a share of surge counts up, one of unavailable pods down, and of two that
// come to nothing one pod may be unavailable.
func (s *sim) bounds() (least, most int32) {
	replicas, strategy := *s.d.Spec.Replicas, s.d.Spec.Strategy
	if strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
		return replicas, replicas
	}
	surge, unavailable := int32(0), int32(0)
	if r := strategy.RollingUpdate; r != nil {
		surge, unavailable = podsOf(r.MaxSurge, replicas, 99), podsOf(r.MaxUnavailable, replicas, 0)
	}
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return max(0, replicas-unavailable), replicas + surge
}

// podsOf is a number of pods, or so many hundredths of all.
func podsOf(value *intstr.IntOrString, of, roundUp int32) int32 {
	if value == nil {
		return 0
	}
	percent, isShare := strings.CutSuffix(value.StrVal, "%")
	if !isShare {
		return value.IntVal
	}
	n, err := strconv.Atoi(percent)
	if err != nil {
		panic(err)
	}
	return (int32(n)*of + roundUp) / 100
}

// isNew reports whether a set has the present template; those of this world differ
// in their image alone.
func (s *sim) isNew(set *appsv1.ReplicaSet) bool {
	return set.Spec.Template.Spec.Containers[0].Image == s.d.Spec.Template.Spec.Containers[0].Image
}

// staysAvailable holds from the moment that enough pods are available. A set
// that was told to shrink takes unready pods first, so what it will keep is
// already decided when it is told.
func (s *sim) staysAvailable() string {
	if s.d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
		return ""
	}
	var have int32
	for _, set := range s.sets {
		have += min(s.ready(set.UID), size(set))
	}
	least, _ := s.bounds()
	if s.reached && have < least {
		return fmt.Sprintf("%d pods stay available, %d have to", have, least)
	}
	s.reached = s.reached || sum(s.sets, available) >= least
	return ""
}

// staysWithinSurge lets the sets ask for more than is allowed only while they
// come down from a time when it was.
func (s *sim) staysWithinSurge() string {
	total := sum(s.sets, size)
	_, most := s.bounds()
	broken := total > most && total > s.total
	s.total = total
	if broken {
		return fmt.Sprintf("the sets ask for %d pods, at most %d are allowed", total, most)
	}
	return ""
}

// versionsDoNotMeet is what Recreate is for, also while it is paused.
func (s *sim) versionsDoNotMeet() string {
	if s.d.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		return ""
	}
	images := map[string]bool{}
	for _, p := range s.pods {
		images[p.image] = true
	}
	if len(images) > 1 {
		return fmt.Sprintf("pods of %d versions at once", len(images))
	}
	return ""
}

func (s *sim) oneNewSet() string {
	n := 0
	for _, set := range s.sets {
		if s.isNew(set) {
			n++
		}
	}
	if n > 1 {
		return fmt.Sprintf("%d sets of the present template", n)
	}
	return ""
}

// settledWell says what is not as the user wants it in the end.
func (s *sim) settledWell() string {
	var newSet *appsv1.ReplicaSet
	var old []*appsv1.ReplicaSet
	for _, set := range s.sets {
		if s.isNew(set) {
			newSet = set
		} else {
			old = append(old, set)
		}
	}
	status, asked := s.d.Status, *s.d.Spec.Replicas
	switch {
	case newSet == nil:
		return "no set of the present template"
	case *newSet.Spec.Replicas != asked || sum(old, size) > 0:
		return fmt.Sprintf("%d new and %d old pods asked for", size(newSet), sum(old, size))
	case s.ready(newSet.UID) != asked || len(s.pods) != int(asked):
		return "pods are not as asked for"
	case status.Replicas != asked || status.UpdatedReplicas != asked || status.AvailableReplicas != asked || status.ObservedGeneration != s.d.Generation:
		return "the status does not say complete"
	case condition(&s.d.Status, appsv1.DeploymentProgressing).Reason != reasonComplete:
		return "the rollout is not reported complete"
	case s.d.Annotations[revisionAnnotation] != newSet.Annotations[revisionAnnotation]:
		return "the revision is not the new set's"
	case len(old) > int(*s.d.Spec.RevisionHistoryLimit):
		return fmt.Sprintf("%d old sets are kept", len(old))
	}
	return ""
}
