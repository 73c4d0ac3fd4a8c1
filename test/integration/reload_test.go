package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// inForce is how long a change of the configuration file may take to be seen in force. Five
// seconds are promised, and a busy machine may be slow to show the pages that say so.
const inForce = 20 * time.Second

// configured is a leader that was started with a configuration file alone.
type configured struct {
	*harness.Manager
	file    string
	content string // as it was at the start
}

func startConfigured(t *testing.T, cp *harness.ControlPlane) *configured {
	t.Helper()
	c := &configured{file: filepath.Join(t.TempDir(), "kcm.yaml")}
	c.Manager = cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: []string{"--leader-elect=true"}, ConfigFile: c.file})
	content, err := os.ReadFile(c.file)
	if err != nil {
		t.Fatal(err)
	}
	c.content = string(content)
	return c
}

// write gives the file the content of the start with other values of fields, by the name
// of the field alone.
func (c *configured) write(t *testing.T, values map[string]string) {
	t.Helper()
	content := c.content
	for field, value := range values {
		line := regexp.MustCompile(`(?m)^(\s+` + field + `:) .*$`)
		if n := len(line.FindAllString(content, -1)); n != 1 {
			t.Fatalf("there are %d fields %s", n, field)
		}
		content = line.ReplaceAllString(content, "$1 "+value)
	}
	// In one go: the process may read the file at any time.
	next := c.file + ".next"
	if err := errors.Join(os.WriteFile(next, []byte(content), 0o600), os.Rename(next, c.file)); err != nil {
		t.Fatal(err)
	}
}

func (c *configured) get(t *testing.T, path string) string {
	t.Helper()
	code, body, err := c.GetAsAdmin(path)
	if err != nil || code != 200 {
		t.Fatalf("%s: %d %v %s", path, code, err, body)
	}
	return body
}

// workers are those of the loops of a controller, by name.
func (c *configured) workers(t *testing.T, controller string) map[string]int {
	t.Helper()
	type loop struct {
		Name    string
		Workers int
	}
	body := []byte(c.get(t, "/debug/controllers/"+controller))
	var loops []loop
	if json.Unmarshal(body, &loops) != nil {
		// One loop, or the page of the collector, which lists its loops.
		var one struct {
			loop
			Loops []loop
		}
		if err := json.Unmarshal(body, &one); err != nil {
			t.Fatal(err)
		}
		loops = append(one.Loops, one.loop)
	}
	all := map[string]int{}
	for _, l := range loops {
		all[l.Name] = l.Workers
	}
	return all
}

// lines are those of the log that have all parts.
func (c *configured) lines(parts ...string) (found []string) {
	for line := range strings.Lines(c.Log(0)) {
		has := true
		for _, part := range parts {
			has = has && strings.Contains(line, part)
		}
		if has {
			found = append(found, line)
		}
	}
	return found
}

func within(t *testing.T, since time.Time, what string, is func() bool) {
	t.Helper()
	harness.Eventually(t, patient, func(context.Context) error {
		if !is() {
			return fmt.Errorf("not yet: %s", what)
		}
		return nil
	})
	took := time.Since(since)
	t.Logf("%s after %s", what, took.Round(time.Millisecond))
	if took > inForce {
		t.Errorf("%s only after %s, want at most %s", what, took, inForce)
	}
}

