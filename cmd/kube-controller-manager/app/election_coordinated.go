package app

import (
	"context"
	"fmt"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/component-base/compatibility"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/pkg/patience"
)

// coordinatedElection reports whether the API server picks the leader.
func (p *process) coordinatedElection() bool {
	gates := p.ComponentGlobalsRegistry.FeatureGateFor(compatibility.DefaultKubeComponent)
	return gates.Enabled(features.CoordinatedLeaderElection)
}

// startCandidate offers this process to the API server's choice, when that
// chooses. The candidate ends with ctx.
func (e *elections) startCandidate(ctx context.Context, p *process, background *sync.WaitGroup) error {
	if !e.coordinated {
		return nil
	}
	effective := p.ComponentGlobalsRegistry.EffectiveVersionFor(compatibility.DefaultKubeComponent)
	// The library's loop tries again by itself; only its watch has to be slowed down.
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(patience.Reads(p.Kubeconfig, klog.FromContext(ctx)), component))
	if err != nil {
		return fmt.Errorf("make the client of the lease candidate: %w", err)
	}
	candidate, synced, err := leaderelection.NewCandidate(client, metav1.NamespaceSystem, e.identity, component,
		semantic(effective.BinaryVersion()), semantic(effective.EmulationVersion()), coordinationv1.OldestEmulationVersion)
	if err != nil {
		return fmt.Errorf("create a lease candidate: %w", err)
	}
	p.health.add(healthz.NewInformerSyncHealthz(synced))
	background.Go(func() { candidate.Run(ctx) })
	return nil
}

// semantic is the three-part form that lease candidates carry.
func semantic(v *version.Version) string {
	return fmt.Sprintf("%d.%d.%d", v.Major(), v.Minor(), v.Patch())
}
