package app

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/controller-manager/pkg/clientbuilder"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/options"
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// sentTo is an API server that notes what is asked of it, and a term that is paused.
type sentTo struct {
	mu   sync.Mutex
	sent []string
}

func (s *sentTo) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, req.Method+" "+req.URL.Path)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, "{}")
}

func (s *sentTo) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := strings.Join(s.sent, ", ")
	s.sent = nil
	return all
}

// pausedTerm has these controllers paused, and these namespaces.
func pausedTerm(t *testing.T, paused ...string) (ControllerContext, *sentTo) {
	t.Helper()
	server := &sentTo{}
	listener := httptest.NewServer(server)
	t.Cleanup(listener.Close)
	p := testProcess(t, testConfig(t))
	p.Kubeconfig = &rest.Config{Host: listener.URL}
	client, err := kubernetes.NewForConfig(p.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	p.Client = client
	root := clientbuilder.SimpleControllerClientBuilder{ClientConfig: p.Kubeconfig}
	cc := ControllerContext{Config: options.DefaultComponentConfig(), process: p, Clients: root, RootClients: root, limits: &act.Limits{}, term: newRunning(0)}
	cc.limits.Pause(func(controller, namespace string) string {
		for _, name := range paused {
			if name == controller || name == namespace && name != "" {
				return name + " is paused"
			}
		}
		return ""
	})
	return cc, server
}

func TestNoTokenIsAskedForWhileAllOfAnAccountArePaused(t *testing.T) {
	nodes := []string{names.NodeLifecycleController, names.NodeIpamController, names.TaintEvictionController, names.CloudNodeLifecycleController}
	for name, tc := range map[string]struct {
		paused  []string
		account string
		asked   bool
	}{
		"nothing is paused":               {nil, "job-controller", true},
		"its controller is paused":        {[]string{names.JobController}, "job-controller", false},
		"another controller is paused":    {[]string{names.CronJobController}, "job-controller", true},
		"one of several is paused":        {nodes[:1], "node-controller", true},
		"all of several are paused":       {nodes, "node-controller", false},
		"its namespace is paused":         {[]string{metav1.NamespaceSystem}, "job-controller", true},
		"nobody is known to have the one": {nodes, "shared-informers", true},
	} {
		t.Run(name, func(t *testing.T) {
			cc, server := pausedTerm(t, tc.paused...)
			core, err := cc.accounts()
			if err != nil {
				t.Fatal(err)
			}
			accounts := core.ServiceAccounts(metav1.NamespaceSystem)
			if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: tc.account}}, metav1.CreateOptions{}); err != nil || server.all() == "" {
				t.Errorf("the account cannot be made: %v", err)
			}
			_, err = accounts.CreateToken(t.Context(), tc.account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
			if asked := server.all() != ""; asked != tc.asked || asked != (consistency.WasWithheld(err) == nil) {
				t.Errorf("asked %t: %v", asked, err)
			}
		})
	}
}

// TestEveryControllerIsHeldBack has each row make its clients, and a cloud make its own.
func TestEveryControllerIsHeldBack(t *testing.T) {
	write := func(config *rest.Config, err error) error {
		if err != nil {
			return err
		}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		_, err = client.CoreV1().Pods("shop").Create(context.Background(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
		return err
	}
	for _, row := range Controllers() {
		cc, server := pausedTerm(t, row.Name)
		if err := write(cc.configOf(row)); consistency.WasWithheld(err) == nil || server.all() != "" {
			t.Errorf("%s writes although it is paused: %v", row.Name, err)
		}
		if hand, err := cc.handFor(t.Context(), row); err != nil || hand.Limits != cc.limits {
			t.Errorf("the hand of %s is not held: %v", row.Name, err)
		}
		other, server := pausedTerm(t, "nobody")
		if err := write(other.configOf(row)); err != nil || server.all() == "" {
			t.Errorf("%s cannot write although it is not paused: %v", row.Name, err)
		}
	}
	cc, server := pausedTerm(t, "shop")
	builder := cc.cloudClients()
	client, err := builder.Client("cloud")
	if err != nil {
		t.Fatal(err)
	}
	for _, client := range []kubernetes.Interface{client, builder.ClientOrDie("cloud")} {
		err := client.CoreV1().Pods("shop").Delete(t.Context(), "a", metav1.DeleteOptions{})
		if consistency.WasWithheld(err) == nil || server.all() != "" {
			t.Errorf("a cloud writes into a namespace that is paused: %v", err)
		}
	}
	if err := client.CoreV1().Pods("bank").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Errorf("a cloud cannot write into another: %v", err)
	}
}

// Caches may be read as CBOR, which nobody here encodes.
func TestNobodyWritesCBOR(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, featuregate.Feature(clientfeatures.ClientsAllowCBOR), true)
	cc, server := pausedTerm(t, "nobody")
	cc.process.Kubeconfig.ContentType = kruntime.ContentTypeCBOR
	hand, err := cc.handFor(t.Context(), Controller{Name: names.ReplicaSetController, Account: "replicaset-controller"})
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}}
	if err := hand.Client.Delete(t.Context(), pod); err != nil || server.all() == "" {
		t.Errorf("a deletion is not sent: %v", err)
	}
}

// heeding is a loop that obeys a pause.
type heeding struct {
	pretendLoop
	controller string
	pause      runner.Pause
}

func (h *heeding) Heed(controller string, pause runner.Pause) {
	h.controller, h.pause = controller, pause
}

func TestLoopsHeedThePauseOfTheirController(t *testing.T) {
	cc, _ := pausedTerm(t)
	ctx, stop := context.WithCancel(t.Context())
	loop := &heeding{}
	cc.name = names.JobController
	cc.Go(ctx, loop)
	stop()
	if loop.controller != names.JobController || loop.pause != cc.limits {
		t.Errorf("the loop heeds %q", loop.controller)
	}
	cc.term.wait(deadline)
	cc.limits, loop = nil, &heeding{}
	cc.Go(ctx, loop)
	if loop.pause != nil {
		t.Error("without the flag the loop heeds a pause")
	}
	cc.term.wait(deadline)
}
