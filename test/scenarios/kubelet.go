package scenarios

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

var kubeletWords = []string{"on", "off", "pending", "slow-start", "slow-stop", "volumes", "slow-unmount", "reject"}

func wantKubelet(s Step) error {
	_, err := caredFor(harness.Care{}, s.Rest)
	return err
}

// caredFor is how pods are looked after once a kubelet line is added.
func caredFor(care harness.Care, line string) (harness.Care, error) {
	word, rest := cut(line)
	if !slices.Contains(kubeletWords, word) || (word == "reject") != (rest != "") {
		return care, fmt.Errorf("kubelet takes one of %s REASON, not %q", strings.Join(kubeletWords, ", "), line)
	}
	switch word {
	case "on":
		return harness.Care{On: true, Volumes: care.Volumes}, nil
	case "off":
		care.On = false
	case "pending":
		care.Unbound = true
	case "slow-start":
		care.SlowStart = true
	case "slow-stop":
		care.SlowStop = true
	case "volumes":
		care.Volumes = true
	case "slow-unmount":
		care.SlowUnmount = true
	case "reject":
		care.Reject = rest
	}
	return care, nil
}

func (r *run) kubelet(ctx context.Context, step Step) error {
	var err error
	if r.suite.care, err = caredFor(r.suite.care, step.Rest); err != nil {
		return err
	}
	if r.suite.care.Volumes {
		if err := r.suite.kubelet.MountVolumes(ctx); err != nil {
			return err
		}
	}
	for _, namespace := range r.namespaces {
		r.suite.kubelet.Tend(namespace, r.suite.care)
	}
	return nil
}

// allWillRun reports whether all pods will be running before long.
func allWillRun(care harness.Care) bool {
	return care.On && !care.Unbound && !care.SlowStart
}

// nodeWords are the states of a node, and how many words may follow.
var nodeWords = map[string][2]int{
	"ready": {0, 1}, "notready": {0, 1}, "back": {0, 1}, "silent": {0, 0}, "delete": {0, 0},
	"taint": {1, 1}, "untaint": {1, 1}, "cordon": {0, 0}, "uncordon": {0, 0},
}

func wantNode(s Step) error {
	fields := words(s.Rest)
	if len(fields) < 2 {
		return fmt.Errorf("node takes NAME and a state, not %q", s.Rest)
	}
	bounds, known := nodeWords[fields[1]]
	rest := fields[2:]
	switch {
	case !known:
		return fmt.Errorf("node takes ready|silent|back|notready|delete|taint|untaint|cordon|uncordon, not %q", fields[1])
	case len(rest) < bounds[0] || len(rest) > bounds[1]:
		return fmt.Errorf("node NAME %s takes %d to %d further words, not %q", fields[1], bounds[0], bounds[1], rest)
	case fields[1] == "taint" || fields[1] == "untaint":
		_, err := parseTaint(rest[0], fields[1] == "taint")
		return err
	case len(rest) == 1 && !strings.HasPrefix(rest[0], "zone="):
		return fmt.Errorf("node NAME %s takes zone=Z, not %q", fields[1], rest[0])
	}
	return nil
}

// parseTaint reads KEY[=VALUE]:EFFECT; where a taint is only named, KEY will do.
func parseTaint(text string, whole bool) (corev1.Taint, error) {
	name, effect, found := strings.Cut(text, ":")
	key, value, _ := strings.Cut(name, "=")
	taint := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
	if key == "" || (found || whole) && !slices.Contains(effects, taint.Effect) {
		return taint, fmt.Errorf("%q is no taint such as key=value:NoSchedule", text)
	}
	return taint, nil
}

func (r *run) node(ctx context.Context, step Step) error {
	fields := words(step.Rest)
	name, kubelet := fields[0], r.suite.kubelet
	argument := ""
	if len(fields) == 3 {
		argument = fields[2]
	}
	zone := strings.TrimPrefix(argument, "zone=")
	switch fields[1] {
	case "silent":
		return kubelet.NodeSilent(name)
	case "notready":
		return kubelet.NodeNotReady(ctx, name, zone)
	case "delete":
		return kubelet.NodeDelete(ctx, name)
	case "cordon", "uncordon":
		return kubelet.NodeCordon(ctx, name, fields[1] == "cordon")
	case "taint", "untaint":
		taint, err := parseTaint(argument, fields[1] == "taint")
		if err != nil {
			return err
		}
		if fields[1] == "untaint" {
			return kubelet.NodeUntaint(ctx, name, taint.Key, taint.Effect)
		}
		return kubelet.NodeTaint(ctx, name, taint)
	}
	return kubelet.NodeReady(ctx, name, zone)
}

