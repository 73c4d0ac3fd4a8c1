package resourcepoolstatusrequest

import (
	"context"
	"errors"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	requestinformers "k8s.io/client-go/informers/resource/v1alpha3"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// Name is the controller's canonical name.
const Name = "resourcepoolstatusrequest-controller"

var (
	// pendingByDriver finds requests without a status by their driver.
	pendingByDriver = cache.NewIndex("pendingByDriver", func(object any) ([]string, error) {
		if r, ok := object.(*resourcev1alpha3.ResourcePoolStatusRequest); ok && r.Status == nil {
			return []string{r.Spec.Driver}, nil
		}
		return nil, nil
	})
	// slicesByDriver finds slices by their driver.
	slicesByDriver = cache.NewIndex("slicesByDriver", func(object any) ([]string, error) {
		if slice, ok := object.(*resourcev1.ResourceSlice); ok {
			return []string{slice.Spec.Driver}, nil
		}
		return nil, nil
	})
	// claimsByDriver finds allocated claims by the driver of each of their devices.
	claimsByDriver = cache.NewIndex("claimsByDriver", func(object any) ([]string, error) {
		claim, ok := object.(*resourcev1.ResourceClaim)
		if !ok {
			return nil, nil
		}
		var drivers []string
		for _, device := range allocated(claim) {
			drivers = append(drivers, device.Driver)
		}
		return drivers, nil
	})
)

// Controller answers ResourcePoolStatusRequests; its keys are their names.
type Controller struct {
	*reconcile.Controller[string]
	requests toolscache.Indexer
	slices   toolscache.Indexer
	claims   toolscache.Indexer
}

// New returns the controller, which is not running yet.
func New(requests requestinformers.ResourcePoolStatusRequestInformer, slices resourceinformers.ResourceSliceInformer,
	claims resourceinformers.ResourceClaimInformer, hand reconcile.Hand) (*Controller, error) {
	registerMetrics()
	err := errors.Join(cache.Ensure(requests.Informer(), pendingByDriver), cache.Ensure(slices.Informer(), slicesByDriver), cache.Ensure(claims.Informer(), claimsByDriver))
	if err != nil {
		return nil, fmt.Errorf("index by driver: %w", err)
	}
	c := &Controller{requests: requests.Informer().GetIndexer(), slices: slices.Informer().GetIndexer(), claims: claims.Informer().GetIndexer()}
	c.Controller = reconcile.New(reconcile.Options[string]{
		Runner: runner.Options[string]{Name: Name, Synced: []toolscache.InformerSynced{claims.Informer().HasSynced}},
		Hand:   hand, Caches: reconcile.Caches{resourcev1alpha3.Resource("resourcepoolstatusrequests"): c.requests},
	}, c.observe, plan)
	return c, errors.Join(
		runner.Watch(c.Runner, requests.Informer(), wakeRequest),
		runner.Watch(c.Runner, slices.Informer(), c.wakePending))
}

func wakeRequest(change runner.Change[resourcev1alpha3.ResourcePoolStatusRequest], wake runner.Wake[string]) {
	if change.New != nil {
		wake.Add(change.New.Name)
	}
}

// wakePending wakes the requests that may wait for a slice.
func (c *Controller) wakePending(change runner.Change[resourcev1.ResourceSlice], wake runner.Wake[string]) {
	if change.Initial || change.Old != nil && change.New != nil && change.Old.ResourceVersion == change.New.ResourceVersion {
		return
	}
	pending, err := cache.Lookup[resourcev1alpha3.ResourcePoolStatusRequest](c.requests, pendingByDriver, change.Now().Spec.Driver)
	if err != nil {
		return // the index is there: New has made it
	}
	for _, request := range pending {
		wake.Add(request.Name)
	}
}

func (c *Controller) observe(_ context.Context, name string) (observed, error) {
	request, err := reconcile.Cached[resourcev1alpha3.ResourcePoolStatusRequest](c.requests, name)
	o := observed{request: request}
	if err != nil || request.Status != nil {
		return o, err
	}
	if o.slices, err = cache.Lookup[resourcev1.ResourceSlice](c.slices, slicesByDriver, request.Spec.Driver); err != nil {
		return o, err
	}
	o.claims, err = cache.Lookup[resourcev1.ResourceClaim](c.claims, claimsByDriver, request.Spec.Driver)
	return o, err
}
