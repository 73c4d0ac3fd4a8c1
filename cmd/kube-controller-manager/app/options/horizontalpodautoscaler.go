package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var horizontalPodAutoscaler = section{
	controller: names.HorizontalPodAutoscalerController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		o := &c.HPAController
		fs.Int32Var(&o.ConcurrentHorizontalPodAutoscalerSyncs, "concurrent-horizontal-pod-autoscaler-syncs", o.ConcurrentHorizontalPodAutoscalerSyncs,
			"How many HorizontalPodAutoscalers are synced at a time. More is faster and costs more CPU and network.")
		fs.DurationVar(&o.HorizontalPodAutoscalerSyncPeriod.Duration, "horizontal-pod-autoscaler-sync-period", o.HorizontalPodAutoscalerSyncPeriod.Duration,
			"How often each HorizontalPodAutoscaler reads its metrics and scales its target.")
		fs.DurationVar(&o.HorizontalPodAutoscalerDownscaleStabilizationWindow.Duration, "horizontal-pod-autoscaler-downscale-stabilization", o.HorizontalPodAutoscalerDownscaleStabilizationWindow.Duration,
			"How far back recommendations count when scaling down: the target is not scaled below the highest recommendation of that time. With 0 only the present one counts.")
		fs.Float64Var(&o.HorizontalPodAutoscalerTolerance, "horizontal-pod-autoscaler-tolerance", o.HorizontalPodAutoscalerTolerance,
			"How far the ratio of actual to desired metrics must be from 1.0 before the target is scaled.")
		fs.DurationVar(&o.HorizontalPodAutoscalerCPUInitializationPeriod.Duration, "horizontal-pod-autoscaler-cpu-initialization-period", o.HorizontalPodAutoscalerCPUInitializationPeriod.Duration,
			"For how long after the start of a pod its CPU samples may be ignored.")
		fs.DurationVar(&o.HorizontalPodAutoscalerInitialReadinessDelay.Duration, "horizontal-pod-autoscaler-initial-readiness-delay", o.HorizontalPodAutoscalerInitialReadinessDelay.Duration,
			"For how long after the start of a pod a change of its readiness counts as its initial readiness.")
	},
	check: func(p *problems, s *settings) {
		o := s.HPAController
		p.workers("concurrent-horizontal-pod-autoscaler-syncs", o.ConcurrentHorizontalPodAutoscalerSyncs)
		p.positive("horizontal-pod-autoscaler-sync-period", o.HorizontalPodAutoscalerSyncPeriod.Duration)
		p.notNegative("horizontal-pod-autoscaler-downscale-stabilization", o.HorizontalPodAutoscalerDownscaleStabilizationWindow.Duration)
		p.notLess("horizontal-pod-autoscaler-tolerance", o.HorizontalPodAutoscalerTolerance, 0)
		p.notNegative("horizontal-pod-autoscaler-cpu-initialization-period", o.HorizontalPodAutoscalerCPUInitializationPeriod.Duration)
		p.notNegative("horizontal-pod-autoscaler-initial-readiness-delay", o.HorizontalPodAutoscalerInitialReadinessDelay.Duration)
	},
}
