package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

const (
	// ofEach is how many Deployments, StatefulSets, DaemonSets and Jobs there are.
	ofEach = 50
	// rolls is how often their images change.
	rolls = 3
	// podsOfEach is how many pods a Deployment and a StatefulSet have.
	podsOfEach = 2
	// indexes is how many pods a Job runs.
	indexes = 3
)

// TestWorkloadsThroughKills rolls the same workloads twice: undisturbed, and
// while the process is killed twenty times at random moments. Both must end the
// same, and no pod may have been created twice for one place.
func TestWorkloadsThroughKills(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	unlimited := rest.CopyConfig(cp.Admin)
	unlimited.QPS = -1
	client, err := kubernetes.NewForConfig(unlimited)
	if err != nil {
		t.Fatal(err)
	}
	kubelet := harness.StartKubelet(t, cp.Admin)
	for n := range 4 {
		if err := kubelet.NodeReady(t.Context(), fmt.Sprintf("node-%d", n), ""); err != nil {
			t.Fatal(err)
		}
	}
	m := cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: []string{
		"--controllers=deployment-controller,replicaset-controller,statefulset-controller,daemonset-controller,job-controller,serviceaccount-controller"}})

	calm := newWork(t, client, kubelet, "calm")
	calm.play(t, func() {})
	stormy := newWork(t, client, kubelet, "stormy")
	random := rand.New(rand.NewPCG(1, 2))
	stormy.play(t, func() {
		for range kills / (rolls + 1) {
			pause := time.NewTimer(time.Duration(random.IntN(1500)) * time.Millisecond)
			<-pause.C
			m.Kill()
			if err := m.Restart(); err != nil {
				t.Fatal(err)
			}
		}
	})
	if want, got := calm.end, stormy.end; want != got {
		t.Errorf("the ends differ:\n%s", firstDifferences(want, got))
	}
	for _, w := range []*work{calm, stormy} {
		w.once(t)
	}
}

// work is what rolls in one namespace.
type work struct {
	client    kubernetes.Interface
	kubelet   *harness.Kubelet
	namespace string
	// end is all there is when everything has settled, without times and random names.
	end string

	mu sync.Mutex
	// created counts the pods that were seen by the place they were created for.
	created map[string]int
}

// newWork watches the pods of a new namespace; those of Jobs succeed.
func newWork(t *testing.T, client kubernetes.Interface, kubelet *harness.Kubelet, namespace string) *work {
	w := &work{client: client, kubelet: kubelet, namespace: namespace, created: map[string]int{}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kubelet.Serve(namespace, true)
	watchPods(t, client, namespace, func(ctx context.Context, pod *corev1.Pod, created bool) {
		if created {
			w.mu.Lock()
			w.created[place(pod)]++
			w.mu.Unlock()
		}
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
			// A conflict means that the pod has changed and is seen again.
			_ = kubelet.FinishPod(ctx, namespace, pod.Name, harness.Outcome{Phase: corev1.PodSucceeded})
		}
	})
	return w
}

// watchPods calls saw, one call after the other, for every pod of a namespace that
// is created or changes, until the test ends.
func watchPods(t *testing.T, client kubernetes.Interface, namespace string, saw func(ctx context.Context, pod *corev1.Pod, created bool)) {
	t.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { saw(ctx, obj.(*corev1.Pod), true) },
		UpdateFunc: func(_, obj any) { saw(ctx, obj.(*corev1.Pod), false) },
	}); err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	t.Cleanup(func() { cancel(); factory.Shutdown() })
}

// place names what a pod was created for: an ordinal of a revision, a node of a
// revision, an index of a Job, or one of the replicas of a ReplicaSet.
func place(pod *corev1.Pod) string {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return "nobody"
	}
	revision := pod.Labels[appsv1.ControllerRevisionHashLabelKey]
	switch owner.Kind {
	case "StatefulSet":
		return fmt.Sprintf("StatefulSet %s at %s", pod.Name, revision)
	case "DaemonSet":
		terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		return fmt.Sprintf("DaemonSet %s at %s on %s", owner.Name, revision, terms[0].MatchFields[0].Values[0])
	case "Job":
		return fmt.Sprintf("Job %s index %s", owner.Name, pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	}
	return fmt.Sprintf("%s %s", owner.Kind, owner.Name)
}

// once fails where more pods were created for a place than it takes.
func (w *work) once(t *testing.T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for at, n := range w.created {
		allowed := 1
		if strings.HasPrefix(at, "ReplicaSet") {
			allowed = podsOfEach
		}
		if n > allowed {
			t.Errorf("%s: %d pods were created for %s, at most %d have a place", w.namespace, n, at, allowed)
		}
	}
}

