package integration

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// distant returns an address from which all that is sent reaches the target, and
// all that is answered comes back, as much later as delay says of each connection.
func distant(t testing.TB, target string, delay func() time.Duration) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil {
				_ = near.Close()
				continue
			}
			each := delay()
			go carry(far, near, each)
			go carry(near, far, each)
		}
	}()
	return listener.Addr().String()
}

// carry copies what it reads that much later, and closes both ends at the end.
func carry(to io.WriteCloser, from io.ReadCloser, delay time.Duration) {
	type piece struct {
		data []byte
		due  time.Time
	}
	pieces := make(chan piece, 1<<16)
	go func() {
		defer close(pieces)
		for {
			buffer := make([]byte, 32<<10)
			n, err := from.Read(buffer)
			if n > 0 {
				pieces <- piece{buffer[:n], time.Now().Add(delay)}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range pieces {
		<-time.After(time.Until(p.due))
		if _, err := to.Write(p.data); err != nil {
			break
		}
	}
	_, _ = to.Close(), from.Close()
	for range pieces {
		continue
	}
}

// TestABurstDoesNotExceedTheQuota asks for far more than the limit for some seconds,
// and until as many as that were made, while objects go and creations fail, through a
// manager that is some 300 ms away, some watches less and some more: without HTTP/2
// each has a connection.
func TestABurstDoesNotExceedTheQuota(t *testing.T) {
	const limit, askers, least, longest = 40, 8, 3 * time.Second, time.Minute
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client := clientOf(t, cp)
	server, err := url.Parse(cp.Admin.Host)
	if err != nil {
		t.Fatal(err)
	}
	config, err := os.ReadFile(cp.ManagerKubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	far := filepath.Join(t.TempDir(), "distant.kubeconfig")
	text := strings.ReplaceAll(string(config), server.Host, distant(t, server.Host, func() time.Duration {
		return 50*time.Millisecond + rand.N(500*time.Millisecond)
	}))
	if err := os.WriteFile(far, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GODEBUG", "http2client=0")
	cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Kubeconfig: far,
		Args: []string{"--controllers=resourcequota-controller,serviceaccount-controller", "--resource-quota-sync-period=5s"}})
	acts(t, client, "team", 2*patient)
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
		corev1.ResourceConfigMaps: *resource.NewQuantity(limit, resource.DecimalSI)}}}
	if _, err := client.CoreV1().ResourceQuotas("team").Create(t.Context(), q, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	uses(t, client, "team", corev1.ResourceConfigMaps, listed(t, client))

	ctx, over := context.WithTimeout(t.Context(), longest)
	defer over()
	began := time.Now()
	most := watchMost(ctx, client)
	var made, refused, failed, removed atomic.Int64
	var all sync.WaitGroup
	for asker := range askers {
		own := kubernetes.NewForConfigOrDie(rest.AddUserAgent(cp.Admin, fmt.Sprint("asker-", asker))).CoreV1().ConfigMaps("team")
		all.Go(func() {
			tick := time.NewTicker(25 * time.Millisecond)
			defer tick.Stop()
			name := ""
			for i := 0; ctx.Err() == nil; i++ {
				if i%10 != 9 { // otherwise it is charged, and then it exists already
					name = fmt.Sprintf("c-%d-%d", asker, i)
				}
				_, err := own.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
				switch {
				case err == nil:
					made.Add(1)
				case apierrors.IsForbidden(err):
					refused.Add(1)
				default:
					failed.Add(1)
				}
				if err == nil && i%2 == 1 && own.Delete(ctx, name, metav1.DeleteOptions{}) == nil {
					removed.Add(1)
				}
				if made.Load() >= limit && time.Since(began) >= least {
					over()
				}
				<-tick.C
			}
		})
	}
	all.Wait()
	top := <-most
	t.Logf("%d made, %d removed, %d refused, %d failed otherwise, %d at most", made.Load(), removed.Load(), refused.Load(), failed.Load(), top)
	if top > limit {
		t.Errorf("there were %d, with a limit of %d", top, limit)
	}
	if made.Load() < limit {
		t.Errorf("only %d were made", made.Load())
	}
	uses(t, client, "team", corev1.ResourceConfigMaps, listed(t, client))
}

func listed(t testing.TB, client kubernetes.Interface) int64 {
	t.Helper()
	list, err := client.CoreV1().ConfigMaps("team").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return int64(len(list.Items))
}

// watchMost counts until the context ends, and then tells the most there ever were.
func watchMost(ctx context.Context, client kubernetes.Interface) <-chan int {
	most := make(chan int, 1)
	go func() {
		top := 0
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			<-tick.C
			if list, err := client.CoreV1().ConfigMaps("team").List(ctx, metav1.ListOptions{}); err == nil {
				top = max(top, len(list.Items))
			}
		}
		most <- top
	}()
	return most
}
