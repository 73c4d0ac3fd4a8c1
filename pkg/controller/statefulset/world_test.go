package statefulset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

const badImage = "bad" // its pods never become ready

// sim is a StatefulSet and its pods, with the plan under test, a pretend kubelet
// and a user. Writes are seen at once, as the runner promises.
type sim struct {
	*testworld.World
	set     *appsv1.StatefulSet
	pods    map[string]*corev1.Pod
	now     time.Time
	made    int
	revs    map[string]string // image to revision
	current string
	broken  string // what a step did that it must not
}

func newSim(seed uint64, set *appsv1.StatefulSet, changes []setOption) *sim {
	s := &sim{World: testworld.New(seed), set: set, pods: map[string]*corev1.Pod{}, now: noon, revs: map[string]string{}}
	s.Add(testworld.Actor{Name: "set", Step: s.stepSet},
		testworld.Actor{Name: "kubelet", Step: s.stepKubelet},
		testworld.Actor{Name: "loss", Step: s.losses(4)},
		testworld.Actor{Name: "user", Step: s.user(changes)})
	s.Always(func() string { return s.broken })
	return s
}

// observe is the set with its pods as they are.
func (s *sim) observe() observed {
	image := s.set.Spec.Template.Spec.Containers[0].Image
	if s.revs[image] == "" {
		s.revs[image] = fmt.Sprint("r", len(s.revs))
	}
	o := observed{set: s.set, update: revision{s.revs[image], &s.set.Spec.Template}}
	for _, name := range s.names() {
		o.pods = append(o.pods, s.pods[name])
	}
	if s.current == "" {
		s.current = image
	}
	old := template(s.current)
	o.current = revision{s.revs[s.current], &old}
	return o
}

