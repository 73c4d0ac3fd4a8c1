package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// TestDeleteBrake counts in the audit log what is deleted, by the garbage collector one by
// one and by the namespace controller as collections, in two processes one after the other.
func TestDeleteBrake(t *testing.T) {
	t.Parallel()
	const (
		perMinute = 120
		garbage   = 60
	)
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client := clientOf(t, cp)
	m := cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: []string{
		"--controllers=garbage-collector-controller,namespace-controller,serviceaccount-controller", fmt.Sprintf("--max-deletes-per-minute=%d,secrets=60", perMinute)}})
	mark := cp.Audit.Mark()
	acts(t, client, "shop", patient)
	acts(t, client, "bank", patient)
	for n := range garbage {
		if _, err := configMap(t.Context(), client, "shop", fmt.Sprintf("garbage-%d", n), ownedBy("owner", "no-such-owner", false)); err != nil {
			t.Fatal(err)
		}
		if _, err := configMap(t.Context(), client, "bank", fmt.Sprintf("kept-%d", n)); err != nil {
			t.Fatal(err)
		}
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("kept-%d", n)}}
		if _, err := client.CoreV1().Secrets("bank").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	d := deletions{T: t, client: client, left: map[string]int{}}
	d.look()
	if err := client.CoreV1().Namespaces().Delete(t.Context(), "bank", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	d.until(func() bool { return d.gone >= garbage })
	shown(t, m, "/metrics", `kcm_deletes_held_total{rate="all"}`, `kcm_deletes_held_total{rate="secrets"}`)
	shown(t, m, "/debug/why?kind=namespace&name=bank", "deletions are held back: no more than")
	told(t, client, "DeleteBrakeApplied")
	if err := m.Stop(); err != nil { // what may be deleted is not saved up for another process
		t.Fatal(err)
	}
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	d.until(func() bool { return d.left["shop"]+d.left["bank"] == 0 })
	harness.Eventually(t, patient, func(ctx context.Context) error {
		_, err := client.CoreV1().Namespaces().Get(ctx, "bank", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the namespace is still there: %v", err)
	})
	requests := 0
	for _, event := range cp.Audit.Since(mark) {
		if strings.HasPrefix(event.Verb, "delete") {
			requests++
		}
	}
	most := d.mostInAMinute()
	t.Logf("%d objects went in the fullest minute, %d may; %d requests to delete", most, perMinute, requests)
	if most > perMinute || requests < garbage {
		t.Error("that is too many, or there was nothing to delete")
	}
}

// deletions follows what there is, and when it went.
type deletions struct {
	*testing.T
	client kubernetes.Interface
	left   map[string]int
	gone   int
	at     []time.Time
}

func (d *deletions) look() {
	d.Helper()
	for _, space := range []string{"shop", "bank"} {
		maps, err := d.client.CoreV1().ConfigMaps(space).List(d.Context(), metav1.ListOptions{})
		if err != nil {
			d.Fatal(err)
		}
		secrets, err := d.client.CoreV1().Secrets(space).List(d.Context(), metav1.ListOptions{})
		if err != nil {
			d.Fatal(err)
		}
		now := len(maps.Items) + len(secrets.Items)
		for range d.left[space] - now {
			d.gone++
			d.at = append(d.at, time.Now())
		}
		d.left[space] = now
	}
}

func (d *deletions) until(holds func() bool) {
	d.Helper()
	harness.Eventually(d, 5*time.Minute, func(context.Context) error {
		d.look()
		if holds() {
			return nil
		}
		return fmt.Errorf("%d are gone, and left are %v", d.gone, d.left)
	})
}

// mostInAMinute is how many objects went in the minute in which most did, as far as could
// be seen: the looks are a moment apart, so it is of some seconds less.
func (d *deletions) mostInAMinute() (most int) {
	from := 0
	for to, at := range d.at {
		for at.Sub(d.at[from]) >= 58*time.Second {
			from++
		}
		most = max(most, to-from+1)
	}
	return most
}

func shown(t *testing.T, m *harness.Manager, path string, words ...string) {
	t.Helper()
	harness.Eventually(t, patient, func(context.Context) error {
		code, body, err := m.GetAsAdmin(path)
		for _, w := range words {
			if err != nil || !strings.Contains(body, w) {
				return fmt.Errorf("%s (%d, %v) does not say %s: %s", path, code, err, w, body)
			}
		}
		return nil
	})
}

// told waits for an event on the lease of the leader.
func told(t *testing.T, client kubernetes.Interface, reason string) {
	t.Helper()
	harness.Eventually(t, patient, func(ctx context.Context) error {
		events, err := client.CoreV1().Events("kube-system").List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=kube-controller-manager,reason=" + reason})
		if err == nil && len(events.Items) == 0 {
			err = fmt.Errorf("no event %s", reason)
		}
		return err
	})
}
