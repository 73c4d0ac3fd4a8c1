package app

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/scale"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/disruption"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func policyControllers() []Controller {
	return []Controller{
		{Name: names.DisruptionController,
			Needs: slices.Concat(of(policyv1.SchemeGroupVersion, "poddisruptionbudgets"),
				of(appsv1.SchemeGroupVersion, "deployments", "replicasets", "statefulsets")),
			Account: "disruption-controller", Events: disruption.EventComponent, New: newDisruption},
	}
}

func newDisruption(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	config, err := cc.configOf(cc.row)
	if err != nil {
		return nil, err
	}
	served, err := cc.discovery()
	if err != nil {
		return nil, err
	}
	kinds := scale.NewDiscoveryScaleKindResolver(served)
	scales, err := scale.NewForConfig(config, cc.RESTMapper, dynamic.LegacyAPIPathResolverFunc, kinds)
	if err != nil {
		return nil, fmt.Errorf("make the scale client of %s: %w", cc.row.Account, err)
	}
	return disruption.New(cc.Informers, hand, disruption.Options{
		Mapper: cc.RESTMapper,
		Scale: func(ctx context.Context, resource schema.GroupResource, namespace, name string) (*autoscalingv1.Scale, error) {
			return scales.Scales(namespace).Get(ctx, resource, name, metav1.GetOptions{})
		},
		Served: served.ServerResourcesForGroupVersion,
	})
}
