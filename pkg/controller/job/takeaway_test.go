package job

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// TestAControllerKilledBetweenTheTwoWrites takes pods away until it is killed
// between the finalizer and the deletion of the first; then the Job is changed,
// and another controller goes on.
func TestAControllerKilledBetweenTheTwoWrites(t *testing.T) {
	active := func(n int32) jobOption {
		return func(j *batchv1.Job) { j.Status.Active, j.Status.Ready = n, ptr.To(n) }
	}
	onIndex := func(name string, i int) *corev1.Pod { return newPodOf(name, index(i)) }
	for name, tc := range map[string]struct {
		job   *batchv1.Job
		pods  []*corev1.Pod
		after func(*batchv1.Job, []*corev1.Pod)
		did   string
		left  string
	}{
		"suspended, and still so": {newJob(1, active(1), suspend), some(1), func(*batchv1.Job, []*corev1.Pod) {},
			"delete pods, update jobs/status", ""},
		"suspended and resumed: the pod counts again": {newJob(1, active(1), suspend), some(1), func(j *batchv1.Job, _ []*corev1.Pod) { j.Spec.Suspend = nil },
			"patch pods", "p0 tracked"},
		"the same with an index": {newJob(1, active(1), suspend, indexedMode), []*corev1.Pod{onIndex("p0", 0)}, func(j *batchv1.Job, _ []*corev1.Pod) { j.Spec.Suspend = nil },
			"patch pods", "p0 tracked"},
		"scaled down, and still so: the same pod goes": {newJob(2, active(2), parallel(1)), []*corev1.Pod{newPodOf("a", unready), newPodOf("b")},
			func(_ *batchv1.Job, now []*corev1.Pod) { now[0].Status, now[1].Status = now[1].Status, now[0].Status },
			"delete pods, update jobs/status", "b tracked"},
		"scaled down and up: both count": {newJob(2, active(2), parallel(1)), []*corev1.Pod{newPodOf("a", unready), newPodOf("b")},
			func(j *batchv1.Job, _ []*corev1.Pod) { j.Spec.Parallelism = ptr.To(int32(2)) }, "patch pods, update jobs/status", "a tracked, b tracked"},
		"resumed and deleted: left to the collector": {newJob(1, active(1), suspend), some(1), func(j *batchv1.Job, _ []*corev1.Pod) { j.Spec.Suspend = nil; leaving(j) },
			"", "p0"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{tc.job}
			for _, pod := range tc.pods {
				objects = append(objects, pod)
			}
			client := fake.NewClientset(objects...)
			killed := false
			client.PrependReactor("*", "*", func(a ktesting.Action) (bool, runtime.Object, error) {
				killed = killed || a.GetVerb() == "delete"
				return killed, nil, fixture.ErrKilled
			})
			check(t, newRig(t, client, objects...).sync(t.Context(), pi).Err() != nil, true)
			client.ReactionChain = client.ReactionChain[1:]
			client.ClearActions()

			left := live(t, client)
			tc.after(tc.job, left)
			now := []runtime.Object{tc.job}
			for _, pod := range left {
				now = append(now, pod)
			}
			r := newRig(t, client, now...)
			check(t, r.sync(t.Context(), pi).Err(), nil)
			check(t, r.Requests(), tc.did)
			var names []string
			for _, pod := range live(t, client) {
				name := pod.Name
				if tracked(pod) {
					name += " tracked"
				}
				names = append(names, name)
			}
			check(t, strings.Join(names, ", "), tc.left)
		})
	}
}

func live(t *testing.T, client *fake.Clientset) (all []*corev1.Pod) {
	t.Helper()
	list, err := client.Tracker().List(corev1.SchemeGroupVersion.WithResource("pods"), corev1.SchemeGroupVersion.WithKind("Pod"), "ns")
	if err != nil {
		t.Fatal(err)
	}
	items := list.(*corev1.PodList).Items
	for i := range items {
		all = append(all, &items[i])
	}
	return all
}

