package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/shadow"
	"github.com/kube-kcm/kube-controller-manager/pkg/why"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

const shadowUser = "system:serviceaccount:kube-system:kcm-shadow"

// startShadow starts a shadow beside whatever runs, with the rights of build/rbac/shadow.yaml.
func startShadow(t *testing.T, cp *harness.ControlPlane, client kubernetes.Interface, args ...string) *harness.Manager {
	t.Helper()
	tools, err := harness.FindTools()
	if err != nil {
		t.Fatal(err)
	}
	root, err := harness.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	grant := exec.CommandContext(t.Context(), filepath.Join(tools.Dir, "kubectl"), "--kubeconfig="+cp.AdminKubeconfig, "apply", "-f", filepath.Join(root, "build/rbac/shadow.yaml"))
	if out, err := grant.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	token, err := client.CoreV1().ServiceAccounts("kube-system").CreateToken(t.Context(), "kcm-shadow",
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To(int64(24 * 60 * 60))}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: cp.URL, CertificateAuthority: cp.File("ca.crt")}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	file := filepath.Join(t.TempDir(), "shadow.conf")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	m := cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Kubeconfig: file,
		Args: append([]string{"--shadow", "--leader-elect=true", "--node-monitor-grace-period=50s"}, args...)})
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the shadow says:\n%s\nand has logged:\n%s", reportText(m), m.LogTail(0, 60))
		}
		if bad := m.Misbehaviour(0); bad != "" {
			t.Error(bad)
		}
	})
	harness.Eventually(t, time.Minute, func(context.Context) error {
		code, body, err := m.Get("/readyz")
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
	return m
}

func reportText(m *harness.Manager) string {
	_, body, err := m.GetAsAdmin("/debug/shadow")
	if err != nil {
		return err.Error()
	}
	return body
}

func reportOf(m *harness.Manager) (report shadow.Report, err error) {
	code, body, err := m.GetAsAdmin("/debug/shadow")
	switch {
	case err != nil:
		return report, err
	case code != http.StatusOK:
		return report, fmt.Errorf("/debug/shadow says %d %s", code, body)
	}
	return report, json.Unmarshal([]byte(body), &report)
}

// wroteNothing fails for any request of the shadow that is not a read, or that was refused
// for want of a right, and says how many reads it made and how often the others wrote.
func wroteNothing(t *testing.T, cp *harness.ControlPlane) {
	t.Helper()
	reads, writes := 0, 0
	for event := range cp.Audit.All(0) {
		switch {
		case event.User.Username != shadowUser:
			if event.Write() {
				writes++
			}
			continue
		case event.Forbidden():
			t.Errorf("may not: %s", event.AuditEvent)
		case event.ObjectRef != nil && event.ObjectRef.Resource == "leases" && event.ObjectRef.Name == "kube-controller-manager":
			t.Errorf("looks at the lease: %s", event.AuditEvent)
		}
		if slices.Contains([]string{"get", "list", "watch"}, event.Verb) {
			reads++
			continue
		}
		if event.ObjectRef == nil || event.Verb != "create" || !slices.Contains([]string{"tokenreviews", "subjectaccessreviews"}, event.ObjectRef.Resource) {
			t.Errorf("no read: %s", event.AuditEvent)
		}
	}
	t.Logf("%d reads of the shadow, %d writes of the running manager", reads, writes)
	if reads < 50 || writes < 100 {
		t.Errorf("the audit log has %d reads of the shadow and %d writes of the running manager: too few to prove anything", reads, writes)
	}
}

// shadowedFor is how long the churn goes on; SHADOW_FOR makes it longer.
func shadowedFor(t *testing.T) time.Duration {
	text := os.Getenv("SHADOW_FOR")
	if text == "" {
		return 20 * time.Second
	}
	long, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return long
}

// TestAShadowAgrees runs a shadow beside the original while workloads come, change and go.
func TestAShadowAgrees(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	tools, err := harness.FindTools()
	if err != nil {
		t.Fatal(err)
	}
	c := newChurn(t, cp)
	cp.StartManager(t, harness.ManagerOptions{Binary: tools.ReferenceManager})
	m := startShadow(t, cp, c.client)
	c.run(t, shadowedFor(t))
	harness.Eventually(t, 2*time.Minute, func(context.Context) error {
		report, err := reportOf(m)
		if err == nil && report.Open > 0 {
			err = fmt.Errorf("%d wishes are open", report.Open)
		}
		return err
	})
	report, err := reportOf(m)
	if err != nil {
		t.Fatal(err)
	}
	if report.Agreement == nil || *report.Agreement != 1 || report.Agreed < 100 || report.Foreseen == 0 || report.RefusedRequests != 0 {
		t.Errorf("agreed %d, extra %d, missed %d, foreseen %d, requests refused %d: want no difference", report.Agreed, report.Extra, report.Missed, report.Foreseen, report.RefusedRequests)
	}
	t.Logf("%s", reportText(m))
	if _, body, err := m.Get("/metrics"); err != nil || !strings.Contains(body, `kcm_shadow_comparisons_total{controller="replicaset-controller",result="agreed"}`) {
		t.Errorf("there is no metric of what was agreed: %v", err)
	}
	doesNotLead(t, m)
	wroteNothing(t, cp)
}

// doesNotLead holds that a shadow says so to monitoring, and to who asks it why.
func doesNotLead(t *testing.T, m *harness.Manager) {
	t.Helper()
	if _, body, err := m.Get("/metrics"); err != nil || !strings.Contains(body, "\nkcm_leader 0\n") {
		t.Errorf("the metric does not say that a shadow does not lead: %v", err)
	}
	var answer why.Answer
	code, body, err := m.GetAsAdmin("/debug/why?kind=namespace&name=default")
	if err == nil {
		err = json.Unmarshal([]byte(body), &answer)
	}
	if err != nil || code != http.StatusOK || !answer.Process.Shadow || answer.Process.Leading {
		t.Errorf("/debug/why says %d %s: %v", code, body, err)
	}
}

// TestAShadowReportsWhatDiffers has the running manager and the shadow each do without a
// controller.
func TestAShadowReportsWhatDiffers(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	c := newChurn(t, cp)
	cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: []string{"--controllers=*,-deployment-controller"}})
	m := startShadow(t, cp, c.client, "--shadow-window=5s", "--controllers=*,-job-controller")
	c.namespace(t, "differs")
	c.create(t, "differs")
	want := map[string]string{"deployment-controller": "extra create ReplicaSet", "job-controller": "missed create Pod"}
	harness.Eventually(t, 2*time.Minute, func(context.Context) error {
		report, err := reportOf(m)
		if err != nil {
			return err
		}
		found := 0
		for _, d := range report.Differences {
			if want[d.Controller] == d.Result+" "+d.What {
				found++
			}
		}
		if found < len(want) {
			return fmt.Errorf("reports %+v", report.Differences)
		}
		return nil
	})
	report, err := reportOf(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range report.Differences {
		if want[d.Controller] == "" {
			t.Errorf("reports %+v, where nothing differs", d)
		}
	}
	if said := strings.Count(m.Log(0), `controller="deployment-controller" what="create ReplicaSet"`); said != 1 {
		t.Errorf("the log has the difference %d times", said)
	}
	wroteNothing(t, cp)
}
