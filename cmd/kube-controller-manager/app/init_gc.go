package app

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/garbagecollector"
)

// collectorQPSFactor allows for the reads that come before each deletion.
const collectorQPSFactor = 2

func startGarbageCollectorController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	settings := cc.Config.GarbageCollectorController
	if !ptr.Deref(settings.EnableGarbageCollector, true) {
		return nil, false, skip("--enable-garbage-collector is false")
	}
	config, err := cc.Clients.Config("generic-garbage-collector")
	if err != nil {
		return nil, false, fmt.Errorf("configure the client of generic-garbage-collector: %w", err)
	}
	config.QPS *= collectorQPSFactor
	hand, err := cc.handOf(ctx, config, garbagecollector.EventComponent)
	if err != nil {
		return nil, false, err
	}
	var ignored []schema.GroupResource
	for _, r := range settings.GCIgnoredResources {
		ignored = append(ignored, schema.GroupResource{Group: r.Group, Resource: r.Resource})
	}
	c := garbagecollector.New(cc.Monitors(), cc.RESTMapper, hand, garbagecollector.Options{Workers: int(settings.ConcurrentGCSyncs), Ignored: ignored})
	return cc.run(ctx, c, nil)
}
