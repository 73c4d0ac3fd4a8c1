package options

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

const (
	recyclerPod = `apiVersion: v1
kind: Pod
metadata: {name: recycler}
spec:
  containers: [{name: scrub, image: scrub}]
  volumes: [{name: vol, nfs: {server: s, path: /}}]
`
	volumelessPod = `apiVersion: v1
kind: Pod
metadata: {name: recycler}
spec:
  containers: [{name: scrub, image: scrub}]
`
	service = `apiVersion: v1
kind: Service
metadata: {name: s}
`
)

func TestValidation(t *testing.T) {
	dir := sampleFiles(t)
	t.Chdir(dir)
	for name, content := range map[string]string{
		"recycler.yaml": recyclerPod, "volumeless.yaml": volumelessPod, "service.yaml": service,
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	chain, err := os.ReadFile("ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("chain.crt", append(chain, chain...), 0o600); err != nil {
		t.Fatal(err)
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("ed25519.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	migration := "apiVersion: controllermanager.config.k8s.io/v1beta1\nkind: LeaderMigrationConfiguration\nleaderName: m\nresourceLock: endpoints\ncontrollerLeaders:\n- {name: route, component: '*'}\n"
	if err := os.WriteFile("migration.yaml", []byte(migration), 0o600); err != nil {
		t.Fatal(err)
	}
	// An empty message means that the command line is accepted.
	for name, tc := range map[string]struct{ line, message string }{
		"nothing but a kubeconfig is enough": {"", ""},
		"an alias disables its controller, and its flags are not looked into": {
			"--allocate-node-cidrs --controllers=*,-nodeipam", ""},
		"a file for a disabled controller is not read": {
			"--controllers=ttl-controller --root-ca-file=/nonexistent --cluster-signing-cert-file=/nonexistent --cluster-signing-key-file=/nonexistent --pv-recycler-pod-template-filepath-nfs=/nonexistent", ""},
		"the token controller runs whatever --controllers says, with its key": {
			"--controllers=*,-serviceaccount-token-controller --service-account-private-key-file=/nonexistent", "--service-account-private-key-file=/nonexistent"},
		"and with the root CA": {
			"--controllers=ttl-controller --service-account-private-key-file=other.key --root-ca-file=/nonexistent", "--root-ca-file=/nonexistent"},
		"without a key it does not run": {
			"--controllers=serviceaccount-token-controller --root-ca-file=/nonexistent", ""},
		"the root CA is published": {
			"--controllers=root-ca-certificate-publisher-controller --root-ca-file=/nonexistent", "--root-ca-file=/nonexistent"},
		"and, behind a gate, as a trust bundle": {
			"--controllers=kube-apiserver-serving-clustertrustbundle-publisher-controller --feature-gates=ClusterTrustBundle=true --root-ca-file=/nonexistent", "--root-ca-file=/nonexistent"},
		"which is off": {
			"--controllers=kube-apiserver-serving-clustertrustbundle-publisher-controller --root-ca-file=/nonexistent", ""},
		"the lock of a leader migration can only be a lease": {
			"--enable-leader-migration --leader-migration-config=migration.yaml", `--leader-migration-config=migration.yaml: resourceLock: "endpoints": must be "leases"`},
		"a dual-stack pair of cluster CIDRs with a mask for each family": {
			"--allocate-node-cidrs --cluster-cidr=10.244.0.0/16,fd00::/48 --node-cidr-mask-size-ipv4=26 --node-cidr-mask-size-ipv6=60 --service-cluster-ip-range=fd01::/112,10.0.0.0/24", ""},
		"the mask of a family also counts in a cluster of that family alone": {
			"--allocate-node-cidrs --cluster-cidr=10.244.0.0/16 --node-cidr-mask-size-ipv4=26", ""},
		"a mask of a family beside the one for all": {
			"--allocate-node-cidrs --cluster-cidr=10.244.0.0/16 --node-cidr-mask-size=24 --node-cidr-mask-size-ipv4=24",
			"--node-cidr-mask-size=24 --node-cidr-mask-size-ipv4=24: usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if --node-cidr-mask-size is set"},
		"a mask of the other family beside the one for all": {
			"--allocate-node-cidrs --cluster-cidr=10.244.0.0/16 --node-cidr-mask-size=24 --node-cidr-mask-size-ipv6=64",
			"--node-cidr-mask-size=24 --node-cidr-mask-size-ipv6=64: usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if --node-cidr-mask-size is set"},
		"a negative mask size": {
			"--allocate-node-cidrs --cluster-cidr=10.244.0.0/16 --node-cidr-mask-size=-1", "--node-cidr-mask-size=-1: the mask size of an IPv4 CIDR must be between 0 and 32"},
		"a cluster CIDR narrower than the usual mask": {
			"--allocate-node-cidrs --cluster-cidr=10.244.0.0/28", "--cluster-cidr=10.244.0.0/28 --node-cidr-mask-size-ipv4=24: Controller: Invalid --cluster-cidr"},
		"CIDRs are ignored where none are allocated": {
			"--cluster-cidr=abc --service-cluster-ip-range=abc", ""},
		"a key and its certificate sign for everyone": {
			"--cluster-signing-cert-file=ca.crt --cluster-signing-key-file=ca.key", ""},
		"a key and its certificate sign for one signer": {
			"--cluster-signing-legacy-unknown-cert-file=ca.crt --cluster-signing-legacy-unknown-key-file=ca.key", ""},
		"a key without its certificate": {
			"--cluster-signing-kubelet-serving-key-file=ca.key", `"cluster-signing-kubelet-serving": cannot specify key without cert, got the key "ca.key"`},
		"a key of another certificate signs for nobody": {
			"--cluster-signing-kubelet-client-cert-file=ca.crt --cluster-signing-kubelet-client-key-file=other.key",
			`--cluster-signing-kubelet-client-cert-file=ca.crt --cluster-signing-kubelet-client-key-file=other.key: error reading CA cert file "ca.crt"`},
		"a chain is no authority": {
			"--cluster-signing-cert-file=chain.crt --cluster-signing-key-file=ca.key",
			`--cluster-signing-cert-file=chain.crt --cluster-signing-key-file=ca.key: error reading CA cert file "chain.crt": expected 1 certificate, found 2`},
		"an Ed25519 key signs none": {
			"--service-account-private-key-file=ed25519.key", "--service-account-private-key-file=ed25519.key: error reading key for service account token controller: ed25519.key holds a key that cannot sign tokens"},
		"an ECDSA key signs tokens":    {"--service-account-private-key-file=other.key", ""},
		"a CA bundle is a root CA":     {"--root-ca-file=ca.crt", ""},
		"a pod with volumes recycles":  {"--pv-recycler-pod-template-filepath-nfs=recycler.yaml", ""},
		"a pod without volumes cannot": {"--pv-recycler-pod-template-filepath-nfs=volumeless.yaml", "pod specification (volumeless.yaml): does not contain any volume(s)"},
		"something else cannot":        {"--pv-recycler-pod-template-filepath-hostpath=service.yaml", "failed decoding file: it holds a *v1.Service, not a Pod"},
		"an empty file cannot":         {"--pv-recycler-pod-template-filepath-hostpath=empty.crt", "file was empty: empty.crt"},
		"times of an election that is not held are not looked at": {
			"--leader-elect=false --leader-elect-lease-duration=1s --leader-elect-resource-lock=x --leader-elect-resource-name=", ""},
		"a lease of less than a second cannot be written": {
			"--leader-elect-lease-duration=900ms --leader-elect-renew-deadline=500ms --leader-elect-retry-period=100ms", "--leader-elect-lease-duration=900ms: leaseDuration must be at least one second"},
		"the renew deadline leaves room for a retry with its jitter": {
			"--leader-elect-renew-deadline=2400ms", "renewDeadline must be greater than retryPeriod*JitterFactor"},
		"and a little more is enough":                    {"--leader-elect-renew-deadline=2401ms", ""},
		"without a port its files are not looked at":     {"--secure-port=0 --tls-cert-file=/nonexistent --client-ca-file=/nonexistent --authentication-kubeconfig=/nonexistent", ""},
		"a certificate and its key serve":                {"--tls-cert-file=admin.crt --tls-private-key-file=admin.key --tls-sni-cert-key=ca.crt,ca.key:a.example", ""},
		"a certificate for a name needs its key":         {"--tls-sni-cert-key=ca.crt,other.key", "--tls-sni-cert-key=ca.crt,other.key: failed to load SNI cert and key"},
		"a weak cipher will do where HTTP/2 is off":      {"--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA --disable-http2-serving", ""},
		"one cipher that HTTP/2 needs is enough":         {"--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_RC4_128_SHA", ""},
		"a curve twice":                                  {"--tls-curve-preferences=29,29", "--tls-curve-preferences=[29 29]: duplicate curve preference 29"},
		"JSON and CBOR are content types":                {"--kube-api-content-type=application/json", ""},
		"CBOR falls back to JSON where it is off":        {"--kube-api-content-type=application/cbor", ""},
		"no content type is the default of the client":   {"--kube-api-content-type=", ""},
		"a burst is not needed without a limit":          {"--kube-api-qps=-1 --kube-api-burst=0", ""},
		"a burst is needed with a limit":                 {"--kube-api-burst=0", "--kube-api-burst=0: burst is required"},
		"a tolerance that is not a number":               {"--horizontal-pod-autoscaler-tolerance=NaN", "horizontal-pod-autoscaler-tolerance must not be less than 0, but got NaN"},
		"a rate of requests that is not a number":        {"--kube-api-qps=NaN", "kube-api-qps must be a number, but got NaN"},
		"a lease is named as objects are":                {"--leader-elect-resource-name=A_b", "--leader-elect-resource-name=A_b: resource name is not valid: "},
		"and lies in a namespace that can exist":         {"--leader-elect-resource-namespace=kube.system", "--leader-elect-resource-namespace=kube.system: resource namespace is not valid: "},
		"no tolerance":                                   {"--horizontal-pod-autoscaler-tolerance=0", ""},
		"eviction may be switched off":                   {"--node-eviction-rate=0 --secondary-node-eviction-rate=0 --unhealthy-zone-threshold=1 --large-cluster-size-threshold=0", ""},
		"it cannot run backwards":                        {"--node-eviction-rate=-1", "node-eviction-rate must not be less than 0, but got -1"},
		"nor in unhealthy zones":                         {"--secondary-node-eviction-rate=-0.5", "secondary-node-eviction-rate must not be less than 0, but got -0.5"},
		"no node is lost, or all are, behind the brake":  {"--node-outage-brake-threshold=1", ""},
		"a brake for less than no node":                  {"--node-outage-brake-threshold=-0.1", "node-outage-brake-threshold must be between 0 and 1, but got -0.1"},
		"a brake for more than all nodes":                {"--node-outage-brake-threshold=55", "node-outage-brake-threshold must be between 0 and 1, but got 55"},
		"a brake for no number of nodes":                 {"--node-outage-brake-threshold=NaN", "node-outage-brake-threshold must be between 0 and 1, but got NaN"},
		"pods are collected by number or not":            {"--terminated-pod-gc-threshold=0", ""},
		"no timeout of a recycler":                       {"--pv-recycler-minimum-timeout-nfs=0", ""},
		"less than none":                                 {"--pv-recycler-timeout-increment-hostpath=-1", "pv-recycler-timeout-increment-hostpath must not be negative, but got -1"},
		"leader migration with the default":              {"--enable-leader-migration", ""},
		"a migration file is not read when it is unused": {"--leader-migration-config=/nonexistent", ""},
	} {
		t.Run(name, func(t *testing.T) {
			expectMessage(t, strings.Fields(tc.line), tc.message)
		})
	}
}

// expectMessage checks a command line, whose error has to contain the message; an empty one
// means that it is accepted.
func expectMessage(t *testing.T, line []string, want string) {
	t.Helper()
	c, err := parsed(t, line...)
	if err != nil {
		t.Fatal(err)
	}
	message := ""
	if err := c.checked(); err != nil {
		message = err.Error()
	}
	if (message == "") != (want == "") || !strings.Contains(message, want) {
		t.Errorf("%q: %q, want %q", line, message, want)
	}
}

func TestNoTimeRunsBackwards(t *testing.T) {
	flags := readTable(t, "flags.tsv")
	t.Chdir(sampleFiles(t))
	// What is set by these two is read by nobody, or checked with others.
	skip := map[string]bool{"node-sync-period": true, "log-flush-frequency": true}
	for _, r := range flags {
		if r[3] != "duration" || skip[r[1]] {
			continue
		}
		t.Run(r[1], func(t *testing.T) {
			c, err := parsed(t, "--"+r[1]+"=-1s")
			if err != nil {
				t.Fatal(err)
			}
			if err := c.checked(); err == nil || !strings.Contains(err.Error(), r[1]) || !strings.Contains(err.Error(), "-1s") {
				t.Errorf("--%s=-1s: %v", r[1], err)
			}
		})
	}
}

func TestNobodyWorksForNothing(t *testing.T) {
	flags := readTable(t, "flags.tsv")
	t.Chdir(sampleFiles(t))
	for _, r := range flags {
		if !strings.Contains(r[1], "concurrent-") {
			continue
		}
		for _, count := range []string{"0", "-1"} {
			t.Run(r[1]+"="+count, func(t *testing.T) {
				c, err := parsed(t, "--"+r[1]+"="+count)
				if err != nil {
					t.Fatal(err)
				}
				if err := c.checked(); err == nil || !strings.HasPrefix(err.Error(), r[1]) || !strings.HasSuffix(err.Error(), "got "+count) {
					t.Errorf("--%s=%s: %v", r[1], count, err)
				}
			})
		}
	}
}

func TestConfigIsComplete(t *testing.T) {
	all := readTable(t, "flags.tsv")
	t.Chdir(sampleFiles(t))
	port := freePort(t)
	c, err := parsed(t, "--bind-address=127.0.0.1", "--secure-port="+strconv.Itoa(port), "--kube-api-qps=7", "--kube-api-burst=9", "--controller-shutdown-timeout=3s", "--batch-watch-reads=false")
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.started(t)
	if err != nil {
		t.Fatal(err)
	}
	defer got.SecureServing.Listener.Close()
	if got.Authentication.Authenticator == nil || got.Authorization.Authorizer == nil || got.Client == nil ||
		got.EventBroadcaster == nil || got.EventRecorder == nil || got.ComponentGlobalsRegistry != c.ComponentGlobalsRegistry {
		t.Errorf("something is missing: %+v", got)
	}
	if k := got.Kubeconfig; k.QPS != 7 || k.Burst != 9 || k.ContentType != "application/vnd.kubernetes.protobuf" || !k.DisableCompression {
		t.Errorf("clients get %v per second, burst %d, %q, compression off %v", k.QPS, k.Burst, k.ContentType, k.DisableCompression)
	}
	if got.ControllerShutdownTimeout.String() != "3s" {
		t.Errorf("controllers may take %s to stop", got.ControllerShutdownTimeout)
	}
	if got.BatchWatchReads {
		t.Error("watches are read in batches")
	}
	flags, ours := got.Flagz.GetFlagz(), 0
	newCommandLine(t).sections.FlagSets[ownSection].VisitAll(func(*pflag.Flag) { ours++ })
	if len(flags) != len(all)+ours || flags["secure-port"] != strconv.Itoa(port) {
		t.Errorf("/flagz shows %d flags, secure-port %s", len(flags), flags["secure-port"])
	}
}

func TestNothingListensAfterAFailedStart(t *testing.T) {
	t.Chdir(sampleFiles(t))
	port := strconv.Itoa(freePort(t))
	c, err := parsed(t, "--bind-address=127.0.0.1", "--secure-port="+port, "--authentication-kubeconfig=dead.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.started(t); err == nil {
		t.Fatal("started without its API server")
	}
	again, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		t.Fatal(fmt.Errorf("the port is still open: %w", err))
	}
	again.Close()
}
