package integration

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// churn has workloads come, change and go, on nodes that live.
type churn struct {
	client  kubernetes.Interface
	kubelet *harness.Kubelet
}

func newChurn(t *testing.T, cp *harness.ControlPlane) *churn {
	t.Helper()
	unlimited := rest.CopyConfig(cp.Admin)
	unlimited.QPS = -1
	client, err := kubernetes.NewForConfig(unlimited)
	if err != nil {
		t.Fatal(err)
	}
	c := &churn{client, harness.StartKubelet(t, cp.Admin)}
	for n := range 3 {
		if err := c.kubelet.NodeReady(t.Context(), fmt.Sprintf("node-%d", n), ""); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// run goes through round after round until the time is over: each has a namespace of its
// own, and takes away that of the last but one.
func (c *churn) run(t *testing.T, long time.Duration) {
	t.Helper()
	ends := time.Now().Add(long)
	for round := 0; time.Now().Before(ends); round++ {
		name := fmt.Sprintf("churn-%d", round)
		c.namespace(t, name)
		c.create(t, name)
		harness.Eventually(t, time.Minute, func(ctx context.Context) error { return c.ready(ctx, name, 3) })
		c.scale(t, name, 6)
		harness.Eventually(t, time.Minute, func(ctx context.Context) error { return c.ready(ctx, name, 6) })
		c.roll(t, name)
		c.scale(t, name, 2)
		harness.Eventually(t, time.Minute, func(ctx context.Context) error { return c.ready(ctx, name, 2) })
		background := metav1.DeletePropagationForeground
		if err := c.client.AppsV1().DaemonSets(name).Delete(t.Context(), "agent", metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
			t.Fatal(err)
		}
		if round > 1 {
			if err := c.client.CoreV1().Namespaces().Delete(t.Context(), fmt.Sprintf("churn-%d", round-2), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (c *churn) namespace(t *testing.T, name string) {
	t.Helper()
	newWork(t, c.client, c.kubelet, name)
	harness.Eventually(t, time.Minute, func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// create makes one of each.
func (c *churn) create(t *testing.T, in string) {
	t.Helper()
	o, meta := metav1.CreateOptions{}, func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	selector := func(app string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
	task := workTemplate("batch", "task:1")
	task.Spec.RestartPolicy = corev1.RestartPolicyNever
	job := batchv1.JobSpec{Completions: new(int32(4)), Parallelism: new(int32(2)), Template: task, TTLSecondsAfterFinished: new(int32(5))}
	cpu := corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}}
	web := workTemplate("web", "web:1")
	web.Spec.Containers[0].Resources = cpu
	for what, create := range map[string]func(context.Context) error{
		"quota": func(ctx context.Context) error {
			_, err := c.client.CoreV1().ResourceQuotas(in).Create(ctx, &corev1.ResourceQuota{ObjectMeta: meta("quota"),
				Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("100"), "count/configmaps": resource.MustParse("10")}}}, o)
			return err
		},
		"service": func(ctx context.Context) error {
			_, err := c.client.CoreV1().Services(in).Create(ctx, &corev1.Service{ObjectMeta: meta("web"),
				Spec: corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}}}}, o)
			return err
		},
		"budget": func(ctx context.Context) error {
			least := intstr.FromInt32(1)
			_, err := c.client.PolicyV1().PodDisruptionBudgets(in).Create(ctx, &policyv1.PodDisruptionBudget{ObjectMeta: meta("web"),
				Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: selector("web")}}, o)
			return err
		},
		"autoscaler": func(ctx context.Context) error {
			_, err := c.client.AutoscalingV2().HorizontalPodAutoscalers(in).Create(ctx, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: meta("db"),
				Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 3, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "db"}}}, o)
			return err
		},
		"claim": func(ctx context.Context) error {
			_, err := c.client.CoreV1().PersistentVolumeClaims(in).Create(ctx, &corev1.PersistentVolumeClaim{ObjectMeta: meta("data"),
				Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: new("manual-" + in), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}, o)
			return err
		},
		"volume": func(ctx context.Context) error {
			_, err := c.client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{ObjectMeta: meta("data-" + in),
				Spec: corev1.PersistentVolumeSpec{StorageClassName: "manual-" + in, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
					PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
					PersistentVolumeSource:        corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: in}}}}, o)
			return err
		},
		"deployment": func(ctx context.Context) error {
			_, err := c.client.AppsV1().Deployments(in).Create(ctx, &appsv1.Deployment{ObjectMeta: meta("web"),
				Spec: appsv1.DeploymentSpec{Replicas: new(int32(3)), Selector: selector("web"), Template: web}}, o)
			return err
		},
		"stateful set": func(ctx context.Context) error {
			_, err := c.client.AppsV1().StatefulSets(in).Create(ctx, &appsv1.StatefulSet{ObjectMeta: meta("db"),
				Spec: appsv1.StatefulSetSpec{Replicas: new(int32(2)), Selector: selector("db"), Template: workTemplate("db", "db:1"), ServiceName: "db"}}, o)
			return err
		},
		"daemon set": func(ctx context.Context) error {
			_, err := c.client.AppsV1().DaemonSets(in).Create(ctx, &appsv1.DaemonSet{ObjectMeta: meta("agent"),
				Spec: appsv1.DaemonSetSpec{Selector: selector("agent"), Template: workTemplate("agent", "agent:1")}}, o)
			return err
		},
		"job": func(ctx context.Context) error {
			_, err := c.client.BatchV1().Jobs(in).Create(ctx, &batchv1.Job{ObjectMeta: meta("batch"), Spec: job}, o)
			return err
		},
		"cron job": func(ctx context.Context) error {
			_, err := c.client.BatchV1().CronJobs(in).Create(ctx, &batchv1.CronJob{ObjectMeta: meta("minutely"),
				Spec: batchv1.CronJobSpec{Schedule: "* * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: job}}}, o)
			return err
		},
	} {
		if err := create(t.Context()); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

func (c *churn) patch(t *testing.T, in, patch string) {
	t.Helper()
	if _, err := c.client.AppsV1().Deployments(in).Patch(t.Context(), "web", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

func (c *churn) scale(t *testing.T, in string, to int) {
	t.Helper()
	c.patch(t, in, fmt.Sprintf(`{"spec":{"replicas":%d}}`, to))
}

func (c *churn) roll(t *testing.T, in string) {
	t.Helper()
	c.patch(t, in, `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"web:2"}]}}}}`)
	_, err := c.client.AppsV1().StatefulSets(in).Patch(t.Context(), "db", types.StrategicMergePatchType,
		[]byte(`{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"db:2"}]}}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// ready fails until the workloads of a namespace are as wanted, and the Job is over.
func (c *churn) ready(ctx context.Context, in string, replicas int32) error {
	d, err := c.client.AppsV1().Deployments(in).Get(ctx, "web", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if s := d.Status; s.ObservedGeneration != d.Generation || s.UpdatedReplicas != replicas || s.ReadyReplicas != replicas || s.Replicas != replicas {
		return fmt.Errorf("the Deployment is at %+v, want %d replicas", s, replicas)
	}
	s, err := c.client.AppsV1().StatefulSets(in).Get(ctx, "db", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if s.Status.ObservedGeneration != s.Generation || s.Status.ReadyReplicas != 2 || s.Status.UpdatedReplicas != 2 && s.Generation > 1 {
		return fmt.Errorf("the StatefulSet is at %+v", s.Status)
	}
	job, err := c.client.BatchV1().Jobs(in).Get(ctx, "batch", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // it is over, and was cleaned up
	}
	if err == nil && job.Status.CompletionTime == nil {
		err = fmt.Errorf("the Job is at %+v", job.Status)
	}
	return err
}
