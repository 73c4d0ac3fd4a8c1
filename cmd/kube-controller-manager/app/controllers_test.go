package app

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/controller-manager/pkg/clientbuilder"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
	"github.com/kube-kcm/kube-controller-manager/pkg/why"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
)

// everythingServed is what the wired controllers ask for beyond the core group.
var everythingServed = map[string][]string{
	"apps/v1":                {"controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"},
	"autoscaling/v2":         {"horizontalpodautoscalers"},
	"certificates.k8s.io/v1": {"certificatesigningrequests"},
	"coordination.k8s.io/v1": {"leases"},
	"discovery.k8s.io/v1":    {"endpointslices"},
	"policy/v1":              {"poddisruptionbudgets"},

	"admissionregistration.k8s.io/v1": {"validatingadmissionpolicies"},
	"networking.k8s.io/v1":            {"ipaddresses", "servicecidrs"},
	"storage.k8s.io/v1":               {"csidrivers", "csinodes", "storageclasses", "volumeattachments", "volumeattributesclasses"},

	"batch/v1": {"cronjobs", "jobs"},

	"resource.k8s.io/v1": {"resourceclaims", "resourceclaimtemplates", "resourceslices"},
}

// wireUp starts all controllers against an API server that serves these
// resources, without their caches, and returns their states.
func wireUp(t *testing.T, served map[string][]string) map[string]debug.Controller {
	t.Helper()
	server := newAPIServer(t)
	server.served = served
	c := server.config(t)
	c.ComponentConfig.Generic.Controllers = append(names.DisabledByDefault(), "*")
	c.ComponentConfig.KubeCloudShared.AllocateNodeCIDRs, c.ComponentConfig.KubeCloudShared.ClusterCIDR = true, "10.244.0.0/16"
	key, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	c.ComponentConfig.SAController.ServiceAccountKeyFile = filepath.Join(t.TempDir(), "sa.key")
	if err := os.WriteFile(c.ComponentConfig.SAController.ServiceAccountKeyFile, key, 0o600); err != nil {
		t.Fatal(err)
	}
	signWithOwnCA(t, &c.ComponentConfig.CSRSigningController)
	ctx, stop := context.WithCancel(t.Context())
	cc, err := newControllerContext(ctx, testProcess(t, c), t.Name(), nil)
	defer cc.close()
	if err != nil {
		t.Fatal(err)
	}
	err = StartControllers(ctx, cc, row(names.ServiceAccountTokenController).start, NewControllerInitializers())
	for name, loops := range cc.term.loops {
		for _, loop := range loops {
			if loop.Name() != name {
				t.Errorf("the loop of %s is called %s", name, loop.Name())
			}
			if _, ok := loop.(looksLive); !ok {
				t.Errorf("the writes of %s cannot be looked at live", name)
			}
			if _, handler := cc.Debug().Find(name); !remembers(handler) {
				t.Errorf("what %s remembers of a key cannot be asked", name)
			}
		}
	}
	stop()
	if drained := cc.drain(ctx); err != nil || drained != nil {
		t.Fatalf("start: %v, stop: %v", err, drained)
	}
	states := map[string]debug.Controller{}
	for _, state := range cc.Debug().List() {
		states[state.Name] = state
	}
	return states
}

func TestTheTableHasARowForEachName(t *testing.T) {
	var got []string
	for _, c := range Controllers() {
		got = append(got, c.Name)
	}
	slices.Sort(got)
	if diff := cmp.Diff(names.All(), got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

func TestEveryRowIsAKnownControllerThatStarts(t *testing.T) {
	states := wireUp(t, everythingServed)
	cloud := []string{names.CloudNodeLifecycleController, names.NodeRouteController, names.ServiceLBController}
	for name := range NewControllerInitializers() {
		want := debug.Started
		if slices.Contains(cloud, name) || slices.Contains(offByDefault, name) {
			want = debug.Skipped
		}
		if states[name].State != want {
			t.Errorf("got %v, want %s", states[name], want)
		}
	}
	if got := states[names.ServiceAccountTokenController].State; got != debug.Started {
		t.Errorf("the token controller is %s", got)
	}
}

func TestAControllerWithoutItsAPIIsLeftOutAlone(t *testing.T) {
	states := wireUp(t, map[string][]string{"apps/v1": {"replicasets"}, "coordination.k8s.io/v1": {"leases"}})
	for name, resource := range map[string]string{names.DeploymentController: "deployments", names.EndpointSliceController: "endpointslices"} {
		if got := states[name]; got.State != debug.Skipped || !strings.Contains(got.Why, resource) {
			t.Errorf("got %v", got)
		}
	}
	if got := states[names.ReplicaSetController].State; got != debug.Started {
		t.Errorf("the replica set controller is %s", got)
	}
}

func TestNodeIPAMMaySendTenTimesAsMuch(t *testing.T) {
	for name, times := range map[string]float32{names.NodeIpamController: 10, names.TTLController: 1} {
		t.Run(name, func(t *testing.T) {
			cc := testContext(t)
			cc.process.rates = transport.NewRates(20, 30)
			cc.Clients = clientbuilder.SimpleControllerClientBuilder{ClientConfig: &rest.Config{QPS: 20, Burst: 30}}
			config, err := cc.configOf(row(name))
			if err != nil {
				t.Fatal(err)
			}
			if got := config.RateLimiter.QPS(); got != 20*times {
				t.Errorf("%v requests a second", got)
			}
			for i := range int(30 * times) {
				if !config.RateLimiter.TryAccept() {
					t.Fatalf("%d requests at once", i)
				}
			}
		})
	}
}

func remembers(handler http.Handler) bool {
	_, ok := handler.(why.Loop)
	return ok
}
