package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// event is what a watch tells of a pod.
type event struct {
	pod  *corev1.Pod
	gone bool
}

// server is an API server with one Job, whose answers get lost and whose watches lag.
type server struct {
	mu       sync.Mutex
	rand     *rand.Rand
	now      func() time.Time
	version  int
	job      *batchv1.Job
	pods     map[string]*corev1.Pod
	podLog   []event
	jobLog   []*batchv1.Job
	faults   int // how many more calls may go wrong
	lifeLeft int // how many more calls the controller makes before it is killed; -1 never
	made     int
	most     int  // how many pods may be active at the same time
	changes  bool // the Job is suspended, resumed and scaled
	// reconciling: the controller, and not its loop, makes the calls.
	reconciling bool
	// fate is how each pod ended as far as the Job is concerned.
	fate map[types.UID]corev1.PodPhase
	// place is the index of each pod.
	place map[types.UID]int
	wrong string
}

var errKilled = errors.New("the controller is no more")

func newServer(r *rand.Rand, j *batchv1.Job) *server {
	s := &server{rand: r, pods: map[string]*corev1.Pod{}, lifeLeft: -1, faults: 10, most: int(*j.Spec.Parallelism),
		fate: map[types.UID]corev1.PodPhase{}, place: map[types.UID]int{}}
	s.putJob(j)
	return s
}

func (s *server) stamp(o metav1.Object) {
	s.version++
	o.SetResourceVersion(strconv.Itoa(s.version))
}

func (s *server) putJob(j *batchv1.Job) *batchv1.Job {
	s.stamp(j)
	s.job = j
	s.jobLog = append(s.jobLog, j)
	return j
}

func (s *server) put(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	s.stamp(p)
	s.pods[p.Name] = p
	s.podLog = append(s.podLog, event{pod: p})
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

func (s *server) remove(p *corev1.Pod) {
	p = p.DeepCopy()
	s.stamp(p)
	delete(s.pods, p.Name)
	s.podLog = append(s.podLog, event{p, true})
}

func (s *server) end(p *corev1.Pod, phase corev1.PodPhase, code int32) {
	p.Status.Phase = phase
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

// unlucky reports whether this call goes wrong, and whether it is carried out all the same.
func (s *server) unlucky() (lost, carriedOut bool) {
	if s.faults == 0 || s.rand.IntN(5) > 0 {
		return false, true
	}
	s.faults--
	return true, s.rand.IntN(2) == 0
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
		return fixture.LiveAmong(&s.mu, map[string]*batchv1.Job{"pi": s.job})(ctx, resource, namespace, o)
	}
	return fixture.LiveAmong(&s.mu, s.pods)(ctx, resource, namespace, o)
}

// handle answers the controller's calls.
func (s *server) handle(action clienttesting.Action) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lifeLeft == 0 {
		return true, nil, errKilled
	}
	s.lifeLeft = max(s.lifeLeft-1, -1)
	lost, carriedOut := s.unlucky()
	if !carriedOut {
		return true, nil, apierrors.NewTimeoutError("not done", 1)
	}
	object, err := s.do(action)
	if lost && err == nil {
		return true, nil, apierrors.NewTimeoutError("done, but the answer is lost", 1)
	}
	return true, object, err
}

func (s *server) do(action clienttesting.Action) (runtime.Object, error) {
	switch a := action.(type) {
	case clienttesting.CreateAction:
		if p, ok := a.GetObject().(*corev1.Pod); ok {
			return s.create(p), nil
		}
		return s.update(a.GetObject().(*batchv1.Job)) // an update is a CreateAction too
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

func (s *server) update(j *batchv1.Job) (runtime.Object, error) {
	if j.ResourceVersion != s.job.ResourceVersion {
		return nil, apierrors.NewConflict(batchv1.Resource("jobs"), j.Name, nil)
	}
	changed := s.job.DeepCopy()
	changed.Status = *j.Status.DeepCopy()
	if finished(s.job) {
		s.wrong = "a Job that had ended was written"
	}
	if finished(changed) && changed.Status.Active+*changed.Status.Terminating > 0 {
		s.wrong = "the Job ended before its pods"
	}
	if n := changed.Status; n.Succeeded < s.job.Status.Succeeded || n.Failed < s.job.Status.Failed || n.Active < 0 || *n.Ready < 0 || *n.Ready > n.Active {
		s.wrong = "numbers that cannot be: " + written(n)
	}
	return s.putJob(changed), nil
}

func (s *server) create(p *corev1.Pod) runtime.Object {
	s.made++
	p = p.DeepCopy()
	p.Name = fmt.Sprintf("%s%03d", p.GenerateName, s.made)
	p.UID = types.UID(p.Name)
	p.CreationTimestamp = metav1.NewTime(s.now())
	s.place[p.UID] = indexOf(p)
	return s.put(p)
}

func (s *server) delete(a clienttesting.DeleteActionImpl) error {
	p, ok := s.pods[a.GetName()]
	switch {
	case !ok:
		return apierrors.NewNotFound(corev1.Resource("pods"), a.GetName())
	case *a.DeleteOptions.Preconditions.UID != p.UID:
		return apierrors.NewConflict(corev1.Resource("pods"), p.Name, nil)
	case p.DeletionTimestamp == nil:
		p = p.DeepCopy()
		p.DeletionTimestamp = ptr.To(metav1.NewTime(s.now()))
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
	p, ok := s.pods[a.GetName()]
	if !ok {
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), a.GetName())
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
	return s.put(p), nil
}