// TestALeaderTakesUpAChangedConfiguration changes the file of a leader: what can be taken up
// is, what cannot is named, a bad file is refused, and the lease stays where it is.
func TestALeaderTakesUpAChangedConfiguration(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client := clientOf(t, cp)
	m := startConfigured(t, cp)
	leader := leads(t, client, "")
	acts(t, client, "before", patient)
	lease, err := client.CoordinationV1().Leases("kube-system").Get(t.Context(), "kube-controller-manager", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, patient, func(context.Context) error {
		if w := m.workers(t, "garbage-collector-controller"); w["garbage-collector-controller/delete"] != 20 || w["garbage-collector-controller/graph"] != 1 {
			return fmt.Errorf("workers at the start: %v", w)
		}
		return nil
	})

	changed := map[string]string{"verbosity": "4", "concurrentGCSyncs": "3", "concurrentDeploymentSyncs": "11", "minResyncPeriod": "11h0m0s", "burst": "777"}
	since := time.Now()
	m.write(t, changed)
	within(t, since, "the change is in force", func() bool {
		gc, d := m.workers(t, "garbage-collector-controller"), m.workers(t, "deployment-controller")
		return gc["garbage-collector-controller/delete"] == 3 && gc["garbage-collector-controller/orphan"] == 3 && gc["garbage-collector-controller/graph"] == 1 &&
			d["deployment-controller"] == 11
	})
	harness.Eventually(t, patient, func(context.Context) error {
		configz, flagz := m.get(t, "/configz"), m.get(t, "/flagz")
		for where, parts := range map[string][]string{
			configz: {`"ConcurrentGCSyncs":3`, `"ConcurrentDeploymentSyncs":11`, `"burst":777`, `"MinResyncPeriod":"12h0m0s"`},
			flagz:   {`(?m)^v[:= ]+4$`, `(?m)^concurrent-gc-syncs[:= ]+3$`, `(?m)^kube-api-burst[:= ]+777$`, `(?m)^min-resync-period[:= ]+12h0m0s$`},
		} {
			for _, part := range parts {
				if !regexp.MustCompile(part).MatchString(where) {
					return fmt.Errorf("no %q in %s", part, where)
				}
			}
		}
		return nil
	})
	acts(t, client, "after-reload", patient)
	harness.Eventually(t, patient, func(context.Context) error {
		if len(m.lines("generic.minResyncPeriod", "it needs a restart")) != 1 || len(m.lines("needs a restart")) != 1 {
			return fmt.Errorf("these lines speak of a restart: %q", m.lines("restart"))
		}
		return nil
	})

	refusesABadFile(t, m)
	keeps(t, client, leader, *lease.Spec.LeaseTransitions)
	acts(t, client, "after-all", patient)
}

// refusesABadFile writes one, and then a good one.
func refusesABadFile(t *testing.T, m *configured) {
	t.Helper()
	m.write(t, map[string]string{"concurrentGCSyncs": "-1", "concurrentDeploymentSyncs": "many"})
	harness.Eventually(t, patient, func(context.Context) error {
		if len(m.lines("cannot be used", "deploymentController.concurrentDeploymentSyncs: want a whole number", "concurrent-gc-syncs must be greater than 0, but got -1")) != 1 {
			return fmt.Errorf("the bad file is not named: %q", m.lines("kcm.yaml"))
		}
		return nil
	})
	if d := m.workers(t, "deployment-controller"); d["deployment-controller"] != 11 {
		t.Errorf("workers with a bad file: %v", d)
	}
	since := time.Now()
	m.write(t, map[string]string{"concurrentDeploymentSyncs": "2"})
	within(t, since, "the next good file is in force", func() bool { return m.workers(t, "deployment-controller")["deployment-controller"] == 2 })
	if bad := m.lines("cannot be used"); len(bad) != 1 {
		t.Errorf("%d lines of a bad file, want 1: %q", len(bad), bad)
	}
}

// keeps holds that the lease has not changed hands.
func keeps(t *testing.T, client kubernetes.Interface, leader string, transitions int32) {
	t.Helper()
	lease, err := client.CoordinationV1().Leases("kube-system").Get(t.Context(), "kube-controller-manager", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if *lease.Spec.HolderIdentity != leader || *lease.Spec.LeaseTransitions != transitions {
		t.Errorf("%s has the lease after %d changes; it was %s after %d", *lease.Spec.HolderIdentity, *lease.Spec.LeaseTransitions, leader, transitions)
	}
}

// TestChangedRatesHoldForWhatWaits lowers the rate of requests, asks for many pods, and
// raises it again.
func TestChangedRatesHoldForWhatWaits(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client := clientOf(t, cp)
	m := startConfigured(t, cp)
	leads(t, client, "")
	acts(t, client, "before", patient)
	m.write(t, map[string]string{"qps": "1", "burst": "1"})
	harness.Eventually(t, patient, func(context.Context) error {
		if len(m.lines("Setting changed", "generic.clientConnection.qps")) != 1 {
			return fmt.Errorf("the rate is not changed")
		}
		return nil
	})
	const replicas = 100
	harness.CreateDeployment(t, client, "web", replicas)
	pods := func() int {
		list, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	harness.Eventually(t, patient, func(context.Context) error {
		if n := pods(); n < 2 {
			return fmt.Errorf("%d pods", n)
		}
		return nil
	})
	if n := pods(); n > replicas/2 {
		t.Fatalf("%d pods: the rate was not lowered", n)
	}
	since := time.Now()
	m.write(t, map[string]string{"qps": "500", "burst": "1000"})
	harness.Eventually(t, patient, func(context.Context) error {
		if n := pods(); n < replicas {
			return fmt.Errorf("%d pods", n)
		}
		return nil
	})
	took := time.Since(since)
	t.Logf("%d pods after %s", replicas, took.Round(time.Millisecond))
	// At one request per second it would take more than a minute and a half.
	if took > replicas/2*time.Second {
		t.Errorf("%d pods only after %s", replicas, took)
	}
}
