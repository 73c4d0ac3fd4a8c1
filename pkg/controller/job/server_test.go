package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// server is an API server with one Job, whose answers get lost and whose watches lag.
type server struct {
	*fixture.Server
	now       func() time.Time
	job       *batchv1.Job
	pods      map[string]*corev1.Pod
	workloads map[string]*schedulingv1alpha2.Workload
	groups    map[string]*schedulingv1alpha2.PodGroup
	most      int  // how many pods may be active at the same time
	changes   bool // the Job is suspended, resumed and scaled
	// reconciling: the controller, and not its loop, makes the calls.
	reconciling bool
	// fate is how each pod ended as far as the Job is concerned.
	fate map[types.UID]corev1.PodPhase
	// place is the index of each pod.
	place map[types.UID]int
	// together: pods are to be of a group that is there or was.
	together bool
	wrong    string
}

func newServer(r *rand.Rand, j *batchv1.Job) *server {
	s := &server{Server: fixture.NewServer(r, 10, 5), pods: map[string]*corev1.Pod{}, most: int(*j.Spec.Parallelism),
		workloads: map[string]*schedulingv1alpha2.Workload{}, groups: map[string]*schedulingv1alpha2.PodGroup{},
		fate: map[types.UID]corev1.PodPhase{}, place: map[types.UID]int{}}
	s.putJob(j)
	return s
}

func (s *server) jobs() map[string]*batchv1.Job { return map[string]*batchv1.Job{"pi": s.job} }

func (s *server) putJob(j *batchv1.Job) *batchv1.Job {
	s.job = fixture.Put(s.Server, map[string]*batchv1.Job{}, j)
	return s.job
}

func (s *server) put(p *corev1.Pod) *corev1.Pod {
	p = fixture.Put(s.Server, s.pods, p)
	s.judge(p)
	return p
}

// judge puts down how a pod ended. One that runs when its finalizer goes has
// failed with its Job, unless the Job succeeds.
func (s *server) judge(p *corev1.Pod) {
	switch {
	case s.fate[p.UID] != "":
	case p.Status.Phase == corev1.PodSucceeded || failed(s.job, p):
		s.fate[p.UID] = p.Status.Phase
		if p.Status.Phase != corev1.PodSucceeded {
			s.fate[p.UID] = corev1.PodFailed
		}
	case !tracked(p):
		s.fate[p.UID] = corev1.PodUnknown
		if conditionOf(s.job, batchv1.JobFailureTarget) != nil {
			s.fate[p.UID] = corev1.PodFailed
		}
	}
}

func (s *server) end(p *corev1.Pod, phase corev1.PodPhase, code int32) {
	p.Status.Phase = phase
	if p.DeletionTimestamp != nil {
		p.DeletionGracePeriodSeconds = new(int64)
	}
	p.Status.Conditions = nil
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(s.now())}}}}
	s.put(p)
}

// ledger is what the Job has to say in the end.
func (s *server) ledger() (succeeded int, done map[int]bool, failed int) {
	done = map[int]bool{}
	for uid, phase := range s.fate {
		switch phase {
		case corev1.PodSucceeded:
			succeeded++
			if i := s.place[uid]; i != noIndex {
				done[i] = true
			}
		case corev1.PodFailed:
			failed++
		}
	}
	return succeeded, done, failed
}

// givenUpForNothing is an index that the status says has failed, although no pod of it did.
func (s *server) givenUpForNothing(givenUp map[int]bool) (int, bool) {
	lost := map[int]bool{}
	for uid, phase := range s.fate {
		if phase == corev1.PodFailed {
			lost[s.place[uid]] = true
		}
	}
	for i := range givenUp {
		if !lost[i] {
			return i, true
		}
	}
	return 0, false
}

// broken says what must never be.
func (s *server) broken() string {
	if s.wrong != "" {
		return s.wrong
	}
	active, of := 0, map[int]int{}
	for _, p := range s.pods {
		if p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			active++
			if i := indexOf(p); i != noIndex {
				of[i]++
			}
		}
	}
	if active > s.most {
		return fmt.Sprintf("%d pods are active", active)
	}
	for i, n := range of {
		if n > 1 {
			return fmt.Sprintf("index %d has %d pods", i, n)
		}
	}
	return ""
}

// look answers the controller's live reads; those of the loop, while a key is held,
// neither fail nor are they cut short.
func (s *server) look(ctx context.Context, resource schema.GroupResource, namespace string, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	if s.reconciling {
		if _, _, err := s.handle(clienttesting.NewListAction(resource.WithVersion("v1"), schema.GroupVersionKind{}, namespace, o)); err != nil {
			return nil, err
		}
	}
	if resource == jobResource {
		return fixture.LiveAmong(&s.Mu, s.jobs())(ctx, resource, namespace, o)
	}
	return fixture.LiveAmong(&s.Mu, s.pods)(ctx, resource, namespace, o)
}

// handle answers the controller's calls.
func (s *server) handle(action clienttesting.Action) (bool, runtime.Object, error) {
	return s.Answer(func() (runtime.Object, error) { return s.do(action) })
}

