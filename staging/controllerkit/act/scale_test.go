package act

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// scales is an API server that has one scale.
type scales struct {
	is       autoscalingv1.Scale
	answer   error         // to an update
	getFails error         // a read fails with it
	before   func(*scales) // something that happens before an update
	did      []string
}

func (s *scales) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		SubResourceGet: func(_ context.Context, _ client.Client, name string, of, into client.Object, _ ...client.SubResourceGetOption) error {
			s.note("get", name, of)
			if s.getFails != nil {
				return s.getFails
			}
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s.is)
			into.(*unstructured.Unstructured).Object = content
			return err
		},
		SubResourceUpdate: func(_ context.Context, _ client.Client, name string, of client.Object, opts ...client.SubResourceUpdateOption) error {
			s.note("update", name, of)
			if s.before != nil {
				s.before(s)
			}
			options := (&client.SubResourceUpdateOptions{}).ApplyOptions(opts)
			body := options.SubResourceBody.(*unstructured.Unstructured)
			switch {
			case s.answer != nil:
				return s.answer
			case body.GetAPIVersion() != "autoscaling/v1" || body.GetKind() != "Scale":
				return fmt.Errorf("not a scale: %v", body)
			case body.GetResourceVersion() != s.is.ResourceVersion:
				return conflict
			}
			s.is.ResourceVersion += "1"
			return runtime.DefaultUnstructuredConverter.FromUnstructured(body.Object, &s.is)
		},
	}
}

func (s *scales) note(verb, name string, of client.Object) {
	s.did = append(s.did, fmt.Sprintf("%s %s %s/%s %s", verb, of.GetObjectKind().GroupVersionKind().Kind, of.GetNamespace(), of.GetName(), name))
}

func TestANumberIsSetUnlessSomebodyElseHasSetAnother(t *testing.T) {
	const update, get = "update Deployment ns/web scale", "get Deployment ns/web scale"
	once := func(what func(*scales)) func(*scales) {
		return func(s *scales) { what(s); s.is.ResourceVersion += "x"; s.before = nil }
	}
	for name, tc := range map[string]struct {
		server   scales
		became   Outcome
		replicas int32
		did      []string
	}{
		"it is set":             {scales{}, Done, 4, []string{update}},
		"it is refused":         {scales{answer: forbidden}, Refused, 2, []string{update}},
		"it is gone":            {scales{answer: notFound}, Refused, 2, []string{update}},
		"the answer is lost":    {scales{answer: lost}, Uncertain, 2, []string{update}},
		"another field changed": {scales{before: once(func(*scales) {})}, Done, 4, []string{update, get, update}},
		"somebody scaled it":    {scales{before: once(func(s *scales) { s.is.Spec.Replicas = 3 })}, Refused, 3, []string{update, get}},
		"another of its name":   {scales{before: once(func(s *scales) { s.is.UID = "new" })}, Refused, 2, []string{update, get}},
		"a conflict, and then no answer": {scales{before: once(func(*scales) {}), getFails: lost}, Refused, 2,
			[]string{update, get}},
		"it changes all the time": {scales{before: func(s *scales) { s.is.ResourceVersion += "x" }}, Refused, 2,
			[]string{update, get, update, get, update, get, update, get, update, get}},
	} {
		t.Run(name, func(t *testing.T) {
			server := &tc.server
			server.is = autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "uid", ResourceVersion: "1"},
				Spec: autoscalingv1.ScaleSpec{Replicas: 2}}
			cached := server.is.DeepCopy()
			r := newRig(t, func(o *Options[types.NamespacedName]) {
				o.Client = interceptor.NewClient(o.Client.(client.WithWatch), server.funcs())
			})
			step := Scale{Kind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Of: cached, Replicas: 4}
			result := r.Take(t.Context(), web, step)
			if result.Became != tc.became || (result.Err == nil) != (tc.became == Done) || server.is.Spec.Replicas != tc.replicas {
				t.Errorf("became %s with %d replicas: %v", result.Became, server.is.Spec.Replicas, result.Err)
			}
			if d := cmp.Diff(tc.did, server.did); d != "" {
				t.Error(d)
			}
			if cached.Spec.Replicas != 2 || describe(step) != "scale Deployment ns/web" {
				t.Errorf("%s changed what was read: %v", describe(step), cached)
			}
		})
	}
}
