package app

import (
	"context"
	"sync"

	genericfeatures "k8s.io/apiserver/pkg/features"
	"k8s.io/component-base/compatibility"

	"github.com/kube-kcm/kube-controller-manager/pkg/election"
)

// elections competes for the leases of this process.
func (p *process) elections(ctx context.Context) (*election.Elections, error) {
	return election.New(ctx, election.Options{
		Config:      p.ComponentConfig.Generic.LeaderElection,
		Kubeconfig:  p.Kubeconfig,
		Recorder:    p.EventRecorder,
		Coordinated: p.gates().Enabled(genericfeatures.CoordinatedLeaderElection),
		Flush:       func() { p.events.flush(flushTimeout) },
	})
}

func (p *process) mainLease() election.Lease {
	c := p.ComponentConfig.Generic.LeaderElection
	return election.Lease{Namespace: c.ResourceNamespace, Name: c.ResourceName, Type: c.ResourceLock}
}

// offer offers this process as a leader where the API server chooses.
func (p *process) offer(ctx context.Context, e *election.Elections, background *sync.WaitGroup) error {
	versions := p.ComponentGlobalsRegistry.EffectiveVersionFor(compatibility.DefaultKubeComponent)
	check, err := e.Candidate(ctx, component, versions.BinaryVersion(), versions.EmulationVersion(), background)
	if check != nil {
		p.health.add(check)
	}
	return err
}
