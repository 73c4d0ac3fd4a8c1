package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

func leaseOf(holder string, renewed time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-controller-manager"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: ptr.To[int32](15), RenewTime: ptr.To(metav1.NewMicroTime(renewed))},
	}
}

// split is the lease of ours beside the original.
func split(lease *coordinationv1.Lease) *coordinationv1.Lease {
	lease.Name += "-split"
	return lease
}

func podOf(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name}}
}

func TestTheLeaderIsFoundByItsLease(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
		objects []runtime.Object
		o       options
		want    string // of the leader, or of the error
	}{
		"a static pod":           {[]runtime.Object{leaseOf("node-a_7", now), podOf("kube-controller-manager-node-a"), podOf("kube-controller-manager-node-b")}, options{}, "the leader, pod kube-system/kube-controller-manager-node-a"},
		"a pod of a Deployment":  {[]runtime.Object{leaseOf("kcm-5d8f-x2_7", now), podOf("kcm-5d8f-x2")}, options{}, "the leader, pod kube-system/kcm-5d8f-x2"},
		"a pod that is named":    {[]runtime.Object{leaseOf("node-a_7", now)}, options{pod: "mine"}, "the leader, pod kube-system/mine"},
		"a lease that is over":   {[]runtime.Object{leaseOf("node-a_7", now.Add(-75*time.Second)), podOf("kube-controller-manager-node-a")}, options{}, "pod kube-system/kube-controller-manager-node-a (its lease was over 1m"},
		"one side of a split":    {[]runtime.Object{split(leaseOf("node-a_7", now)), podOf("kube-controller-manager-node-a"), podOf("kube-controller-manager-split-node-a")}, options{lease: "kube-system/kube-controller-manager-split"}, "the leader, pod kube-system/kube-controller-manager-split-node-a"},
		"no lease":               {nil, options{}, `leases.coordination.k8s.io "kube-controller-manager" not found`},
		"another lease":          {[]runtime.Object{leaseOf("node-a_7", now)}, options{lease: "kube-system/kcm"}, `leases.coordination.k8s.io "kcm" not found`},
		"a bad lease":            {nil, options{lease: "kcm"}, `--lease is "kcm": it has to be NAMESPACE/NAME`},
		"nobody leads":           {[]runtime.Object{leaseOf("", now)}, options{}, "nobody leads: no process holds the lease kube-system/kube-controller-manager"},
		"no pod, a bare process": {[]runtime.Object{leaseOf("node-a_7", now)}, options{}, "the leader is node-a_7, and namespace kube-system has no pod kube-controller-manager-node-a or node-a: name its pod with --pod, or ask at its address with --server"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.o.lease == "" {
				tc.o.lease = "kube-system/kube-controller-manager"
			}
			found, err := tc.o.findLeader(t.Context(), fake.NewClientset(tc.objects...))
			got := found.String()
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, tc.want) {
				t.Errorf("got %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestATokenIsNotSentToAnUncheckedServer asks as through a tunnel, where the server has a
// certificate of its own making.
func TestATokenIsNotSentToAnUncheckedServer(t *testing.T) {
	var seen []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		seen = append(seen, req.Header.Get("Authorization"))
	}))
	defer server.Close()
	ask := func(o options, user *rest.Config) error {
		client, err := rest.HTTPClientFor(o.credentials(user, server.URL))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Get(server.URL)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	for name, config := range map[string]*rest.Config{
		"of the kubeconfig": {BearerToken: "secret"}, "of a file": {BearerTokenFile: "leader.go"}, "a password": {Username: "a", Password: "b"},
	} {
		if err := ask(options{}, config); !errors.Is(err, errTokenUnchecked) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := (&options{}).credentials(&rest.Config{Proxy: http.ProxyURL(&url.URL{Host: "bastion"})}, server.URL); got.Proxy != nil {
		t.Error("the way to the API server is taken to the manager")
	}
	if err := ask(options{token: "secret"}, nil); !errors.Is(err, errTokenUnchecked) {
		t.Errorf("of the command line: %v", err)
	}
	if len(seen) != 0 {
		t.Errorf("the server has seen %q", seen)
	}
	// It is sent to who asks for it, and without one nothing holds a question up.
	if err := ask(options{token: "secret", insecure: true}, nil); err != nil || len(seen) != 1 || seen[0] != "Bearer secret" {
		t.Errorf("%v, seen %q", err, seen)
	}
	if err := ask(options{}, &rest.Config{Impersonate: rest.ImpersonationConfig{UserName: "jane"}}); err != nil || len(seen) != 2 || seen[1] != "" {
		t.Errorf("%v, seen %q", err, seen)
	}
}
