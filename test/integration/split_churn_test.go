package integration

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

const (
	rollingPods, rollingSurge = 6, 1
	jobPods                   = 3
	// jobEvery is how often a Job is made.
	jobEvery = 2 * time.Second
)

// rolling is a Deployment that never stands still, and Jobs that are made all the time.
type rolling struct {
	client  kubernetes.Interface
	kubelet *harness.Kubelet
	// last is closed when no further rollout and no further Job is to begin.
	last    chan struct{}
	working sync.WaitGroup

	mu sync.Mutex
	// rolled counts finished rollouts, made the Jobs that were created.
	rolled, made int
	// created counts the pods that were ever created for an owner, by its UID.
	created map[types.UID]int
	// asked is what each ReplicaSet asks for, most the largest sum of these.
	asked map[types.UID]int32
	most  int32
}

// startChurn begins the work, which goes on until finish.
func startChurn(t *testing.T, cp *harness.ControlPlane, client kubernetes.Interface) *rolling {
	t.Helper()
	c := &rolling{client: client, kubelet: harness.StartKubelet(t, cp.Admin), last: make(chan struct{}), created: map[types.UID]int{}, asked: map[types.UID]int32{}}
	for n := range 2 {
		if err := c.kubelet.NodeReady(t.Context(), fmt.Sprintf("node-%d", n), ""); err != nil {
			t.Fatal(err)
		}
	}
	c.kubelet.Serve("default", true)
	c.watch(t)
	d := harness.Deployment("web", rollingPods)
	surge, unavailable := intstr.FromInt32(rollingSurge), intstr.FromInt32(1)
	d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable}}
	d.Spec.RevisionHistoryLimit = new(int32(1000)) // all are counted at the end
	if _, err := client.AppsV1().Deployments("default").Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.working.Go(func() { c.roll(t) })
	c.working.Go(func() { c.makeJobs(t) })
	t.Cleanup(func() { c.end(); c.working.Wait() })
	return c
}

// watch counts pods and what ReplicaSets ask for, and ends the pods of Jobs.
func (c *rolling) watch(t *testing.T) {
	t.Helper()
	watchPods(t, c.client, "default", func(ctx context.Context, pod *corev1.Pod, created bool) {
		owner := metav1.GetControllerOf(pod)
		if created && owner != nil {
			c.mu.Lock()
			c.created[owner.UID]++
			c.mu.Unlock()
		}
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
			// A conflict means that the pod has changed and is seen again.
			_ = c.kubelet.FinishPod(ctx, "default", pod.Name, harness.Outcome{Phase: corev1.PodSucceeded})
		}
	})
	factory := informers.NewSharedInformerFactoryWithOptions(c.client, 0, informers.WithNamespace("default"))
	if _, err := factory.Apps().V1().ReplicaSets().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(set any) { c.asks(set.(*appsv1.ReplicaSet)) },
		UpdateFunc: func(_, set any) { c.asks(set.(*appsv1.ReplicaSet)) },
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	t.Cleanup(func() { cancel(); factory.Shutdown() })
}

func (c *rolling) asks(set *appsv1.ReplicaSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked[set.UID] = *set.Spec.Replicas
	sum := int32(0)
	for _, n := range c.asked {
		sum += n
	}
	c.most = max(c.most, sum)
}

// roll gives the Deployment another image as soon as the last one is rolled out.
func (c *rolling) roll(t *testing.T) {
	for {
		if err := harness.WaitFor(t.Context(), 3*patient, c.rolledOut); err != nil {
			t.Errorf("a rollout does not end: %v", err)
			return
		}
		c.mu.Lock()
		c.rolled++
		next := fmt.Sprintf("web:%d", c.rolled+1)
		c.mu.Unlock()
		select {
		case <-c.last:
			return
		default:
		}
		patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":%q}]}}}}`, next)
		if _, err := c.client.AppsV1().Deployments("default").Patch(t.Context(), "web", types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Errorf("roll: %v", err)
			return
		}
	}
}

func (c *rolling) rolledOut(ctx context.Context) error {
	d, err := c.client.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if s := d.Status; s.ObservedGeneration != d.Generation || s.UpdatedReplicas != rollingPods || s.Replicas != rollingPods || s.AvailableReplicas != rollingPods {
		return fmt.Errorf("generation %d has status %+v", d.Generation, s)
	}
	return nil
}

// makeJobs makes a Job every now and then.
func (c *rolling) makeJobs(t *testing.T) {
	tick := time.NewTicker(jobEvery)
	defer tick.Stop()
	for {
		c.mu.Lock()
		c.made++
		name := fmt.Sprintf("job-%d", c.made)
		c.mu.Unlock()
		template := workTemplate(name, "job:1")
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		if _, err := c.client.BatchV1().Jobs("default").Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: batchv1.JobSpec{Completions: new(int32(jobPods)), Parallelism: new(int32(2)), Template: template}}, metav1.CreateOptions{}); err != nil {
			t.Errorf("make %s: %v", name, err)
			return
		}
		select {
		case <-c.last:
			return
		case <-tick.C:
		}
	}
}

// goesOn waits until a rollout and two Jobs that began in this stage are through, and a
// Secret has its token.
func (c *rolling) goesOn(t *testing.T, stage int) {
	t.Helper()
	harness.Eventually(t, 2*patient, func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	name := fmt.Sprintf("token-%d", stage)
	if _, err := c.client.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{Type: corev1.SecretTypeServiceAccountToken,
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	rolled, made := c.rolled, c.made
	c.mu.Unlock()
	harness.Eventually(t, 2*patient, func(ctx context.Context) error {
		c.mu.Lock()
		now := c.rolled
		c.mu.Unlock()
		if now < rolled+2 { // the one that was under way, and one more
			return fmt.Errorf("stage %d: %d rollouts have ended", stage, now-rolled)
		}
		for _, n := range []int{made + 1, made + 2} {
			job, err := c.client.BatchV1().Jobs("default").Get(ctx, fmt.Sprintf("job-%d", n), metav1.GetOptions{})
			if err != nil {
				return err
			}
			if !complete(job) {
				return fmt.Errorf("stage %d: %s: %+v", stage, job.Name, job.Status)
			}
		}
		secret, err := c.client.CoreV1().Secrets("default").Get(ctx, name, metav1.GetOptions{})
		if err == nil && len(secret.Data[corev1.ServiceAccountTokenKey]) == 0 {
			err = fmt.Errorf("stage %d: %s has no token", stage, name)
		}
		return err
	})
}

func complete(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue
	})
}

func (c *rolling) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.last:
	default:
		close(c.last)
	}
}

// finish waits for the last rollout and the last Job.
func (c *rolling) finish(t *testing.T) {
	t.Helper()
	c.end()
	c.working.Wait()
	harness.Eventually(t, patient, func(ctx context.Context) error {
		jobs, err := c.client.BatchV1().Jobs("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range jobs.Items {
			if !complete(&jobs.Items[i]) {
				return fmt.Errorf("%s: %+v", jobs.Items[i].Name, jobs.Items[i].Status)
			}
		}
		return nil
	})
}
