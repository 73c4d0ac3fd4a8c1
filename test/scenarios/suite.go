package scenarios

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/kube-kcm/kube-controller-manager/test/csi"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// suite is what the stories share: a control plane, a pretend kubelet and, for
// stories with the same setup, a manager.
type suite struct {
	t       testing.TB
	cp      *harness.ControlPlane
	kubelet *harness.Kubelet
	binary  string
	// strict also wants the manager to leave with code 0 after SIGTERM.
	strict bool

	typed   kubernetes.Interface
	dynamic dynamic.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper

	manager *harness.Manager
	key     string
	// metrics are the metrics APIs of a story that has any.
	metrics *harness.MetricsAPI
	// drivers are the CSI drivers of a story, by name.
	drivers map[string]*csi.Driver
	// stopped means that the manager was asked to end.
	stopped   bool
	care      harness.Care
	auditMark int64
	// judged is up to where the log of the manager was looked through.
	judged int64
	// proxy stands before the API server once a story has asked for it.
	proxy *harness.Proxy
}

func newSuite(t testing.TB, binary string, strict bool, apiServerFlags []string) *suite {
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{APIServerArgs: apiServerFlags})
	return newSuiteOn(t, cp, binary, strict)
}

func newSuiteOn(t testing.TB, cp *harness.ControlPlane, binary string, strict bool) *suite {
	s := &suite{t: t, cp: cp, kubelet: harness.StartKubelet(t, cp.Admin), binary: binary, strict: strict, drivers: map[string]*csi.Driver{}}
	var err error
	if s.typed, err = kubernetes.NewForConfig(cp.Admin); err != nil {
		t.Fatal(err)
	}
	if s.dynamic, err = dynamic.NewForConfig(cp.Admin); err != nil {
		t.Fatal(err)
	}
	s.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.typed.Discovery()))
	t.Cleanup(func() {
		if err := s.halt(); err != nil {
			t.Error(err)
		}
		if s.proxy != nil {
			s.proxy.Close()
		}
	})
	return s
}

// launch starts a manager; none may be running.
func (s *suite) launch(setup Setup) error {
	options := harness.ManagerOptions{Binary: s.binary, Args: setup.argsIn(s.cp.Dir)}
	if setup.Proxy {
		if err := s.startProxy(); err != nil {
			return err
		}
		options.Kubeconfig = s.proxy.Kubeconfig
	}
	var err error
	s.manager, err = s.cp.NewManager(options)
	if err != nil {
		s.manager = nil
		return err
	}
	s.key, s.stopped, s.judged = setup.key(), false, 0
	return nil
}

// halt ends the manager, if one runs, the way a kubelet would.
func (s *suite) halt() error {
	if s.manager == nil || s.stopped {
		return nil
	}
	s.stopped, s.key = true, ""
	if !s.manager.Process().Running() {
		return nil
	}
	if err := s.manager.Stop(); err != nil {
		return fmt.Errorf("stop the manager: %w\n%s", err, s.manager.LogTail(0, 20))
	}
	if code := s.manager.Process().ExitCode(); code != 0 && s.strict {
		lines := 20
		if code == raced {
			lines = 5000 // a race may have been long before the end
		}
		return fmt.Errorf("after SIGTERM the manager ended with code %d:\n%s", code, s.manager.LogTail(0, lines))
	}
	return nil
}

// prepare gives a story the manager that it wants at its beginning.
func (s *suite) prepare(story *Story) error {
	if err := s.writeHost(story); err != nil {
		return err
	}
	if !story.Private && s.key == story.Setup.key() && s.manager.Process().Running() {
		return nil
	}
	if err := s.halt(); err != nil {
		// The story before is at fault, or none in particular.
		s.t.Error(err)
	}
	if story.Private {
		s.manager = nil
		return nil
	}
	return s.launch(story.Setup)
}

// play runs one story and cleans up after it. It returns the number of writes
// that the controllers sent meanwhile.
func (s *suite) play(t testing.TB, story *Story) (writes int) {
	return s.playIn(t, story, namespaceName(story.Name), func(context.Context, *run) {})
}

// playIn names the story's namespace, and looks at what has become of the
// story before it is cleaned away.
func (s *suite) playIn(t testing.TB, story *Story, namespace string, look func(context.Context, *run)) (writes int) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if err := s.prepare(story); err != nil {
		t.Errorf("%s: %v", story.Path, err)
		return 0
	}
	r := &run{suite: s, t: t, story: story, namespace: namespace}
	if s.manager != nil {
		r.logMark = s.manager.LogMark()
	}
	s.care = harness.Care{On: true}
	if err := r.begin(ctx); err != nil {
		t.Errorf("%s: %v", story.Path, err)
	} else {
		r.play(ctx)
	}
	look(ctx, r)
	writes = r.judge()
	r.cleanUp(ctx)
	r.judgeLog()
	if story.Private {
		if err := s.halt(); err != nil {
			t.Error(err)
		}
	}
	// What cleaning up made the controllers do is nobody's fault.
	s.auditMark = s.cp.Audit.Mark()
	return writes
}

// begin makes the story's namespace.
func (r *run) begin(ctx context.Context) error {
	_, err := r.suite.typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create the story's namespace: %w", err)
	}
	r.suite.kubelet.Fallback(r.namespace, r.namespace+"-node")
	return r.adoptNamespace(ctx, r.namespace)
}

// adoptNamespace makes a namespace usable for pods. Admission wants its
// default service account, which its controller makes only where that runs.
func (r *run) adoptNamespace(ctx context.Context, name string) error {
	r.namespaces = append(r.namespaces, name)
	r.suite.kubelet.Tend(name, r.suite.care)
	if !r.story.Private && r.story.Setup.runs("serviceaccount-controller") {
		return r.until(ctx, patience, func() (bool, string, error) {
			_, err := r.suite.typed.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
			return err == nil, "", err
		})
	}
	_, err := r.suite.typed.CoreV1().ServiceAccounts(name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the default service account: %w", err)
	}
	return nil
}

// judge looks at what holds for every story: no request outside of a
// controller's role, no panic, no data race.
func (r *run) judge() (writes int) {
	told := sets.New[string]()
	for _, event := range r.suite.cp.Audit.Since(r.suite.auditMark) {
		if event.Write() {
			writes++
		}
		// A retry asks for the same again.
		if event.Forbidden() && !told.Has(event.String()) {
			told.Insert(event.String())
			r.t.Errorf("%s: a controller asked for what its role does not allow: %s", r.story.Path, event)
		}
	}
	r.judgeLog()
	return writes
}

// judgeLog looks through what the manager has logged since it was looked at last. The
// start of a manager and the cleaning up after a story count like the story itself.
func (r *run) judgeLog() {
	m := r.suite.manager
	if m == nil {
		return
	}
	from := r.suite.judged
	r.suite.judged = m.LogMark()
	if found := m.Misbehaviour(from); found != "" {
		r.t.Errorf("%s: the manager's log shows:\n%s", r.story.Path, indent(found))
	}
}

// namespaceName keeps the story's name recognizable and short enough to be
// part of other names.
func namespaceName(story string) string {
	if len(story) > 32 {
		story = strings.TrimRight(story[:32], "-")
	}
	return fmt.Sprintf("%s-%04x", story, rand.IntN(1<<16))
}

// raced is the exit code of the race detector.
const raced = 66