// TestPodsThatChangeMeanwhile has the API server refuse the patch of a pod that is
// not any more as the cache shows it.
func TestPodsThatChangeMeanwhile(t *testing.T) {
	changed := apierrors.NewConflict(corev1.Resource("pods"), "p0", errors.New("changed"))
	onItsWay := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "p0", nil)
	running := func(j *batchv1.Job) { j.Status.Active, j.Status.Ready = 1, ptr.To(int32(1)) }
	another := newPodOf("p0", func(p *corev1.Pod) { p.UID = "another" })
	for name, tc := range map[string]struct {
		job   *batchv1.Job
		pod   *corev1.Pod
		live  *corev1.Pod
		fault error
		did   string
		err   bool
	}{
		"one to be taken away may have succeeded":       {newJob(1, running, suspend), newPodOf("p0"), newPodOf("p0", success), changed, "patch pods, list pods, update jobs/status", true},
		"one to be taken away is gone":                  {newJob(1, running, suspend), newPodOf("p0"), another, gone, "patch pods, list pods, delete pods, update jobs/status", false},
		"one to be taken away seems to be gone":         {newJob(1, running, suspend), newPodOf("p0"), newPodOf("p0"), gone, "patch pods, list pods, update jobs/status", true},
		"one to be taken away is deleted by others too": {newJob(1, running, suspend), newPodOf("p0"), newPodOf("p0", goingAway), changed, "patch pods, list pods, update jobs/status", true},
		"one to be counted again is on its way":         {newJob(1, running), newPodOf("p0", untracked), newPodOf("p0", goingAway), onItsWay, "patch pods, list pods", false},
		"one to be counted again has changed":           {newJob(1, running), newPodOf("p0", untracked), newPodOf("p0"), changed, "patch pods, list pods", true},
		"one to be counted again seems to be gone":      {newJob(1, running), newPodOf("p0", untracked), newPodOf("p0"), gone, "patch pods, list pods", true},
		"one to be counted again is refused":            {newJob(1, running), newPodOf("p0", untracked), newPodOf("p0"), denied, "patch pods", true},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(tc.job, tc.live)
			fails("patch", "pods", tc.fault)(client)
			r := newRig(t, client, tc.job, tc.pod)
			check(t, r.sync(t.Context(), pi).Err() != nil, tc.err)
			check(t, r.Requests(), tc.did)
		})
	}
}

// TestOnlyAFinalizerThatIsOffIsCounted has the API server, or something before it,
// answer the patch that takes off the finalizer of a pod that has ended.
func TestOnlyAFinalizerThatIsOffIsCounted(t *testing.T) {
	refused := apierrors.NewConflict(corev1.Resource("pods"), "p0", errors.New("refused by a webhook"))
	another := newPodOf("p0", func(p *corev1.Pod) { p.UID = "another" })
	running := func(j *batchv1.Job) { j.Status.Active, j.Status.Ready = 2, ptr.To(int32(2)) }
	for name, tc := range map[string]struct {
		fault   error
		live    *corev1.Pod // nil: none of its name
		looks   error
		did     string
		counted int32
		err     bool
	}{
		"refused with a conflict":             {refused, newPodOf("p0", broken), nil, "patch pods, list pods", 0, true},
		"the same on its way out":             {refused, newPodOf("p0", broken, goingAway), nil, "patch pods, list pods", 0, true},
		"not found, and it is on its way out": {gone, newPodOf("p0", broken, goingAway), nil, "patch pods, list pods", 0, true},
		"not found by something in between":   {gone, newPodOf("p0", broken), nil, "patch pods, list pods", 0, true},
		"not found, and nobody knows whether": {gone, newPodOf("p0", broken), denied, "patch pods, list pods", 0, true},
		"gone":                                {gone, nil, nil, "patch pods, list pods", 1, false},
		"gone, and another has its name":      {gone, another, nil, "patch pods, list pods", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			j, ended := newJob(2, running, workQueue), newPodOf("p0", broken)
			client := fake.NewClientset(j)
			if tc.live != nil {
				client = fake.NewClientset(j, tc.live)
			}
			fails("patch", "pods", tc.fault)(client)
			if tc.looks != nil {
				fails("list", "pods", tc.looks)(client)
			}
			r := newRig(t, client, j, ended, newPodOf("p1"), newPodOf("p2"))
			check(t, r.sync(t.Context(), pi).Err() != nil, tc.err)
			want := "update jobs/status, " + tc.did
			if tc.counted > 0 {
				want += ", update jobs/status"
			}
			check(t, r.Requests(), want)
			now, err := client.BatchV1().Jobs("ns").Get(t.Context(), "pi", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			check(t, now.Status.Failed, tc.counted)
			check(t, len(now.Status.UncountedTerminatedPods.Failed), 1-int(tc.counted))
		})
	}
}

// A status that is not found may be that of a Job that is gone, which the cache soon
// shows; until then nothing is taken for done.
func TestAJobThatSeemsToBeGoneIsLookedAtAgain(t *testing.T) {
	j := newJob(1)
	for name, client := range map[string]*fake.Clientset{
		"it is there": fake.NewClientset(j, newPodOf("p0", success)),
		"it is gone":  fake.NewClientset(newPodOf("p0", success)),
	} {
		t.Run(name, func(t *testing.T) {
			notFound := apierrors.NewNotFound(jobResource, "pi")
			fails("update", "jobs", notFound)(client)
			r := newRig(t, client, j, newPodOf("p0", success))
			result := r.sync(t.Context(), pi)
			if name == "it is there" {
				check(t, errors.Is(result.Err(), notFound), true) // retried after the same time
			} else {
				check(t, result.Err(), nil)
				check(t, result.After(), firstRetry)
			}
			check(t, r.Requests(), "update jobs/status, list jobs")
		})
	}
}

