package slicewriter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes/fake"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var web = types.NamespacedName{Namespace: "shop", Name: "web"}

// rig is a writer to a fake API server, which notes with which context it was asked.
type rig struct {
	*Writer
	*fixture.Rig
	client.Client
	limits act.Limits
	asked  context.Context
}

func newRig(cached ...*discoveryv1.EndpointSlice) *rig {
	r := &rig{Rig: fixture.New(fake.NewClientset(), metav1.Now().Time)}
	r.Client = fixture.Client(r.Rig.Client)
	store := toolscache.NewStore(toolscache.MetaNamespaceKeyFunc)
	for _, slice := range cached {
		_ = store.Add(slice) // it has a name
	}
	writes := consistency.NewTracker[types.NamespacedName](nil)
	r.Writer = New(act.New(act.Options[types.NamespacedName]{Client: r, Events: r.Events, Writes: writes, Clock: r.Clock, Limits: &r.limits}), store)
	return r
}

func (r *rig) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	r.asked = ctx
	return r.Client.Create(ctx, o, opts...)
}

func slice() *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4, ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web-1", UID: "e1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}}}
}

func TestWritesEndWithTheTurnOfTheirService(t *testing.T) {
	type mark struct{}
	for name, of := range map[string]types.NamespacedName{"their own": web, "another": {Namespace: "shop", Name: "api"}} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			err := r.During(context.WithValue(t.Context(), mark{}, true), of, func() error {
				_, err := r.Writer.Client().DiscoveryV1().EndpointSlices("shop").Create(context.TODO(), slice(), metav1.CreateOptions{})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if marked := r.asked.Value(mark{}) != nil; marked != (of == web) {
				t.Errorf("asked with the context of the turn: %t", marked)
			}
		})
	}
}

func TestWhatTheLibraryIsTold(t *testing.T) {
	denied := apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), "web-1", errors.New("denied"))
	ending := denied.ErrStatus.DeepCopy()
	ending.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, tc := range map[string]struct {
		answer error
		cached []*discoveryv1.EndpointSlice
		told   map[string]error
		became string
	}{
		"it is carried out": {nil, []*discoveryv1.EndpointSlice{slice()}, nil,
			"create EndpointSlice: done [web-1]; update EndpointSlice: done [web-1]; delete EndpointSlice: done [web-1]"},
		"one that is not cached is gone": {nil, nil, nil, "create EndpointSlice: done [web-1]; update EndpointSlice: done [web-1]"},
		"it is refused, in the very words": {denied, []*discoveryv1.EndpointSlice{slice()}, map[string]error{"create": denied, "update": denied, "delete": denied},
			"create EndpointSlice: refused: " + denied.Error() + " [web-1]; update EndpointSlice: refused: " + denied.Error() + " [web-1]; delete EndpointSlice: refused: " + denied.Error() + " [web-1]"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(tc.cached...)
			if tc.answer != nil {
				r.Fail("*", "endpointslices", tc.answer)
			}
			at := r.Writer.Client().DiscoveryV1().EndpointSlices("shop")
			_, created := at.Create(t.Context(), slice(), metav1.CreateOptions{})
			_, updated := at.Update(t.Context(), slice(), metav1.UpdateOptions{})
			for verb, err := range map[string]error{"create": created, "update": updated, "delete": at.Delete(t.Context(), "web-1", metav1.DeleteOptions{})} {
				if err != tc.told[verb] {
					t.Errorf("%s: told %v", verb, err)
				}
			}
			var became []string
			for _, d := range r.actor.Decisions(web) {
				if !strings.Contains(d.Why, "0 endpoints (IPv4) with 0 ports") {
					t.Errorf("because %s", d.Why)
				}
				became = append(became, d.Became...)
			}
			if got := strings.Join(became, "; "); got != tc.became {
				t.Errorf("became %s", got)
			}
		})
	}
	t.Run("a namespace that ends is known as such", func(t *testing.T) {
		r := newRig()
		r.Fail("create", "endpointslices", &apierrors.StatusError{ErrStatus: *ending})
		_, err := r.Writer.Client().DiscoveryV1().EndpointSlices("shop").Create(t.Context(), slice(), metav1.CreateOptions{})
		if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			t.Errorf("told %v", err)
		}
	})
}

// TestWhatIsWithheldIsToldAsSuch has errors wrapped as the library does it, which keeps their
// words only.
func TestWhatIsWithheldIsToldAsSuch(t *testing.T) {
	other := errors.New("a node is missing")
	failed := func(err error) error { return fmt.Errorf("failed to write: %v", err) }
	for name, tc := range map[string]struct {
		work     func(remove, create func() error) error
		withheld bool
	}{
		"one":                     {func(remove, _ func() error) error { return failed(remove()) }, true},
		"two":                     {func(remove, create func() error) error { return together(failed(create()), together(failed(remove()))) }, true},
		"one and another failure": {func(remove, _ func() error) error { return together(together(other, failed(remove()))) }, false},
		"none":                    {func(_, _ func() error) error { return other }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(slice())
			r.limits.Pause(func(string, string) string { return "maintenance" })
			at := r.Writer.Client().DiscoveryV1().EndpointSlices("shop")
			remove := func() error { return at.Delete(t.Context(), "web-1", metav1.DeleteOptions{}) }
			create := func() error {
				_, err := at.Create(t.Context(), slice(), metav1.CreateOptions{})
				return err
			}
			err := r.During(t.Context(), web, func() error { return tc.work(remove, create) })
			if w := consistency.WasWithheld(err); err == nil || (w != nil) != tc.withheld || w != nil && w.Why != "maintenance" {
				t.Errorf("told %v", err)
			}
			if err := r.During(t.Context(), web, func() error { return other }); err != other {
				t.Errorf("the next sync ends with %v", err)
			}
			if did := r.Requests(); did != "" {
				t.Errorf("did %s", did)
			}
		})
	}
}

func together(errs ...error) error { return utilerrors.NewAggregate(errs) }

func TestTheLibrarysOwnAreNotChanged(t *testing.T) {
	r := newRig()
	given := slice()
	given.UID = ""
	made, err := r.Writer.Client().DiscoveryV1().EndpointSlices("shop").Create(t.Context(), given, metav1.CreateOptions{})
	if err != nil || made == given {
		t.Errorf("%v, the answer is in what was given: %t", err, made == given)
	}
}

func TestEventsAreToldAsTheyAre(t *testing.T) {
	r := newRig()
	r.Recorder().Event(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}, "Normal", "Enabled", "100% are there")
	if got := []string{r.Told()}; !slices.Equal(got, []string{"Normal Enabled 100% are there"}) {
		t.Errorf("told %v", got)
	}
	var _ record.EventRecorder = r.Recorder()
}
