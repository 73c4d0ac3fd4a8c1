package app

import (
	"context"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/podautoscaler"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func autoscalingControllers() []Controller {
	return []Controller{
		{Name: names.HorizontalPodAutoscalerController, Needs: of(autoscalingv2.SchemeGroupVersion, "horizontalpodautoscalers"),
			Account: "horizontal-pod-autoscaler", Events: podautoscaler.EventComponent, AnyKind: true, New: newHorizontalPodAutoscaler},
	}
}

func newHorizontalPodAutoscaler(ctx context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	config, err := cc.configOf(cc.row)
	if err != nil {
		return nil, err
	}
	reader, err := autoscalerReaderOf(ctx, cc, config)
	if err != nil {
		return nil, err
	}
	settings := cc.Config.HPAController
	return podautoscaler.New(cc.Informers.Autoscaling().V2().HorizontalPodAutoscalers(), cc.Informers.Core().V1().Pods(),
		cc.RESTMapper, reader, hand, podautoscaler.Options{
			Workers:                int(settings.ConcurrentHorizontalPodAutoscalerSyncs),
			Period:                 settings.HorizontalPodAutoscalerSyncPeriod.Duration,
			DownscaleStabilization: settings.HorizontalPodAutoscalerDownscaleStabilizationWindow.Duration,
			Tolerance:              settings.HorizontalPodAutoscalerTolerance,
			CPUInitialization:      settings.HorizontalPodAutoscalerCPUInitializationPeriod.Duration,
			ReadinessDelay:         settings.HorizontalPodAutoscalerInitialReadinessDelay.Duration,
			ConfigurableTolerance:  cc.Gates.Enabled(features.HPAConfigurableTolerance),
			ScaleToZero:            cc.Gates.Enabled(features.HPAScaleToZero),
			PodLevelResources:      cc.Gates.Enabled(features.PodLevelResources),
		})
}