// splitIndex reads "RES/NAME#N"; without "#N" the index is -1, which means all.
func splitIndex(target string) (name string, index int, err error) {
	name, digits, found := strings.Cut(target, "#")
	if !found {
		return target, -1, nil
	}
	if index, err = strconv.Atoi(digits); err != nil || index < 0 || name == "" {
		return name, -1, fmt.Errorf("%q is no pod such as deployments/web#0", target)
	}
	return name, index, nil
}

// pick leaves the pod with that index; one beyond the last begins at the first again.
func pick(pods []corev1.Pod, index int) []corev1.Pod {
	if index < 0 || len(pods) == 0 {
		return pods
	}
	slices.SortFunc(pods, func(a, b corev1.Pod) int {
		return cmp.Or(
			cmp.Compare(ordinal(&a), ordinal(&b)),
			cmp.Compare(daemonNode(&a), daemonNode(&b)),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
			cmp.Compare(a.Spec.NodeName, b.Spec.NodeName),
			cmp.Compare(a.Name, b.Name))
	})
	index %= len(pods)
	return pods[index : index+1]
}

// ordinal is the number of the pod in its Job or StatefulSet, or -1.
func ordinal(pod *corev1.Pod) int {
	for _, text := range []string{pod.Annotations[batchv1.JobCompletionIndexAnnotation], pod.Labels[appsv1.PodIndexLabel]} {
		if n, err := strconv.Atoi(text); err == nil {
			return n
		}
	}
	return -1
}

// daemonNode is the node that a DaemonSet's pod is for.
func daemonNode(pod *corev1.Pod) string {
	owner, affinity := metav1.GetControllerOf(pod), pod.Spec.Affinity
	if owner == nil || owner.Kind != "DaemonSet" || affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return pod.Spec.NodeName
}

func wantPod(s Step) error {
	if len(words(s.Rest)) != 1 {
		return fmt.Errorf("%s takes POD, RES/NAME or RES/NAME#N, not %q", s.Command, s.Rest)
	}
	_, _, err := splitIndex(s.Rest)
	return err
}

func wantKill(s Step) error {
	target, how := cut(s.Rest)
	if !slices.Contains(waysToDelete, how) || target == "" {
		return fmt.Errorf("kill takes POD and optionally foreground, background, orphan or now, not %q", s.Rest)
	}
	_, _, err := splitIndex(target)
	return err
}

// kill deletes pods as a user would.
func (r *run) kill(ctx context.Context, step Step) error {
	target, how := cut(step.Rest)
	return r.deletePods(ctx, step, target, howToDelete(how))
}

// lose deletes pods at once, as whoever gives up their node would.
func (r *run) lose(ctx context.Context, step Step) error {
	return r.deletePods(ctx, step, step.Rest, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
}

func (r *run) deletePods(ctx context.Context, step Step, target string, options metav1.DeleteOptions) error {
	return r.eachPod(ctx, step, target, func(pod *corev1.Pod) error {
		options.Preconditions = &metav1.Preconditions{UID: &pod.UID}
		return r.suite.typed.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options)
	})
}

func wantLabelPod(s Step) error {
	target, pairs := cut(s.Rest)
	if _, _, err := splitIndex(target); err != nil {
		return err
	}
	return wantKeys(s.Command, pairs)
}

// labelPod labels the pods of an object.
func (r *run) labelPod(ctx context.Context, step Step) error {
	target, pairs := cut(step.Rest)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": keysAndValues(pairs)}})
	if err != nil {
		return fmt.Errorf("encode labels: %w", err)
	}
	return r.eachPod(ctx, step, target, func(pod *corev1.Pod) error {
		_, err := r.suite.typed.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
		return err
	})
}
