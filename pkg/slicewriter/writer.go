package slicewriter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// Writer carries out what the library writes for Services. It is safe for concurrent
// use, for different Services.
type Writer struct {
	actor  *act.Actor[types.NamespacedName]
	slices toolscache.Store
	turns  sync.Map // those of the Services in work, by key
}

// turn is the work on one Service.
type turn struct {
	ctx      context.Context
	withheld []error
}

// New returns a writer that finds slices in that cache.
func New(actor *act.Actor[types.NamespacedName], slices toolscache.Store) *Writer {
	return &Writer{actor: actor, slices: slices}
}

// Client returns a clientset that creates, updates and deletes EndpointSlices; all
// else panics.
func (w *Writer) Client() kubernetes.Interface { return clientset{writer: w} }

// Recorder returns a recorder of events on Services that are written out already; all
// else panics.
func (w *Writer) Recorder() record.EventRecorder { return recorder{writer: w} }

// During has what is written for a Service end with the context while work goes on:
// the library has no parameter for it. The library keeps only the text of an error that
// says that a write was withheld: when nothing else went wrong, those errors are what is
// returned, and otherwise they are below it.
func (w *Writer) During(ctx context.Context, service types.NamespacedName, work func() error) error {
	t := &turn{ctx: ctx}
	w.turns.Store(service, t)
	defer w.turns.Delete(service)
	err := work()
	switch {
	case len(t.withheld) == 0:
		return err
	case err != nil && failures(err) > len(t.withheld):
		return &beside{err, t.withheld}
	}
	return errors.Join(t.withheld...)
}

// beside is what went wrong while writes were withheld; its text is that of the library.
type beside struct {
	error
	withheld []error
}

func (b *beside) Unwrap() []error { return append([]error{b.error}, b.withheld...) }

// failures is how many things went wrong: the library says each by an error of its own.
func failures(err error) int {
	if all, is := err.(utilerrors.Aggregate); is {
		return len(utilerrors.Flatten(all).Errors())
	}
	return 1
}

func (w *Writer) take(ctx context.Context, service types.NamespacedName, why string, step act.Step) act.Result {
	working, is := w.turns.Load(service)
	if !is {
		return w.actor.TakeBecause(ctx, service, why, step)
	}
	t := working.(*turn)
	result := w.actor.TakeBecause(t.ctx, service, why, step)
	if result.Became == act.OnHold {
		t.withheld = append(t.withheld, result.Err)
	}
	return result
}

type clientset struct {
	kubernetes.Interface
	writer *Writer
}

func (c clientset) DiscoveryV1() discoveryclient.DiscoveryV1Interface {
	return discovery{writer: c.writer}
}

type discovery struct {
	discoveryclient.DiscoveryV1Interface
	writer *Writer
}

func (d discovery) EndpointSlices(namespace string) discoveryclient.EndpointSliceInterface {
	return endpointSlices{writer: d.writer, namespace: namespace}
}

type endpointSlices struct {
	discoveryclient.EndpointSliceInterface
	writer    *Writer
	namespace string
}

// Create creates a slice. When the answer is lost, the Service waits until a live look
// has shown whether there is one.
func (s endpointSlices) Create(ctx context.Context, slice *discoveryv1.EndpointSlice, _ metav1.CreateOptions) (*discoveryv1.EndpointSlice, error) {
	key := s.serviceOf(slice)
	owner := &metav1.ObjectMeta{Namespace: s.namespace}
	if ref := metav1.GetControllerOf(slice); ref != nil {
		owner.UID = ref.UID
	}
	return answer(s.writer.take(ctx, key, "a new slice of "+contentsOf(slice), act.Create{Object: slice.DeepCopy(), Owner: owner,
		Siblings: labels.SelectorFromSet(labels.Set{discoveryv1.LabelServiceName: key.Name})}))
}

// Update updates a slice.
func (s endpointSlices) Update(ctx context.Context, slice *discoveryv1.EndpointSlice, _ metav1.UpdateOptions) (*discoveryv1.EndpointSlice, error) {
	return answer(s.writer.take(ctx, s.serviceOf(slice), "a slice gets "+contentsOf(slice), act.Update{Object: slice.DeepCopy(), Required: true}))
}

// Delete deletes a slice if it is the one that is cached. One that is gone is as good as deleted.
func (s endpointSlices) Delete(ctx context.Context, name string, _ metav1.DeleteOptions) error {
	item, exists, err := s.writer.slices.GetByKey(s.namespace + "/" + name)
	if err != nil {
		return fmt.Errorf("find EndpointSlice %s/%s: %w", s.namespace, name, err)
	}
	slice, ok := item.(*discoveryv1.EndpointSlice)
	if !exists || !ok {
		return nil
	}
	return s.writer.take(ctx, s.serviceOf(slice), "a slice of "+contentsOf(slice)+" is not needed any more", act.Delete{Of: slice}).Err
}

func (s endpointSlices) serviceOf(slice *discoveryv1.EndpointSlice) types.NamespacedName {
	return types.NamespacedName{Namespace: s.namespace, Name: slice.Labels[discoveryv1.LabelServiceName]}
}

func contentsOf(slice *discoveryv1.EndpointSlice) string {
	return fmt.Sprintf("%d endpoints (%s) with %d ports", len(slice.Endpoints), slice.AddressType, len(slice.Ports))
}

// answer is what is returned to the library. In a namespace that ends it goes no further.
func answer(result act.Result) (*discoveryv1.EndpointSlice, error) {
	if result.Became == act.Ending {
		return nil, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}},
		}}
	}
	if result.Err != nil {
		return nil, result.Err
	}
	return result.Object.(*discoveryv1.EndpointSlice), nil
}

type recorder struct {
	record.EventRecorder
	writer *Writer
}

func (r recorder) Event(object runtime.Object, kind, reason, message string) {
	if on, ok := object.(client.Object); ok {
		r.writer.actor.Take(context.Background(), client.ObjectKeyFromObject(on), act.Event{On: on, Type: kind, Reason: reason, Message: message})
	}
}
