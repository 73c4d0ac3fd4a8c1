package e2e

import (
	"testing"

	"k8s.io/client-go/kubernetes"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

func tools(t testing.TB) harness.Tools {
	t.Helper()
	tools, err := harness.FindTools()
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// cluster is made by kwokctl: etcd, kube-apiserver, kube-scheduler and simulated
// nodes. The tests start the controller managers themselves.
type cluster struct {
	*harness.Kwok
	client kubernetes.Interface
}

const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  verbs: [get, list, watch]
- level: Metadata
`

// newCluster starts a cluster without a controller manager; the test's end deletes it.
func newCluster(t testing.TB) *cluster { return newClusterWith(t, "") }

// newClusterWith starts a cluster whose pods are played as these stages say.
func newClusterWith(t testing.TB, stages string) *cluster {
	t.Helper()
	k, err := harness.StartKwok(t.Context(), harness.KwokOptions{Dir: t.TempDir(), Tools: tools(t), AuditPolicy: auditPolicy, Stages: stages})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Delete(); err != nil {
			t.Error(err)
		}
	})
	return &cluster{Kwok: k, client: k.Client}
}

// manager runs a controller manager on the cluster; the test's end ends it.
func (c *cluster) manager(t testing.TB, path string, args ...string) *harness.Process {
	t.Helper()
	m, err := c.StartManager(path, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Kill()
		if t.Failed() {
			t.Logf("the controller manager's log ends:\n%s", harness.Tail(m.Log, 0, 40))
		}
	})
	return m.Process
}

// nodes adds simulated nodes and waits until they are Ready.
func (c *cluster) nodes(t testing.TB, count int) {
	t.Helper()
	if err := c.AddNodes(t.Context(), count); err != nil {
		t.Fatal(err)
	}
}