func (s *server) do(action clienttesting.Action) (runtime.Object, error) {
	switch a := action.(type) {
	case clienttesting.CreateAction:
		switch a.GetObject().(type) {
		case *corev1.Pod:
			return s.create(a)
		case *schedulingv1alpha2.Workload:
			return fixture.Create(s.Server, s.workloads, a)
		case *schedulingv1alpha2.PodGroup:
			return fixture.Create(s.Server, s.groups, a)
		}
		return s.update(a) // an update is a CreateAction too
	case clienttesting.DeleteActionImpl:
		return nil, s.delete(a)
	case clienttesting.PatchAction:
		return s.patch(a)
	case clienttesting.ListAction:
		list := &corev1.PodList{}
		for _, name := range sortedNames(s.pods) {
			list.Items = append(list.Items, *s.pods[name])
		}
		return list, nil
	}
	return nil, fmt.Errorf("unexpected %s", action.GetVerb())
}

func (s *server) update(a clienttesting.CreateAction) (runtime.Object, error) {
	_, j, err := fixture.Updated(s.jobs(), a)
	if err != nil {
		return nil, err
	}
	changed := s.job.DeepCopy()
	changed.Status = *j.Status.DeepCopy()
	if finished(s.job) {
		s.wrong = "a Job that had ended was written"
	}
	if finished(changed) && changed.Status.Active+*changed.Status.Terminating > 0 {
		s.wrong = "the Job ended before its pods"
	}
	if finished(changed) && changed.Status.StartTime == nil {
		s.wrong = "the Job ended without a start"
	}
	if n := changed.Status; overlap(n) {
		s.wrong = "an index has succeeded and failed: " + written(n)
	}
	if n := changed.Status; n.Succeeded < s.job.Status.Succeeded || n.Failed < s.job.Status.Failed || n.Active < 0 || *n.Ready < 0 || *n.Ready > n.Active {
		s.wrong = "numbers that cannot be: " + written(n)
	}
	return s.putJob(changed), nil
}

// overlap reports whether an index counts as done and as failed, which the API server refuses.
func overlap(s batchv1.JobStatus) bool {
	const all = 1 << 20
	return parseIndexes(s.CompletedIndexes, all).common(parseIndexes(ptr.Deref(s.FailedIndexes, ""), all)) > 0
}

func (s *server) create(a clienttesting.CreateAction) (runtime.Object, error) {
	p, err := fixture.Create(s.Server, s.pods, a, func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(s.now()) })
	if err != nil {
		return nil, err
	}
	s.place[p.UID] = indexOf(p)
	s.judge(p)
	if s.together && (p.Spec.SchedulingGroup == nil || !s.made(*p.Spec.SchedulingGroup.PodGroupName)) {
		s.wrong = "a pod was made without its group"
	}
	return p, nil
}

// made reports whether the group was made for the Job, though it may be gone by now.
func (s *server) made(group string) bool {
	for _, w := range s.workloads {
		return len(s.workloads) == 1 && newPodGroup(s.job, w).Name == group
	}
	return false
}

func (s *server) delete(a clienttesting.DeleteActionImpl) error {
	p, err := fixture.Deleted(s.pods, a)
	switch {
	case err != nil:
		return err
	case p.DeletionTimestamp == nil:
		p = p.DeepCopy()
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = ptr.To(metav1.NewTime(s.now())), ptr.To[int64](30)
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			p.DeletionGracePeriodSeconds = new(int64)
		}
		if conditionOf(s.job, batchv1.JobFailureTarget) == nil && !tracked(p) && !s.changes {
			s.wrong = "a pod was taken away although none was too many"
		}
		if s.fate[p.UID] == "" && s.job.Spec.SuccessPolicy != nil {
			s.fate[p.UID] = corev1.PodUnknown // it need not be counted when the Job succeeds
		}
		s.put(p)
	}
	return nil
}

func (s *server) patch(a clienttesting.PatchAction) (runtime.Object, error) {
	p, err := fixture.Named(s.pods, a, a.GetName())
	if err != nil {
		return nil, err
	}
	var patch struct {
		Metadata struct {
			UID             types.UID
			ResourceVersion string
			Finalizers      []string
			Off             []string `json:"$deleteFromPrimitiveList/finalizers"`
		}
	}
	if err := json.Unmarshal(a.GetPatch(), &patch); err != nil {
		return nil, err
	}
	m := patch.Metadata
	switch {
	case m.UID != p.UID || len(m.Off)+len(m.Finalizers) != 1:
		return nil, fmt.Errorf("unexpected patch %s", a.GetPatch())
	case m.ResourceVersion != "" && m.ResourceVersion != p.ResourceVersion:
		return nil, apierrors.NewConflict(corev1.Resource("pods"), p.Name, errors.New("changed"))
	case len(m.Finalizers) > 0 && p.DeletionTimestamp != nil:
		return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), p.Name, nil)
	}
	p = p.DeepCopy()
	p.Finalizers = m.Finalizers
	if len(m.Finalizers) > 0 && s.fate[p.UID] == corev1.PodUnknown {
		delete(s.fate, p.UID) // it is to be counted after all
	}
	if p.DeletionTimestamp != nil && len(p.Finalizers) == 0 && *p.DeletionGracePeriodSeconds == 0 {
		s.judge(p)
		fixture.Remove(s.Server, s.pods, p.Name)
		return p, nil // that is the version of before
	}
	return s.put(p), nil
}