func (s *sim) names() []string {
	var names []string
	for name := range s.pods {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (s *sim) stepSet() string {
	o := s.observe()
	p := decide(o, s.now)
	did := ""
	for _, stage := range p.stages {
		if inOrder(s.set) && len(stage) > 1 {
			s.broken = "an ordered set does two things at once"
		}
		for _, st := range stage {
			did += st.print() + "; "
			s.do(st, o)
		}
	}
	status := completed(s.set, p.status)
	if status.CurrentRevision == o.update.name {
		s.current = s.set.Spec.Template.Spec.Containers[0].Image
	}
	changed := !reported(s.set.Status, status)
	if changed {
		s.set = s.set.DeepCopy()
		s.set.Status = status
		did += fmt.Sprintf("status %d/%d/%d", status.UpdatedReplicas, status.AvailableReplicas, status.Replicas)
	}
	return did
}

// do carries one step out, and notes what it must not do.
func (s *sim) do(st step, o observed) {
	switch pod := s.pods[st.pod.Name]; {
	case st.verb == create && pod != nil:
		s.broken = "a second pod for " + st.pod.Name
	case st.verb == create:
		s.made++
		made := st.pod.DeepCopy()
		made.UID, made.CreationTimestamp = types.UID(fmt.Sprint("u", s.made)), metav1.NewTime(s.now)
		made.Status.Phase = corev1.PodPending
		s.pods[made.Name] = made
		s.held(made.Name, "makes", o.pods)
	case st.verb == remove && pod.DeletionTimestamp != nil:
		s.broken = "deletes " + pod.Name + " again"
	case st.verb == remove:
		gone := pod.DeepCopy()
		gone.DeletionTimestamp = ptr.To(metav1.NewTime(s.now))
		s.pods[pod.Name] = gone
		if healthy(pod) {
			s.held(pod.Name, "deletes", o.pods)
		}
	}
}

func healthy(pod *corev1.Pod) bool {
	ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
	return pod.Status.Phase == corev1.PodRunning && ready && pod.DeletionTimestamp == nil
}

// held says what is wrong about a step of an ordered set: a pod is made only
// while those before it are well, and a pod that is well is deleted only while all
// others that are wanted are.
func (s *sim) held(name, does string, seen []*corev1.Pod) {
	if s.set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
		return
	}
	first := 0
	if s.set.Spec.Ordinals != nil {
		first = int(s.set.Spec.Ordinals.Start)
	}
	ordinal, err := strconv.Atoi(strings.TrimPrefix(name, s.set.Name+"-"))
	if err != nil {
		s.broken = "a pod named " + name
	}
	for i := range int(*s.set.Spec.Replicas) {
		other := fmt.Sprintf("%s-%d", s.set.Name, first+i)
		at := slices.IndexFunc(seen, func(p *corev1.Pod) bool { return p.Name == other })
		well := at >= 0 && healthy(seen[at])
		if other != name && !well && (does == "deletes" || first+i < ordinal) {
			s.broken = fmt.Sprintf("%s %s while %s is not well", does, name, other)
		}
	}
}

// stepKubelet finishes a pod that goes, or makes one ready.
func (s *sim) stepKubelet() string {
	s.now = s.now.Add(time.Second)
	names := s.names()
	for _, i := range s.Rand.Perm(len(names)) {
		pod := s.pods[names[i]]
		switch {
		case pod.DeletionTimestamp != nil:
			delete(s.pods, pod.Name)
			return pod.Name + " is gone"
		case pod.Status.Phase == corev1.PodPending && pod.Spec.Containers[0].Image != badImage:
			up := pod.DeepCopy()
			up.Status = newTestPod(0).Status
			s.pods[pod.Name] = up
			return pod.Name + " is ready"
		}
	}
	return ""
}

// losses are pods that somebody deletes, or that fail: in an ordered set, where
// two failed pods beyond the range wait for each other, that lose their readiness.
func (s *sim) losses(n int) func() string {
	return func() string {
		names := s.names()
		if n == 0 || len(names) == 0 {
			return ""
		}
		n--
		pod := s.pods[names[s.Rand.IntN(len(names))]].DeepCopy()
		if s.Rand.IntN(2) == 0 {
			if pod.Status.Phase = corev1.PodFailed; inOrder(s.set) {
				pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
			}
		} else if pod.DeletionTimestamp == nil {
			pod.DeletionTimestamp = ptr.To(metav1.NewTime(s.now))
		}
		s.pods[pod.Name] = pod
		return pod.Name
	}
}

// user makes the changes in order, each after some steps of chance.
func (s *sim) user(changes []setOption) func() string {
	return func() string {
		if len(changes) == 0 {
			return ""
		}
		if s.Rand.IntN(6) > 0 {
			return "waits"
		}
		s.set = s.set.DeepCopy()
		changes[0](s.set)
		s.set.Generation++
		changes = changes[1:]
		return fmt.Sprintf("wants %d of %s", wanted(s.set), s.set.Spec.Template.Spec.Containers[0].Image)
	}
}

func image(name string) setOption {
	return func(set *appsv1.StatefulSet) { set.Spec.Template = template(name) }
}
func scaled(n int32) setOption { return func(set *appsv1.StatefulSet) { set.Spec.Replicas = &n } }

// TestWorlds runs sets through changes and losses, in many orders.
func TestWorlds(t *testing.T) {
	for name, start := range map[string]setOption{"ordered": func(*appsv1.StatefulSet) {}, "parallel": parallel, "replacing": replacing} {
		t.Run(name, func(t *testing.T) {
			for seed := range testworld.Seeds(t, 200) {
				changes := []setOption{image("v3"), scaled(5), starting(2), partitioned(1), image("v4"), scaled(2), partitioned(0), scaled(3)}
				if name != "ordered" { // which a bad template holds up for ever
					changes = append(changes, image(badImage), image("v5"))
				}
				s := newSim(seed, newSet(3, start), changes)
				if err := s.Run(3000); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				st := s.set.Status
				if len(s.pods) != 3 || st.UpdatedReplicas != 3 || st.AvailableReplicas != 3 || st.CurrentRevision != st.UpdateRevision {
					t.Fatalf("seed %d: %d pods, status %+v\n%s", seed, len(s.pods), st, s.Transcript())
				}
			}
		})
	}
}