// play creates everything, rolls it, and waits until it has settled. After every
// change, while it is being followed, it calls meanwhile.
func (w *work) play(t *testing.T, meanwhile func()) {
	t.Helper()
	w.apply(t, 0)
	for roll := range rolls {
		meanwhile()
		harness.Eventually(t, 5*time.Minute, w.observed)
		w.apply(t, roll+1)
	}
	meanwhile()
	harness.Eventually(t, 5*time.Minute, w.settled)
	end, err := w.describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w.end = end
}

func workTemplate(app, image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}}}
}

// apply creates everything, or gives all but the Jobs a new image.
func (w *work) apply(t *testing.T, roll int) {
	t.Helper()
	image := fmt.Sprintf("web:%d", roll)
	each := func(do func(i int) error) {
		for i := range ofEach {
			if err := do(i); err != nil {
				t.Fatal(err)
			}
		}
	}
	if roll > 0 {
		patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":%q}]}}}}`, image)
		each(func(i int) error { return w.patch(t.Context(), i, patch) })
		return
	}
	each(func(i int) error { return w.create(t.Context(), i, image) })
}

func (w *work) patch(ctx context.Context, i int, patch []byte) error {
	apps, o := w.client.AppsV1(), metav1.PatchOptions{}
	if _, err := apps.Deployments(w.namespace).Patch(ctx, fmt.Sprintf("web-%d", i), types.StrategicMergePatchType, patch, o); err != nil {
		return err
	}
	if _, err := apps.StatefulSets(w.namespace).Patch(ctx, fmt.Sprintf("db-%d", i), types.StrategicMergePatchType, patch, o); err != nil {
		return err
	}
	_, err := apps.DaemonSets(w.namespace).Patch(ctx, fmt.Sprintf("agent-%d", i), types.StrategicMergePatchType, patch, o)
	return err
}

func (w *work) create(ctx context.Context, i int, image string) error {
	selector := func(app string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
	named := func(prefix string) (metav1.ObjectMeta, string) {
		app := fmt.Sprintf("%s-%d", prefix, i)
		return metav1.ObjectMeta{Name: app}, app
	}
	apps, o := w.client.AppsV1(), metav1.CreateOptions{}
	meta, app := named("web")
	if _, err := apps.Deployments(w.namespace).Create(ctx, &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(podsOfEach)), Selector: selector(app), Template: workTemplate(app, image)}}, o); err != nil {
		return err
	}
	meta, app = named("db")
	if _, err := apps.StatefulSets(w.namespace).Create(ctx, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(podsOfEach)), Selector: selector(app), Template: workTemplate(app, image), ServiceName: app}}, o); err != nil {
		return err
	}
	meta, app = named("agent")
	agent := workTemplate(app, image)
	agent.Spec.NodeSelector = map[string]string{corev1.LabelHostname: fmt.Sprintf("node-%d", i%4)}
	if _, err := apps.DaemonSets(w.namespace).Create(ctx, &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{
		Selector: selector(app), Template: agent}}, o); err != nil {
		return err
	}
	meta, app = named("batch")
	task := workTemplate(app, image)
	task.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := w.client.BatchV1().Jobs(w.namespace).Create(ctx, &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{
		Completions: new(int32(indexes)), Parallelism: new(int32(2)), CompletionMode: new(batchv1.IndexedCompletion), Template: task}}, o)
	return err
}

// all is everything in the namespace.
type all struct {
	deployments []appsv1.Deployment
	sets        []appsv1.ReplicaSet
	stateful    []appsv1.StatefulSet
	daemons     []appsv1.DaemonSet
	jobs        []batchv1.Job
	revisions   []appsv1.ControllerRevision
	pods        []corev1.Pod
}

func (w *work) list(ctx context.Context) (*all, error) {
	o := metav1.ListOptions{}
	deployments, err := w.client.AppsV1().Deployments(w.namespace).List(ctx, o)
	if err != nil {
		return nil, err
	}
	sets, err := w.client.AppsV1().ReplicaSets(w.namespace).List(ctx, o)
	if err != nil {
		return nil, err
	}
	stateful, err := w.client.AppsV1().StatefulSets(w.namespace).List(ctx, o)
	if err != nil {
		return nil, err
	}
	daemons, err := w.client.AppsV1().DaemonSets(w.namespace).List(ctx, o)
	if err != nil {
		return nil, err
	}
	jobs, err := w.client.BatchV1().Jobs(w.namespace).List(ctx, o)
	if err != nil {
		return nil, err
	}
	revisions, err := w.client.AppsV1().ControllerRevisions(w.namespace).List(ctx, o)
	if err != nil {
		return nil, err
	}
	pods, err := w.client.CoreV1().Pods(w.namespace).List(ctx, o)
	if err != nil {
		return nil, err
	}
	return &all{deployments.Items, sets.Items, stateful.Items, daemons.Items, jobs.Items, revisions.Items, pods.Items}, nil
}

