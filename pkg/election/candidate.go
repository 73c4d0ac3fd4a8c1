package election

import (
	"context"
	"fmt"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
)

// Candidate offers this process, under the name of its component, to the API
// server's choice until ctx ends. It returns the check of its watch, and nil where
// the API server does not choose.
func (e *Elections) Candidate(ctx context.Context, component string, binary, emulated *version.Version, background *sync.WaitGroup) (healthz.HealthChecker, error) {
	if !e.Coordinated {
		return nil, nil
	}
	// The library's loop tries again by itself; only its watch has to be slowed down.
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(transport.Reads(e.Kubeconfig, klog.FromContext(ctx)), component))
	if err != nil {
		return nil, fmt.Errorf("make the client of the lease candidate: %w", err)
	}
	candidate, synced, err := leaderelection.NewCandidate(client, metav1.NamespaceSystem, e.identity, component,
		semantic(binary), semantic(emulated), coordinationv1.OldestEmulationVersion)
	if err != nil {
		return nil, fmt.Errorf("create a lease candidate: %w", err)
	}
	background.Go(func() { candidate.Run(ctx) })
	return healthz.NewInformerSyncHealthz(synced), nil
}

// semantic is the three-part form that lease candidates carry.
func semantic(v *version.Version) string {
	return fmt.Sprintf("%d.%d.%d", v.Major(), v.Minor(), v.Patch())
}
