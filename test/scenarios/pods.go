package scenarios

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// outcomeOf reads the arguments of fail.
func outcomeOf(fields []string) (harness.Outcome, error) {
	how := harness.Outcome{Phase: corev1.PodFailed, ExitCode: 1}
	if len(fields) == 0 {
		return how, fmt.Errorf("fail takes POD, RES/NAME or RES/NAME#N, and optionally exitcode=N, container=NAME and reason=WORD")
	}
	if _, _, err := splitIndex(fields[0]); err != nil {
		return how, err
	}
	for _, field := range fields[1:] {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "exitcode":
			code, err := strconv.ParseInt(value, 10, 32)
			if err != nil {
				return how, fmt.Errorf("exitcode=%s is no number", value)
			}
			how.ExitCode = int32(code)
		case "reason":
			how.Reason = value
		case "container":
			how.Container = value
		default:
			return how, fmt.Errorf("fail does not take %q", field)
		}
	}
	return how, nil
}

func wantOutcome(s Step) error {
	_, err := outcomeOf(words(s.Rest))
	return err
}

func (r *run) fail(ctx context.Context, step Step) error {
	fields := words(step.Rest)
	how, err := outcomeOf(fields)
	if err != nil {
		return err
	}
	return r.finish(ctx, step, fields[0], how)
}

func (r *run) succeed(ctx context.Context, step Step) error {
	return r.finish(ctx, step, step.Rest, harness.Outcome{Phase: corev1.PodSucceeded})
}

func (r *run) finish(ctx context.Context, step Step, target string, how harness.Outcome) error {
	return r.eachPod(ctx, step, target, func(pod *corev1.Pod) error {
		return r.suite.kubelet.FinishPod(ctx, pod.Namespace, pod.Name, how)
	})
}

func (r *run) ready(ctx context.Context, step Step) error { return r.setReady(ctx, step, true) }

func (r *run) unready(ctx context.Context, step Step) error { return r.setReady(ctx, step, false) }

func (r *run) setReady(ctx context.Context, step Step, ready bool) error {
	return r.eachPod(ctx, step, step.Rest, func(pod *corev1.Pod) error {
		return r.suite.kubelet.SetPodReady(ctx, pod.Namespace, pod.Name, ready)
	})
}

// evict asks for the eviction of pods until a disruption budget lets them go.
func (r *run) evict(ctx context.Context, step Step) error {
	if !strings.Contains(step.Rest, "/") {
		return r.evictPod(ctx, step, step.Rest)
	}
	return r.eachPod(ctx, step, step.Rest, func(pod *corev1.Pod) error { return r.evictPod(ctx, step, pod.Name) })
}

func (r *run) evictPod(ctx context.Context, step Step, name string) error {
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: name}}
	return r.until(ctx, step.Within, func() (bool, string, error) {
		err := r.suite.typed.PolicyV1().Evictions(r.namespace).Evict(ctx, eviction)
		if apierrors.IsTooManyRequests(err) {
			return false, err.Error(), nil
		}
		return err == nil, "", err
	})
}

// eachPod changes the live pods of a target, or the one of them that it numbers,
// once there are any and, unless the kubelet is to hold pods back, once all of
// them run.
func (r *run) eachPod(ctx context.Context, step Step, target string, change func(*corev1.Pod) error) error {
	target, index, err := splitIndex(target)
	if err != nil {
		return err
	}
	var pods []corev1.Pod
	if err := r.until(ctx, step.Within, func() (bool, string, error) {
		var err error
		pods, err = r.podsOf(ctx, target)
		for i := range pods {
			if pods[i].Status.Phase != corev1.PodRunning && allWillRun(r.suite.care) {
				return false, fmt.Sprintf("pod %s is %s", pods[i].Name, pods[i].Status.Phase), err
			}
		}
		return len(pods) > 0, "no live pod", err
	}); err != nil {
		return err
	}
	pods = pick(pods, index)
	for i := range pods {
		if err := change(&pods[i]); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// podsOf lists the pods that are neither finished nor being deleted: the named
// one, or those that belong to an object, directly or through a ReplicaSet or Job.
func (r *run) podsOf(ctx context.Context, target string) ([]corev1.Pod, error) {
	if !strings.ContainsAny(target, "/,") {
		target = "pods/" + target
	}
	ref, err := r.resolve(ctx, target)
	if err != nil {
		return nil, err
	}
	objects, err := r.find(ctx, target)
	if err != nil || len(objects) == 0 {
		return nil, err
	}
	family := sets.New[types.UID]()
	for i := range objects {
		family.Insert(objects[i].GetUID())
	}
	if ref.kind != "Pod" {
		if err := r.descend(ctx, ref.namespace, family); err != nil {
			return nil, err
		}
	}
	list, err := r.suite.typed.CoreV1().Pods(ref.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	var pods []corev1.Pod
	for _, pod := range list.Items {
		done := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
		if !done && pod.DeletionTimestamp == nil && (family.Has(pod.UID) || owned(&pod, family)) {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}

// descend adds the ReplicaSets and Jobs whose controller is in the family.
func (r *run) descend(ctx context.Context, namespace string, family sets.Set[types.UID]) error {
	sets, err := r.suite.typed.AppsV1().ReplicaSets(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list replica sets: %w", err)
	}
	for i := range sets.Items {
		if owned(&sets.Items[i], family) {
			family.Insert(sets.Items[i].UID)
		}
	}
	jobs, err := r.suite.typed.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list jobs: %w", err)
	}
	for i := range jobs.Items {
		if owned(&jobs.Items[i], family) {
			family.Insert(jobs.Items[i].UID)
		}
	}
	return nil
}

func owned(object metav1.Object, family sets.Set[types.UID]) bool {
	controller := metav1.GetControllerOf(object)
	return controller != nil && family.Has(controller.UID)
}
