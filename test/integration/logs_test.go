package integration

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

var errorLine = regexp.MustCompile(`(?m)^E\d{4} .*$`)

// TestAUsualStartLogsNoErrors has all controllers start, work and stop.
func TestAUsualStartLogsNoErrors(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client := clientOf(t, cp)
	pretendKubelet(t, cp)
	manager := cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: []string{"--leader-elect=true", "--controllers=*,bootstrap-signer-controller,token-cleaner-controller"}})
	leads(t, client, "")
	harness.Eventually(t, patient, func(context.Context) error {
		code, body, err := manager.Get("/readyz?verbose")
		if err == nil && (code != http.StatusOK || !strings.Contains(body, "deployment-controller")) {
			err = fmt.Errorf("/readyz says %d %s", code, body)
		}
		return err
	})
	acts(t, client, "shop", patient)
	deployWeb(t, client, 3)
	available(t, client, 3)
	if err := client.CoreV1().Namespaces().Delete(t.Context(), "shop", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, patient, func(ctx context.Context) error {
		_, err := client.CoreV1().Namespaces().Get(ctx, "shop", metav1.GetOptions{})
		if err == nil {
			return fmt.Errorf("the namespace is still there")
		}
		return nil
	})
	if err := manager.Stop(); err != nil {
		t.Error(err)
	}
	log := manager.Log(0)
	if lines := errorLine.FindAllString(log, -1); len(lines) > 0 {
		t.Errorf("%d lines are errors:\n%s", len(lines), strings.Join(lines, "\n"))
	}
	if !strings.Contains(log, "Released the lease") { // else there was no log to look at
		t.Errorf("the log does not show the stop: %s", manager.LogTail(0, 20))
	}
}

// TestErrorsNameTheFirstCause takes the API server away from a leader. Whatever is logged
// has to say that nobody takes the connection, not that time ran out over it.
func TestErrorsNameTheFirstCause(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	manager := cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: []string{"--leader-elect=true",
		"--leader-elect-lease-duration=8s", "--leader-elect-renew-deadline=6s", "--leader-elect-retry-period=1s"}})
	client := clientOf(t, cp)
	leads(t, client, "")
	acts(t, client, "shop", patient)
	mark := manager.LogMark()
	cp.StopAPIServer()
	select {
	case <-manager.Process().Exited():
	case <-time.After(patient):
		t.Fatal("it still leads")
	}
	lines := errorLine.FindAllString(manager.Log(mark), -1)
	last := ""
	for _, line := range lines {
		if strings.Contains(line, "command failed") {
			last = line
		}
		for _, words := range []string{"limiter", "deadline", "canceled", "timed out"} {
			if strings.Contains(line, words) && !strings.Contains(line, "connection refused") {
				t.Errorf("%q is not the first cause: %s", words, line)
			}
		}
	}
	if !strings.Contains(last, "leader election lost") || !strings.Contains(last, "connection refused") {
		t.Errorf("the last of %d lines is %s", len(lines), last)
	}
}
