package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
)

// cleanUp removes everything of a story without help from any controller, as
// none may be running.
func (r *run) cleanUp(ctx context.Context) {
	r.endProxy()
	r.suite.endDrivers()
	errs := []error{r.suite.endMetrics(ctx), r.endWebhook(ctx)}
	for _, namespace := range r.namespaces {
		r.suite.kubelet.Forget(namespace)
		// From here on the controllers can create nothing in it.
		err := r.suite.typed.CoreV1().Namespaces().Delete(ctx, namespace, metav1.DeleteOptions{})
		errs = append(errs, ignoreGone(err))
		// A controller may know of a pod that has gone only with the claims and volumes that it used.
		errs = append(errs, r.suite.emptyResource(ctx, corev1.SchemeGroupVersion.WithResource("pods"), namespace))
	}
	for _, s := range slices.Backward(r.strays) {
		errs = append(errs, r.suite.removeStray(ctx, s))
	}
	errs = append(errs, r.suite.kubelet.DeleteAllNodes(ctx))
	resources, err := r.suite.namespaced()
	errs = append(errs, err)
	for _, namespace := range r.namespaces {
		errs = append(errs, r.suite.empty(ctx, namespace, resources), r.suite.finalize(ctx, namespace))
	}
	errs = append(errs, r.suite.removeVolumes(ctx))
	if err := errors.Join(errs...); err != nil {
		r.t.Errorf("%s: clean up: %v", r.story.Path, err)
	}
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

func (s *suite) removeStray(ctx context.Context, of stray) error {
	client := s.resource(of.gvr, of.namespace)
	err := client.Delete(ctx, of.name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	if err != nil {
		return ignoreGone(err)
	}
	if of.gvr.Resource == "customresourcedefinitions" {
		// Its own finalizer lets the API server remove the instances first.
		s.mapper.Reset()
		return nil
	}
	_, err = client.Patch(ctx, of.name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	return ignoreGone(err)
}

// namespaced lists the resources whose objects live in namespaces. Events stay
// behind: nobody acts on them.
func (s *suite) namespaced() ([]schema.GroupVersionResource, error) {
	lists, err := discovery.ServerPreferredNamespacedResources(s.typed.Discovery())
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("list resources: %w", err)
	}
	found, err := discovery.GroupVersionResources(discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"deletecollection", "list"}}, lists))
	if err != nil {
		return nil, fmt.Errorf("list resources: %w", err)
	}
	var resources []schema.GroupVersionResource
	for gvr := range found {
		if gvr.Resource != "events" {
			resources = append(resources, gvr)
		}
	}
	return resources, nil
}

// empty deletes all objects of a namespace, whatever their finalizers wait for.
func (s *suite) empty(ctx context.Context, namespace string, resources []schema.GroupVersionResource) error {
	work := make(chan schema.GroupVersionResource)
	var mu sync.Mutex
	var errs []error
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for gvr := range work {
				if err := s.emptyResource(ctx, gvr, namespace); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, gvr := range resources {
		work <- gvr
	}
	close(work)
	workers.Wait()
	return errors.Join(errs...)
}

func (s *suite) emptyResource(ctx context.Context, gvr schema.GroupVersionResource, namespace string) error {
	client := s.resource(gvr, namespace)
	background := metav1.DeletePropagationBackground
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) == 0 {
		return ignoreGone(err)
	}
	err = client.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64), PropagationPolicy: &background}, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("delete all %s: %w", gvr.Resource, err)
	}
	for _, object := range list.Items {
		if len(object.GetFinalizers()) == 0 {
			continue
		}
		_, err := client.Patch(ctx, object.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if ignoreGone(err) != nil {
			return fmt.Errorf("free %s %s: %w", gvr.Resource, object.GetName(), err)
		}
	}
	return nil
}

// finalize does the last step of the namespace controller.
func (s *suite) finalize(ctx context.Context, name string) error {
	namespace, err := s.typed.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return ignoreGone(err)
	}
	namespace.Spec.Finalizers = nil
	_, err = s.typed.CoreV1().Namespaces().Finalize(ctx, namespace, metav1.UpdateOptions{})
	return ignoreGone(err)
}
