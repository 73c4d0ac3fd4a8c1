package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// world is one cluster, the binary on it and what is written down about it.
type world struct {
	*harness.Kwok
	bench  *bench
	result *report.Run
	sizes  map[string]int
	// name is that of the binary in the report, binary its path.
	name, binary string
	args         []string

	watches informers.SharedInformerFactory
	// watching ends with the run, before the cluster does.
	watching context.Context
	started  []*harness.KwokManager
	stop     func()
	samples  sync.WaitGroup

	mu      sync.Mutex
	manager *harness.KwokManager
	// first is the beginning of the first step, with what had been used by then.
	first     time.Time
	firstMark int64
	before    harness.Usage
}

// namespace is where the load goes.
const namespace = "bench"

// load is a client without limits; the machine has better to do than to encode JSON.
func (w *world) load() kubernetes.Interface {
	config := rest.CopyConfig(w.Config)
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	return kubernetes.NewForConfigOrDie(config)
}

// begin starts the binary and prepares nodes and a namespace that is ready for
// pods. After it, the steps can start.
func (w *world) begin(ctx context.Context, nodes int) error {
	w.watch(ctx)
	if err := w.start(ctx, "--leader-elect=false"); err != nil {
		return err
	}
	if err := w.AddNodes(ctx, nodes); err != nil {
		return err
	}
	if err := w.newNamespace(ctx, namespace); err != nil {
		return err
	}
	return pause(ctx, 2*time.Second)
}

func (w *world) watch(ctx context.Context) {
	w.watching, w.stop = context.WithCancel(ctx)
	w.watches = informers.NewSharedInformerFactory(w.load(), 0)
	w.samples.Go(func() { w.sample(w.watching) })
}

// start runs the binary; it becomes the one that is measured.
func (w *world) start(ctx context.Context, args ...string) error {
	m, err := w.startAnother(args...)
	if err != nil {
		return err
	}
	w.measure(m)
	return healthy(ctx, m)
}

func (w *world) startAnother(args ...string) (*harness.KwokManager, error) {
	m, err := w.StartManager(w.binary, append(append([]string{}, w.args...), args...)...)
	if err == nil {
		w.started = append(w.started, m)
	}
	return m, err
}

func healthy(ctx context.Context, m *harness.KwokManager) error {
	return harness.WaitFor(ctx, time.Minute, func(ctx context.Context) error {
		if !m.Running() {
			return fmt.Errorf("the controller manager has ended with code %d", m.ExitCode())
		}
		_, err := m.Get(ctx, "/healthz")
		return err
	})
}

func (w *world) measure(m *harness.KwokManager) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.manager = m
}

func (w *world) measured() *harness.KwokManager {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.manager
}

// newNamespace makes a namespace and waits until pods can be created in it.
func (w *world) newNamespace(ctx context.Context, name string) error {
	if err := w.addNamespace(ctx, name); err != nil {
		return err
	}
	return harness.WaitFor(ctx, time.Minute, func(ctx context.Context) error {
		_, err := w.Client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func (w *world) addNamespace(ctx context.Context, name string) error {
	_, err := w.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create namespace %s: %w", name, err)
	}
	return nil
}

// lastWords is the end of the log of the measured process.
func (w *world) lastWords() string {
	m := w.measured()
	if m == nil {
		return ""
	}
	return "\nthe controller manager's log ends:\n" + harness.Tail(m.Log, 0, 15)
}

func (w *world) end() {
	if w.stop != nil {
		w.stop()
		w.samples.Wait()
		w.watches.Shutdown()
	}
	for _, m := range w.started {
		m.Kill()
	}
}

func (w *world) say(format string, args ...any) {
	w.bench.say("  %s: %s", w.name, fmt.Sprintf(format, args...))
}

// pause waits, but not longer than the context.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
