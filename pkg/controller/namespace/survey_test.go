package namespace

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

func TestTally(t *testing.T) {
	now := metav1.NewTime(noon)
	var got tally
	got.add(&metav1.ObjectMeta{})
	got.add(&metav1.ObjectMeta{DeletionTimestamp: &now, Finalizers: []string{"a"}})
	got.add(&metav1.ObjectMeta{Finalizers: []string{"a", "b"}})
	want := tally{count: 3, open: 2, finalizers: map[string]int{"a": 2, "b": 1}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(tally{})); diff != "" {
		t.Error(diff)
	}
}

func TestHowAKindIsRead(t *testing.T) {
	for name, tc := range map[string]struct {
		namespaces, pages int
		remaining         *int64
		limit             int64
		wholesale, readOn bool
	}{
		"for one namespace, in that namespace":                    {1, 1, new(int64(1)), 60, false, false},
		"for a few, in the cluster if it has few such objects":    {3, 1, new(int64(1)), 180, true, false},
		"for many, one more page is cheap":                        {8, 1, new(int64(500)), 480, true, true},
		"and one more than that too much":                         {15, 1, new(int64(501)), 500, true, false},
		"for 500, some 60 pages are":                              {500, 1, new(int64(31_000)), 500, true, true},
		"100,000 objects are more than 500 lists, mostly empty":   {500, 1, new(int64(100_000)), 500, true, false},
		"a server that does not say how many, at first":           {500, 1, nil, 500, true, true},
		"a server that does not say how many, after 62 pages yet": {500, 62, nil, 500, true, true},
		"a server that does not say how many, after 63":           {500, 63, nil, 500, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			if limit, ok := wholesale(tc.namespaces); ok != tc.wholesale || limit != tc.limit {
				t.Errorf("wholesale: %v, up to %d", ok, limit)
			}
			if got := readOn(tc.namespaces, tc.pages, tc.remaining); got != tc.readOn {
				t.Errorf("read on: %v", got)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	things := schema.GroupResource{Group: "example.com", Resource: "things"}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"no answer":                    {errors.New("connection refused"), true},
		"an aggregated API is down":    {apierrors.NewServiceUnavailable("error trying to reach service"), true},
		"it takes too long":            {apierrors.NewTimeoutError("too long", 1), true},
		"it has too much to do":        {apierrors.NewTooManyRequests("initializing", 1), true},
		"a conversion fails":           {apierrors.NewInternalError(errors.New("conversion webhook failed")), false},
		"a role is not enough":         {apierrors.NewForbidden(things, "", errors.New("no")), false},
		"a list has expired meanwhile": {apierrors.NewResourceExpired("too old"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unreachable(tc.err); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestNaming(t *testing.T) {
	for name, tc := range map[string]struct {
		r         schema.GroupVersionResource
		err, want string
	}{
		"an error that names the group":     {widgets.gvr, "conversion webhook for example.com/v1, Kind=Widget failed", "conversion webhook for example.com/v1, Kind=Widget failed"},
		"one that names nothing":            {widgets.gvr, "unable to handle the request", "widgets.example.com: unable to handle the request"},
		"one of the core that does":         {configMaps.gvr, "configmaps is forbidden", "configmaps is forbidden"},
		"one of the core that does not":     {configMaps.gvr, "etcd is down", "configmaps: etcd is down"},
		"one that names another of a group": {schema.GroupVersionResource{Group: "x.io", Resource: "a"}, "x.io/v1 failed", "x.io/v1 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := naming(tc.r, errors.New(tc.err)).Error(); got != tc.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestPause(t *testing.T) {
	for name, tc := range map[string]struct {
		age, want time.Duration
	}{
		"what has just failed is asked again at once":    {0, 100 * time.Millisecond},
		"then after a quarter of the time it has failed": {8 * time.Second, 2 * time.Second},
		"up to every five seconds":                       {time.Minute, 5 * time.Second},
		"for five minutes":                               {5 * time.Minute, 5 * time.Second},
		"what is broken for long is asked less often":    {5*time.Minute + time.Second, 15 * time.Second},
		"but never so seldom that its return is missed":  {24 * time.Hour, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := pause(noon, noon.Add(tc.age)); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestAKindIsSilentWhenNobodyAnswersForIt(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"it is answered":                      {nil, false},
		"there is no answer":                  {errors.New("connection lost"), true},
		"it is not asked, because of a stop":  {context.Canceled, false},
		"it is not asked, because of a pause": {&consistency.Withheld{Why: "maintenance"}, false},
		"it is refused":                       {apierrors.NewForbidden(schema.GroupResource{}, "a", nil), false},
	} {
		if got := (came{err: tc.err}).silent(); got != tc.want {
			t.Errorf("%s: silent is %t", name, got)
		}
	}
}