// observed fails until every controller has seen the last image.
func (w *work) observed(ctx context.Context) error {
	now, err := w.list(ctx)
	if err != nil {
		return err
	}
	for _, d := range now.deployments {
		if d.Status.ObservedGeneration != d.Generation {
			return fmt.Errorf("%s/%s is at generation %d, observed %d", w.namespace, d.Name, d.Generation, d.Status.ObservedGeneration)
		}
	}
	for _, s := range now.stateful {
		if s.Status.ObservedGeneration != s.Generation {
			return fmt.Errorf("%s/%s is at generation %d, observed %d", w.namespace, s.Name, s.Generation, s.Status.ObservedGeneration)
		}
	}
	for _, d := range now.daemons {
		if d.Status.ObservedGeneration != d.Generation {
			return fmt.Errorf("%s/%s is at generation %d, observed %d", w.namespace, d.Name, d.Generation, d.Status.ObservedGeneration)
		}
	}
	return nil
}

// settled fails until everything is rolled out and every Job complete.
func (w *work) settled(ctx context.Context) error {
	if err := w.observed(ctx); err != nil {
		return err
	}
	now, err := w.list(ctx)
	if err != nil {
		return err
	}
	for _, d := range now.deployments {
		if s := d.Status; s.UpdatedReplicas != podsOfEach || s.Replicas != podsOfEach || s.AvailableReplicas != podsOfEach || ptr.Deref(s.TerminatingReplicas, 0) > 0 {
			return fmt.Errorf("%s/%s: %+v", w.namespace, d.Name, s)
		}
	}
	for _, d := range now.stateful {
		if s := d.Status; s.CurrentReplicas != podsOfEach || s.CurrentRevision != s.UpdateRevision || s.AvailableReplicas != podsOfEach {
			return fmt.Errorf("%s/%s: %+v", w.namespace, d.Name, s)
		}
	}
	for _, d := range now.daemons {
		if s := d.Status; s.DesiredNumberScheduled != 1 || s.UpdatedNumberScheduled != 1 || s.NumberAvailable != 1 {
			return fmt.Errorf("%s/%s: %+v", w.namespace, d.Name, s)
		}
	}
	for _, j := range now.jobs {
		if !slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
			return c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue
		}) {
			return fmt.Errorf("%s/%s is not complete: %+v", w.namespace, j.Name, j.Status)
		}
	}
	want := ofEach * (2*podsOfEach + 1 + indexes)
	if len(now.pods) != want {
		return fmt.Errorf("%s: %d pods, wanted %d", w.namespace, len(now.pods), want)
	}
	return nil
}

// describe is one line for each object; two runs of the same work have the same.
func (w *work) describe(ctx context.Context) (string, error) {
	now, err := w.list(ctx)
	if err != nil {
		return "", err
	}
	var lines []string
	add := func(kind, name string, what ...any) {
		body, _ := json.Marshal(what)
		lines = append(lines, fmt.Sprintf("%s %s %s", kind, name, withoutTimes(body)))
	}
	for _, d := range now.deployments {
		add("Deployment", d.Name, d.Annotations, d.Generation, d.Status)
	}
	for _, s := range now.sets {
		add("ReplicaSet", s.Name, s.Annotations, s.Generation > 0, s.Status.Replicas, s.Status.AvailableReplicas)
	}
	for _, s := range now.stateful {
		add("StatefulSet", s.Name, s.Generation, s.Status)
	}
	for _, d := range now.daemons {
		add("DaemonSet", d.Name, d.Annotations, d.Generation, d.Status)
	}
	for _, j := range now.jobs {
		add("Job", j.Name, j.Annotations, j.Generation, j.Status)
	}
	for _, r := range now.revisions {
		add("ControllerRevision", r.Name, r.Labels, r.Revision, r.Data)
	}
	for _, p := range now.pods {
		add("Pod", place(&p), p.Finalizers, p.Status.Phase, p.Spec.Containers[0].Image)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}

// withoutTimes blanks every member of an object that is a time, and messages,
// which name random pods.
func withoutTimes(body []byte) string {
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return err.Error()
	}
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				if strings.HasSuffix(name, "Time") || name == "message" {
					v[name] = "*"
				} else {
					strip(member)
				}
			}
		case []any:
			for _, member := range v {
				strip(member)
			}
		}
	}
	strip(value)
	text, _ := json.Marshal(value)
	return string(text)
}

// firstDifferences shows lines that only one of two texts has, twenty at most.
func firstDifferences(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	var out []string
	for _, line := range a {
		if !slices.Contains(b, line) {
			out = append(out, "calm:   "+line)
		}
	}
	for _, line := range b {
		if !slices.Contains(a, line) {
			out = append(out, "stormy: "+line)
		}
	}
	return strings.Join(out[:min(len(out), 20)], "\n")
}
