package app

import (
	"context"
	"sync/atomic"

	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/shadow"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// shadowing is what a process that writes nothing compares.
type shadowing struct {
	*shadow.Ledger
	// namespaces are those of the term; nil before it has begun.
	namespaces atomic.Pointer[corelisters.NamespaceLister]
}

// newShadow returns nil for a process that writes.
func newShadow(p *process) *shadowing {
	if p.Shadow == nil {
		return nil
	}
	s := &shadowing{}
	s.Ledger = shadow.New(shadow.Options{
		Window: p.Shadow.Window, Maker: makerOf, Ending: s.ending, Refused: p.Shadow.ReadOnly.Refused,
		Running: func(controller string) bool {
			state, _ := p.debug.Find(controller)
			return state.State == debug.Started
		},
	})
	return s
}

func (s *shadowing) ending(namespace string) bool {
	all := s.namespaces.Load()
	if all == nil || namespace == "" {
		return false
	}
	of, err := (*all).Get(namespace)
	return err == nil && of.DeletionTimestamp != nil
}

// followNamespaces has a shadow know which namespaces are ending.
func (cc ControllerContext) followNamespaces() {
	if s := cc.process.shadow; s != nil {
		lister := cc.Informers.Core().V1().Namespaces().Lister()
		s.namespaces.Store(&lister)
	}
}

// shadowed is the context of loops whose reconciles a shadow compares.
func (p *process) shadowed(ctx context.Context) context.Context {
	if p == nil || p.shadow == nil {
		return ctx
	}
	return runner.WithAround(ctx, p.shadow.Around)
}

// trim is the transform of the shared caches.
func (p *process) trim() toolscache.TransformFunc {
	if p.shadow == nil {
		return cache.Trim
	}
	return p.shadow.Transform(cache.Trim)
}

// sendsEvents returns the client that writes events; nil for a shadow, which writes none.
func (p *process) sendsEvents(client typedcorev1.EventsGetter) typedcorev1.EventsGetter {
	if p.shadow != nil {
		return nil
	}
	return client
}

// makers are the controllers that make objects for an owner of a kind.
var makers = map[string]string{
	"Deployment":            names.DeploymentController,
	"ReplicaSet":            names.ReplicaSetController,
	"ReplicationController": names.ReplicationControllerController,
	"StatefulSet":           names.StatefulSetController,
	"DaemonSet":             names.DaemonSetController,
	"Job":                   names.JobController,
	"CronJob":               names.CronJobController,
	"Service":               names.EndpointSliceController,
	"Endpoints":             names.EndpointSliceMirroringController,
}

// makersOf are those that make an object of a kind, whatever owns it.
var makersOf = map[string]string{
	"PersistentVolumeClaim": names.EphemeralVolumeController,
	"ResourceClaim":         names.ResourceClaimController,
}

// reporters are the controllers that alone write the status of a kind. That of a namespace
// reports on the deletions of the manager that makes them: no other can plan it.
var reporters = map[string]string{
	"Deployment":              names.DeploymentController,
	"ReplicaSet":              names.ReplicaSetController,
	"ReplicationController":   names.ReplicationControllerController,
	"StatefulSet":             names.StatefulSetController,
	"DaemonSet":               names.DaemonSetController,
	"Job":                     names.JobController,
	"CronJob":                 names.CronJobController,
	"HorizontalPodAutoscaler": names.HorizontalPodAutoscalerController,
	"PodDisruptionBudget":     names.DisruptionController,
	"ResourceQuota":           names.ResourceQuotaController,
	"PersistentVolume":        names.PersistentVolumeBinderController,
	"PersistentVolumeClaim":   names.PersistentVolumeBinderController,
	"ServiceCIDR":             names.ServiceCIDRController,
}

// makerOf returns whose work a write of the running manager is; "" if that cannot be said.
func makerOf(w shadow.Written) string {
	if w.Owner == "" {
		return reporters[w.Kind]
	}
	if maker := makersOf[w.Kind]; maker != "" {
		return maker
	}
	return makers[w.Owner]
}
