package integration

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// kubeadmArgs are the flags of the static pod that kubeadm writes for a cluster
// with a pod network; only the files are elsewhere. The port is the default one.
func kubeadmArgs(cp *harness.ControlPlane) []string {
	return []string{
		"--allocate-node-cidrs=true",
		"--authentication-kubeconfig=" + cp.ManagerKubeconfig,
		"--authorization-kubeconfig=" + cp.ManagerKubeconfig,
		"--bind-address=127.0.0.1",
		"--client-ca-file=" + cp.File("ca.crt"),
		"--cluster-cidr=10.244.0.0/16",
		"--cluster-name=kubernetes",
		"--cluster-signing-cert-file=" + cp.File("ca.crt"),
		"--cluster-signing-key-file=" + cp.File("ca.key"),
		"--controllers=*,bootstrapsigner,tokencleaner",
		"--kubeconfig=" + cp.ManagerKubeconfig,
		"--leader-elect=true",
		"--requestheader-client-ca-file=" + cp.File("front-proxy-ca.crt"),
		"--root-ca-file=" + cp.File("ca.crt"),
		"--service-account-private-key-file=" + cp.File("sa.key"),
		"--service-cluster-ip-range=10.96.0.0/12",
		"--use-service-account-credentials=true",
	}
}

func TestRunsWithTheFlagsOfKubeadm(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client := clientOf(t, cp)
	pretendKubelet(t, cp)
	mark := cp.Audit.Mark()
	harness.NeedPort(t, 10257)
	log := filepath.Join(t.TempDir(), "manager.log")
	p, err := harness.StartProcess("controller manager", harness.BuiltBinary(t), kubeadmArgs(cp), log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	if err := p.Until(2*patient, func() error { return probe("https://127.0.0.1:10257/healthz") }); err != nil {
		t.Fatal(err)
	}
	harness.CreateDeployment(t, client, "web", 3)
	harness.RolledOut(t, client, "web", 3, 2*patient)
	acts(t, client, "team", patient)
	if err := probe("https://127.0.0.1:10257/readyz"); err != nil {
		t.Error(err)
	}
	for _, event := range cp.Audit.Since(mark) {
		if event.Forbidden() {
			t.Errorf("forbidden: %s", event)
		}
	}
	if err := p.Terminate(patient); err != nil {
		t.Fatal(err)
	}
	if code := p.ExitCode(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, harness.Tail(log, 0, 20))
	}
}

// probe asks as the kubelet does: without credentials or a known CA.
func probe(url string) error {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s %s", url, response.Status, body)
	}
	return err
}
