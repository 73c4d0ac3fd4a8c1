package app

import (
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/informers"
	cloudprovider "k8s.io/cloud-provider"
	fakecloud "k8s.io/cloud-provider/fake"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
)

// pretendCloud is a cloud that counts what it is given.
type pretendCloud struct {
	fakecloud.Cloud
	untagged    bool
	initialized int
	informers   int
}

func (c *pretendCloud) HasClusterID() bool { return !c.untagged }

func (c *pretendCloud) Initialize(cloudprovider.ControllerClientBuilder, <-chan struct{}) {
	c.initialized++
}

func (c *pretendCloud) SetInformers(informers.SharedInformerFactory) { c.informers++ }

// theCloud is what the provider of these tests makes.
var theCloud *pretendCloud

func init() {
	cloudprovider.RegisterCloudProvider("app-test", func(io.Reader) (cloudprovider.Interface, error) { return theCloud, nil })
}

func TestAProviderIsOpenedBeforeTheLease(t *testing.T) {
	for name, tc := range map[string]struct {
		cloud    *pretendCloud
		provider string
		file     string
		cidr     string
		untagged bool // --allow-untagged-cloud
		noRoutes bool // --configure-cloud-routes=false
		flag     []string
		want     string // a part of the error
		none     bool   // no provider
	}{
		"no provider":                          {none: true},
		"an external provider":                 {provider: "external", file: "nothing", none: true},
		"a provider":                           {provider: "app-test", cidr: "10.244.0.0/16"},
		"a configuration that is not there":    {provider: "app-test", file: "nothing", want: "--cloud-config="},
		"a cluster without ID":                 {provider: "app-test", cidr: "10.244.0.0/16", cloud: &pretendCloud{untagged: true}, want: "no ClusterID found.  A ClusterID is required"},
		"a cluster that needs no ID":           {provider: "app-test", cidr: "10.244.0.0/16", cloud: &pretendCloud{untagged: true}, untagged: true},
		"routes without a cluster CIDR":        {provider: "app-test", want: "--cluster-cidr=: routes need the cluster CIDR"},
		"routes of a bad cluster CIDR":         {provider: "app-test", cidr: "10.244.0.0", want: "invalid CIDR[0]"},
		"routes that nobody wants":             {provider: "app-test", noRoutes: true},
		"routes that the cloud does not have":  {provider: "app-test", cloud: &pretendCloud{Cloud: fakecloud.Cloud{DisableRoutes: true}}},
		"routes whose controller is taken out": {provider: "app-test", flag: []string{"*", "-" + names.NodeRouteController}},
	} {
		t.Run(name, func(t *testing.T) {
			if theCloud = tc.cloud; theCloud == nil {
				theCloud = &pretendCloud{}
			}
			c := testConfig(t)
			if tc.flag != nil {
				c.ComponentConfig.Generic.Controllers = tc.flag
			}
			shared := &c.ComponentConfig.KubeCloudShared
			shared.CloudProvider.Name, shared.ClusterCIDR = tc.provider, tc.cidr
			shared.AllowUntaggedCloud, shared.ConfigureCloudRoutes = tc.untagged, ptr.To(!tc.noRoutes)
			if tc.file != "" {
				shared.CloudProvider.CloudConfigFile = filepath.Join(t.TempDir(), tc.file)
			}
			p := testProcess(t, c)
			err := p.openCloud(t.Context())
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if got := p.cloud == nil; got != (tc.none || tc.want != "") {
				t.Errorf("provider: %v", p.cloud)
			}
		})
	}
}

// TestTheLoopsOfACloudStartAndStop starts them against an API server that has nothing.
func TestTheLoopsOfACloudStartAndStop(t *testing.T) {
	loops := []string{names.CloudNodeLifecycleController, names.NodeRouteController, names.ServiceLBController}
	for name, tc := range map[string]struct {
		cloud    *pretendCloud
		noRoutes bool
		skipped  map[string]string
	}{
		"all": {cloud: &pretendCloud{}},
		"of a cloud that has nothing": {
			cloud: &pretendCloud{Cloud: fakecloud.Cloud{DisableInstances: true, DisableLoadBalancers: true, DisableRoutes: true}},
			skipped: map[string]string{loops[0]: `cloud provider "fake": instances: the cloud provider does not support it`,
				loops[1]: `cloud provider "fake": routes: the cloud provider does not support it`, loops[2]: `cloud provider "fake": load balancers: the cloud provider does not support it`},
		},
		"without routes": {cloud: &pretendCloud{}, noRoutes: true, skipped: map[string]string{loops[1]: "--configure-cloud-routes is false"}},
		"none without a provider": {skipped: map[string]string{loops[0]: "it belongs to a cloud controller manager",
			loops[1]: "it belongs to a cloud controller manager", loops[2]: "it belongs to a cloud controller manager"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newAPIServer(t).config(t)
			c.ComponentConfig.Generic.Controllers = loops
			shared := &c.ComponentConfig.KubeCloudShared
			shared.ClusterCIDR, shared.ConfigureCloudRoutes = "10.244.0.0/16", ptr.To(!tc.noRoutes)
			c.ComponentConfig.ServiceController.ConcurrentServiceSyncs = 1
			p := testProcess(t, c)
			if tc.cloud != nil {
				p.cloud = tc.cloud
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			cc, err := newControllerContext(ctx, p, strings.ReplaceAll(t.Name(), "/", "-"), nil)
			defer cc.close()
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // as the terms of leader migration do
				if err := StartControllers(ctx, cc, nil, nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := StartControllers(ctx, cc, nil, NewControllerInitializers()); err != nil {
				t.Fatal(err)
			}
			cc.startCaches(ctx)
			for _, name := range loops {
				want := debug.Controller{Name: name, State: debug.Started}
				if why, ok := tc.skipped[name]; ok {
					want.State, want.Why = debug.Skipped, why
				}
				if got := stateOf(cc, name); got != want {
					t.Errorf("got %v, want %v", got, want)
				}
			}
			if tc.cloud != nil && (tc.cloud.initialized != 1 || tc.cloud.informers != 1) {
				t.Errorf("initialized %d times, got caches %d times", tc.cloud.initialized, tc.cloud.informers)
			}
			stop()
			if err := cc.drain(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	for _, c := range Controllers() {
		if c.Cloud != slices.Contains(loops, c.Name) {
			t.Errorf("%s is of the cloud: %t", c.Name, c.Cloud)
		}
	}
}
