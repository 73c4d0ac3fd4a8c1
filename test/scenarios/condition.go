package scenarios

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// holds looks once whether a condition is true. seen is for the reader of a
// failure. With any set, one of several objects is enough; otherwise all must
// fulfil the condition, and there must be one.
func (c condition) holds(ctx context.Context, r *run, any bool) (ok bool, seen string, err error) {
	switch c.kind {
	case "expect-count":
		return c.count(ctx, r)
	case "expect-gone":
		return c.gone(ctx, r)
	case "expect-event":
		return c.event(ctx, r)
	case "expect-request":
		return c.request(ctx, r)
	case "expect-refused":
		return c.refused(ctx, r)
	case "expect-metric":
		return c.metric(r)
	case "expect-why":
		return c.why(r)
	}
	objects, err := r.find(ctx, c.target)
	if err != nil {
		return false, "", err
	}
	if len(objects) == 0 {
		return false, "no such object", nil
	}
	matched := 0
	var all []string
	told := map[string]bool{}
	for _, object := range objects {
		values, err := evaluate(c.path, object.Object)
		if err != nil {
			return false, "", err
		}
		if compare(c, values) && (len(values) > 0 || c.unset() || present(parentOf(c.path), object.Object)) {
			matched++
		}
		told[show(values)] = true
		all = append(all, fmt.Sprintf("%s: %s", object.GetName(), show(values)))
	}
	if c.op == "distinct" && len(told) < len(objects) {
		return false, strings.Join(all, "; "), nil
	}
	return matched == len(objects) || any && matched > 0, strings.Join(all, "; "), nil
}

func (c condition) gone(ctx context.Context, r *run) (bool, string, error) {
	objects, err := r.find(ctx, c.target)
	if err != nil || len(objects) == 0 {
		return err == nil, "gone", err
	}
	first := objects[0]
	return false, fmt.Sprintf("%s is still there (deletionTimestamp %v, finalizers %v)",
		first.GetName(), first.GetDeletionTimestamp(), first.GetFinalizers()), nil
}

func (c condition) count(ctx context.Context, r *run) (bool, string, error) {
	objects, err := r.find(ctx, c.target)
	if err != nil {
		return false, "", err
	}
	var names []string
	for _, object := range objects {
		name := object.GetName()
		if object.GetDeletionTimestamp() != nil {
			name += "(terminating)"
		}
		names = append(names, name)
	}
	return order(c.op, strconv.Itoa(len(objects)), c.value), fmt.Sprintf("%d %v", len(objects), names), nil
}

func (c condition) event(ctx context.Context, r *run) (bool, string, error) {
	ref, err := r.resolve(ctx, c.target)
	if err != nil {
		return false, "", err
	}
	namespace := ref.namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	list, err := r.suite.typed.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, "", fmt.Errorf("list events: %w", err)
	}
	var seen []string
	for i := range list.Items {
		e := &list.Items[i]
		if e.InvolvedObject.Kind != ref.kind || !ref.matches(e.InvolvedObject.Name) {
			continue
		}
		if e.Type == c.eventType && e.Reason == c.eventReason && c.regex.MatchString(e.Message) {
			return true, "", nil
		}
		seen = append(seen, eventLine(e))
	}
	return false, "events of the object: " + strings.Join(seen, "; "), nil
}

func eventLine(e *corev1.Event) string {
	return fmt.Sprintf("%s %s %s/%s: %s (x%d)", e.Type, e.Reason, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Message, max(e.Count, 1))
}

// podLines describes the pods of a namespace for a failure message.
func (r *run) podLines(ctx context.Context) string {
	list, err := r.suite.typed.CoreV1().Pods(r.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	all := []string{fmt.Sprintf("  %d", len(list.Items))}
	for i := range list.Items[:min(len(list.Items), 20)] {
		pod := &list.Items[i]
		line := fmt.Sprintf("  %s %s on %q", pod.Name, pod.Status.Phase, pod.Spec.NodeName)
		if pod.DeletionTimestamp != nil {
			line += fmt.Sprintf(", terminating since %s, finalizers %v", pod.DeletionTimestamp.Format("15:04:05"), pod.Finalizers)
		}
		all = append(all, line)
	}
	return strings.Join(all, "\n")
}

// lines describes the events of a namespace for a failure message.
func (r *run) lines(ctx context.Context) string {
	list, err := r.suite.typed.CoreV1().Events(r.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	var all []string
	for i := range list.Items {
		all = append(all, "  "+eventLine(&list.Items[i]))
	}
	if len(all) == 0 {
		return "  none"
	}
	return strings.Join(all, "\n")
}

// find lists what a RES/NAME, RES/PATTERN* or RES,selector stands for.
func (r *run) find(ctx context.Context, target string) ([]unstructured.Unstructured, error) {
	ref, err := r.resolve(ctx, target)
	if err != nil {
		return nil, err
	}
	if ref.exact() {
		object, err := r.client(ref).Get(ctx, ref.name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("get %s: %w", target, err)
		}
		return []unstructured.Unstructured{withCertificate(*object)}, nil
	}
	list, err := r.client(ref).List(ctx, metav1.ListOptions{LabelSelector: ref.selector})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", target, err)
	}
	var found []unstructured.Unstructured
	for _, object := range list.Items {
		// Of what is cluster-wide a story sees its own only.
		if ref.name != "" && !ref.matches(object.GetName()) || ref.foreign(r, object.GetName()) {
			continue
		}
		found = append(found, withCertificate(object))
	}
	return found, nil
}
