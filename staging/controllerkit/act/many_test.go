package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// asked returns a rig that notes lists and deletions of a kind, and answers lists.
func asked(t *testing.T, answer func(page int, o client.ListOptions, into client.ObjectList) error) (*rig, *[]string) {
	var requests []string
	r := newRig(t, func(o *Options[types.NamespacedName]) {
		o.Client = interceptor.NewClient(o.Client.(client.WithWatch), interceptor.Funcs{
			List: func(ctx context.Context, _ client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
				var options client.ListOptions
				options.ApplyOptions(opts)
				_, limited := ctx.Deadline()
				requests = append(requests, fmt.Sprintf("%T in %s limit %d after %q, limited %v", list, options.Namespace, options.Limit, options.Continue, limited))
				return answer(len(requests), options, list)
			},
			DeleteAllOf: func(_ context.Context, _ client.WithWatch, of client.Object, opts ...client.DeleteAllOfOption) error {
				var options client.DeleteAllOfOptions
				options.ApplyOptions(opts)
				requests = append(requests, fmt.Sprintf("delete %T in %s, %s", of, options.ListOptions.Namespace, *options.DeleteOptions.PropagationPolicy))
				return answer(len(requests), options.ListOptions, nil)
			},
		})
	})
	return r, &requests
}

// names keeps the names of what is on the pages.
func names(kept any, page client.ObjectList) any {
	all, _ := kept.([]string)
	_ = meta.EachListItem(page, func(o runtime.Object) error {
		all = append(all, o.(client.Object).GetName())
		return nil
	})
	return all
}

func TestAListKeepsWhatThePlanNeedsOfItsPages(t *testing.T) {
	expired := apierrors.NewResourceExpired("too old")
	for name, tc := range map[string]struct {
		limit    int64
		answers  []any // a name, and whether more pages follow, or an error
		kept     string
		requests int
		fails    bool
	}{
		"one page":                             {0, []any{"a"}, "[a]", 1, false},
		"page by page":                         {1, []any{"a+", "b"}, "[a b]", 2, false},
		"one that expires is made as a whole":  {1, []any{"a+", expired, "c"}, "[c]", 3, false},
		"a whole one that expires has failed":  {0, []any{expired}, "<nil>", 1, true},
		"what was read before a failure is no": {1, []any{"a+", forbidden}, "<nil>", 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			r, requests := asked(t, func(page int, _ client.ListOptions, into client.ObjectList) error {
				if err, is := tc.answers[page-1].(error); is {
					return err
				}
				name, more := strings.CutSuffix(tc.answers[page-1].(string), "+")
				list := into.(*corev1.PodList)
				list.Items = []corev1.Pod{*pod(name)}
				if more {
					list.Continue = "next"
				}
				return nil
			})
			got := r.Take(t.Context(), web, List{Of: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns"}}, Limit: tc.limit, Within: time.Minute, Keep: names})
			if fmt.Sprint(got.Kept) != tc.kept || len(*requests) != tc.requests || (got.Err != nil) != tc.fails || !got.At.Equal(noon) {
				t.Errorf("kept %v, %v, at %s, requests %v", got.Kept, got.Err, got.At, *requests)
			}
			if want := fmt.Sprintf("*v1.PodList in ns limit %d after \"\", limited true", tc.limit); (*requests)[0] != want {
				t.Errorf("asked for %s", (*requests)[0])
			}
		})
	}
}

func TestAllOfAKindIsDeletedInANamespaceOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace string
		answer    error
		became    Outcome
		requests  string
	}{
		"in a namespace":               {"ns", nil, Done, "[delete *v1.Pod in ns, Background]"},
		"what is refused is refused":   {"ns", forbidden, Refused, "[delete *v1.Pod in ns, Background]"},
		"an answer that is lost":       {"ns", errors.New("reset"), Uncertain, "[delete *v1.Pod in ns, Background]"},
		"never in the cluster at once": {"", nil, Refused, "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			r, requests := asked(t, func(int, client.ListOptions, client.ObjectList) error { return tc.answer })
			got := r.Take(t.Context(), web, DeleteAll{Of: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace}}, Propagation: metav1.DeletePropagationBackground})
			if got.Became != tc.became || fmt.Sprint(*requests) != tc.requests {
				t.Errorf("became %s, %v, requests %v", got.Became, got.Err, *requests)
			}
		})
	}
}

func TestAPartPlansOnFromItsResults(t *testing.T) {
	r := newRig(t, nil)
	r.answers["create b"] = forbidden
	var results Results
	r.Do(t.Context(), web, observing(&results, InTurn(Part{Of: pod("whole"), Then: func(so Results) []Stage {
		if _, err := so.Failed(); err != nil || len(so) > 4 {
			return nil
		}
		return Stages(create(string(rune('a' + len(so)))))
	}})))
	if got := outcomes(results); got != "done, refused" {
		t.Errorf("became %s", got)
	}
}

func TestAPlanSaysWhichFailuresAreRetried(t *testing.T) {
	r := newRig(t, nil)
	r.answers["create a"] = forbidden
	var found []string
	result := r.Do(t.Context(), web, Plan{Stages: Stages(create("a")), RequeueAfter: time.Second, Retry: func(results Results) error {
		found = append(found, outcomes(results))
		return nil
	}})
	if result.Err() != nil || result.After() != time.Second || !slices.Equal(found, []string{"refused"}) {
		t.Errorf("ended with %v after %v, asked about %v", result.Err(), result.After(), found)
	}
}

func TestADeletionAfterWhichWhatIsLeftIsListed(t *testing.T) {
	for name, tc := range map[string]struct {
		answer error
		became Outcome
		fails  bool
	}{
		"one that is gone is gone": {apierrors.NewNotFound(pods, "a"), WasGone, false},
		"a conflict is a failure":  {apierrors.NewConflict(pods, "a", errors.New("webhook")), Refused, true},
		"it is deleted":            {nil, Done, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil, pod("a"))
			r.writes.LookLive(nil) // nobody looks live
			r.answers["delete"] = tc.answer
			if got := r.Take(t.Context(), web, Delete{Of: pod("a"), Listed: true}); got.Became != tc.became || (got.Err != nil) != tc.fails {
				t.Errorf("became %s: %v", got.Became, got.Err)
			}
		})
	}
}

func TestAnObjectInAResource(t *testing.T) {
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	o := InResource(widgets, "ns", "w")
	mapper := Resources(meta.NewDefaultRESTMapper(nil))
	for _, kind := range []schema.GroupVersionKind{o.GroupVersionKind(), blank(o).GetObjectKind().GroupVersionKind()} {
		m, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil || m.Resource != widgets || m.Scope != meta.RESTScopeNamespace {
			t.Errorf("maps to %v, %v", m, err)
		}
	}
	if got := ListOf(widgets).Kind; got != o.Kind+"List" {
		t.Errorf("a list of it is a %s", got)
	}
	if ResourceOf(o) != widgets || !ResourceOf(pod("a")).Empty() || describe(Delete{Of: o}) != "delete widgets ns/w" {
		t.Errorf("is of %v, described as %q", ResourceOf(o), describe(Delete{Of: o}))
	}
	if _, err := mapper.RESTMapping(schema.GroupKind{Kind: "Pod"}, "v1"); !meta.IsNoMatchError(err) {
		t.Errorf("a kind that is not known: %v", err)
	}
}