// A pod without owner that has changed may have been adopted; it is looked at again.
func TestAnOrphanThatHasChangedIsLookedAtAgain(t *testing.T) {
	orphan := newPodOf("p", func(p *corev1.Pod) { p.OwnerReferences = nil })
	client := fake.NewClientset(newPodOf("p", newer))
	fails("patch", "pods", apierrors.NewConflict(corev1.Resource("pods"), "p", errors.New("changed")))(client)
	r := newRig(t, client, orphan)
	result := r.syncOrphan(t.Context(), Key{Namespace: "ns", Name: "p"})
	check(t, result.Err(), nil)
	check(t, result.After(), firstRetry)
}

// TestWhatIsFreedIsWhatWasSeen holds that only the version of a pod without owner that
// nobody was going to count loses its finalizer: a Job may adopt the pod in that moment.
// One whose Job is gone loses it in any version: the garbage collector and the kubelet
// change it all the time.
func TestWhatIsFreedIsWhatWasSeen(t *testing.T) {
	at7 := func(p *corev1.Pod) { p.ResourceVersion = "7" }
	for want, orphan := range map[string]*corev1.Pod{
		`"resourceVersion":"7","uid":"p"`: newPodOf("p", at7, func(p *corev1.Pod) { p.OwnerReferences = nil }),
		`"uid":"p"`:                       newPodOf("p", at7, goingAway),
	} {
		client := fake.NewClientset(orphan)
		r := newRig(t, client, orphan)
		check(t, r.syncOrphan(t.Context(), Key{Namespace: "ns", Name: "p"}).Err(), nil)
		patch := client.Actions()[0].(ktesting.PatchAction).GetPatch()
		check(t, string(patch), `{"metadata":{"$deleteFromPrimitiveList/finalizers":["batch.kubernetes.io/job-tracking"],`+want+`}}`)
	}
}

// forgotten are the active pods in the cache that nobody would count.
func (w *world) forgotten() (names []string) {
	for _, item := range w.podIndex.List() {
		if p := item.(*corev1.Pod); pods.Active(p) && !tracked(p) {
			names = append(names, p.Name)
		}
	}
	return names
}

// stillForgotten notes those of them that are as they were.
func (w *world) stillForgotten(names []string) {
	for _, name := range names {
		if p := w.server.pods[name]; p != nil && pods.Active(p) && !tracked(p) {
			w.server.wrong = name + " runs and counts for nothing"
		}
	}
}

// change suspends and resumes the Job, and gives it less and more parallelism, so
// many times; in the end all is as in the beginning.
func (w *world) change(pairs int) {
	w.server.changes = true
	w.Add(
		w.times("suspension", 2*pairs, w.changeJob(func(j *batchv1.Job) { j.Spec.Suspend = ptr.To(!suspended(j)) })),
		w.times("scale", 2*pairs, w.changeJob(func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To(int32(w.server.most) + 1 - *j.Spec.Parallelism) })),
	)
}

func (w *world) changeJob(by func(*batchv1.Job)) func() string {
	return func() string {
		j := w.server.job.DeepCopy()
		by(j)
		j.Generation++
		w.server.putJob(j)
		return fmt.Sprintf("suspended %t, parallelism %d", suspended(j), *j.Spec.Parallelism)
	}
}

func TestAWorldWithKillsAndChangesForgetsNoPod(t *testing.T) {
	for name, j := range map[string]func() *batchv1.Job{
		"by pod":                func() *batchv1.Job { return newJob(6, fresh, parallel(3), limit(1000)) },
		"by index":              func() *batchv1.Job { return newJob(6, fresh, indexedMode, parallel(3), limit(1000)) },
		"by index, with limits": func() *batchv1.Job { return newJob(6, fresh, limitPerIndex(1), parallel(3), limit(1000)) },
		"replaced when failed":  func() *batchv1.Job { return newJob(5, fresh, replaceFailed, parallel(3), limit(1000)) },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range testworld.Seeds(t, 100) {
				w := newWorld(t, seed, j())
				w.change(3)
				w.end(seed)
			}
		})
	}
}

// TestOfEqualPodsTheLowestIndexGoesFirst has an Indexed Job with one pod too many.
func TestOfEqualPodsTheLowestIndexGoesFirst(t *testing.T) {
	for name, tc := range map[string]struct {
		active []*corev1.Pod
		want   string
	}{
		"all equal":          {[]*corev1.Pod{newPodOf("a", index(2)), newPodOf("b", index(1)), newPodOf("c", index(3))}, "b"},
		"one is missed less": {[]*corev1.Pod{newPodOf("a", index(2), unready), newPodOf("b", index(1))}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			gone := victims(&view{job: newJob(4, indexedMode), active: tc.active}, 1)
			if len(gone) != 1 || gone[0].Name != tc.want {
				t.Errorf("got %v, want %s", gone, tc.want)
			}
		})
	}
}
