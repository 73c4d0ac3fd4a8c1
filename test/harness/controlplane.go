package harness

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ControlPlaneOptions changes what StartControlPlane starts.
type ControlPlaneOptions struct {
	// Tools are the executables; zero means FindTools.
	Tools Tools
	// APIServerArgs come after the built-in arguments and so win over them.
	APIServerArgs []string
	// RecordBodies puts what the controllers write, and the answers, into the
	// audit log as a whole.
	RecordBodies bool
}

// ControlPlane is a running etcd and kube-apiserver.
type ControlPlane struct {
	// Dir holds keys, logs and data.
	Dir string
	// URL is the API server's address.
	URL string
	// Admin is a client configuration without limits, for system:masters.
	Admin *rest.Config
	// AdminKubeconfig and ManagerKubeconfig are files. The second is for the
	// user system:kube-controller-manager, whom RBAC binds to its bootstrap role.
	AdminKubeconfig, ManagerKubeconfig string
	// Audit is what the controllers asked of the API server.
	Audit *AuditLog

	tools           Tools
	pki             *pki
	etcd, apiserver *Process
}

// auditPolicy logs the requests of the manager and of its controllers only, a
// watch when it begins and when it ends.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts:kube-system"]
- level: Metadata
  users: ["system:kube-controller-manager"]
- level: None
`

// bodiesPolicy also logs what was written and what came of it, and a watch when
// it begins. Tokens stay out.
const bodiesPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts:kube-system"]
  verbs: [watch]
  omitStages: [ResponseComplete]
- level: Metadata
  users: ["system:kube-controller-manager"]
  verbs: [watch]
  omitStages: [ResponseComplete]
- level: Metadata
  userGroups: ["system:serviceaccounts:kube-system"]
  resources: [{group: "", resources: [serviceaccounts/token]}, {group: authentication.k8s.io}, {group: authorization.k8s.io}]
- level: Metadata
  users: ["system:kube-controller-manager"]
  resources: [{group: "", resources: [serviceaccounts/token]}, {group: authentication.k8s.io}, {group: authorization.k8s.io}]
- level: RequestResponse
  userGroups: ["system:serviceaccounts:kube-system"]
  verbs: [create, update, patch, delete, deletecollection]
- level: RequestResponse
  users: ["system:kube-controller-manager"]
  verbs: [create, update, patch, delete, deletecollection]
- level: Metadata
  userGroups: ["system:serviceaccounts:kube-system"]
- level: Metadata
  users: ["system:kube-controller-manager"]
- level: None
`

// StartControlPlane starts etcd and a kube-apiserver with RBAC, audit and the
// default admission plugins, and returns when the API server is ready and has
// its bootstrap roles. The test's end stops both.
func StartControlPlane(t testing.TB, options ControlPlaneOptions) *ControlPlane {
	t.Helper()
	tools := options.Tools
	if tools == (Tools{}) {
		var err error
		if tools, err = FindTools(); err != nil {
			t.Fatal(err)
		}
	}
	cp := &ControlPlane{Dir: t.TempDir(), tools: tools}
	t.Cleanup(cp.stop)
	if err := cp.start(options); err != nil {
		t.Fatal(err)
	}
	return cp
}

func (cp *ControlPlane) start(options ControlPlaneOptions) error {
	var err error
	if cp.pki, err = newPKI(cp.Dir); err != nil {
		return err
	}
	policy := auditPolicy
	if options.RecordBodies {
		policy = bodiesPolicy
	}
	if err := os.WriteFile(cp.pki.file("audit-policy.yaml"), []byte(policy), 0o600); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	cp.Audit = &AuditLog{path: cp.pki.file("audit.log")}
	etcdURL, err := onFreePort(cp.startEtcd)
	if err != nil {
		return err
	}
	_, err = onFreePort(func() (string, error) { return cp.startAPIServer(etcdURL, options.APIServerArgs) })
	return err
}

// onFreePort covers the case that another process takes the free port first.
func onFreePort(start func() (string, error)) (string, error) {
	var errs []error
	for range 3 {
		url, err := start()
		if err == nil {
			return url, nil
		}
		errs = append(errs, err)
		if !strings.Contains(err.Error(), "address already in use") {
			break
		}
	}
	return "", errors.Join(errs...)
}

func (cp *ControlPlane) startEtcd() (string, error) {
	client, err := freePort()
	if err != nil {
		return "", err
	}
	peer, err := freePort()
	if err != nil {
		return "", err
	}
	url, peerURL := fmt.Sprintf("http://127.0.0.1:%d", client), fmt.Sprintf("http://127.0.0.1:%d", peer)
	cp.etcd, err = startProcess("etcd", cp.tools.Etcd, []string{
		"--data-dir=" + cp.pki.file(fmt.Sprintf("etcd-%d", client)),
		"--unsafe-no-fsync",
		"--listen-client-urls=" + url, "--advertise-client-urls=" + url,
		"--listen-peer-urls=" + peerURL, "--initial-advertise-peer-urls=" + peerURL,
		"--initial-cluster=default=" + peerURL,
		"--log-level=warn",
	}, cp.pki.file("etcd.log"))
	if err != nil {
		return "", err
	}
	return url, cp.etcd.poll(90*time.Second, func() error {
		response, err := (&http.Client{Timeout: 5 * time.Second}).Get(url + "/health")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("/health says %s", response.Status)
		}
		return nil
	})
}

func (cp *ControlPlane) startAPIServer(etcdURL string, extra []string) (string, error) {
	port, err := freePort()
	if err != nil {
		return "", err
	}
	cp.URL = fmt.Sprintf("https://127.0.0.1:%d", port)
	if err := cp.writeKubeconfigs(); err != nil {
		return "", err
	}
	file := cp.pki.file
	args := []string{
		"--etcd-servers=" + etcdURL,
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + file("apiserver.crt"), "--tls-private-key-file=" + file("apiserver.key"),
		"--client-ca-file=" + file("ca.crt"),
		"--requestheader-client-ca-file=" + file("front-proxy-ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + file("front-proxy-client.crt"),
		"--proxy-client-key-file=" + file("front-proxy-client.key"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + file("sa.pub"),
		"--service-account-signing-key-file=" + file("sa.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--audit-policy-file=" + file("audit-policy.yaml"), "--audit-log-path=" + cp.Audit.path,
		// Readers keep offsets, so the log is not to be rotated.
		"--audit-log-maxsize=100000",
		"--allow-privileged=true",
		"--profiling=false",
	}
	cp.apiserver, err = startProcess("kube-apiserver", cp.tools.APIServer, append(args, extra...), file("kube-apiserver.log"))
	if err != nil {
		return "", err
	}
	client, err := kubernetes.NewForConfig(cp.Admin)
	if err != nil {
		return "", fmt.Errorf("make the admin client: %w", err)
	}
	return cp.URL, cp.apiserver.poll(180*time.Second, func() error { return ready(client) })
}

// ready asks for /readyz, which waits for the bootstrap roles too, and for the
// namespace that the service accounts of the controllers live in.
func ready(client kubernetes.Interface) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, path := range []string{"/readyz", "/api/v1/namespaces/kube-system", "/api/v1/namespaces/default"} {
		if err := client.Discovery().RESTClient().Get().AbsPath(path).Do(ctx).Error(); err != nil {
			return err
		}
	}
	return nil
}

func (cp *ControlPlane) writeKubeconfigs() error {
	cp.AdminKubeconfig, cp.ManagerKubeconfig = cp.pki.file("admin.conf"), cp.pki.file("controller-manager.conf")
	for path, pair := range map[string]*keyPair{cp.AdminKubeconfig: cp.pki.admin, cp.ManagerKubeconfig: cp.pki.root} {
		config := clientcmdapi.NewConfig()
		config.Clusters["test"] = &clientcmdapi.Cluster{Server: cp.URL, CertificateAuthorityData: cp.pki.caCert}
		config.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.cert, ClientKeyData: pair.key}
		config.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
		config.CurrentContext = "test"
		if err := clientcmd.WriteToFile(*config, path); err != nil {
			return fmt.Errorf("write kubeconfig %s: %w", filepath.Base(path), err)
		}
	}
	var err error
	if cp.Admin, err = clientcmd.BuildConfigFromFlags("", cp.AdminKubeconfig); err != nil {
		return fmt.Errorf("read the admin kubeconfig: %w", err)
	}
	cp.Admin.QPS = -1
	cp.Admin.WarningHandler = rest.NoWarnings{}
	return nil
}

// APIServerLog is the end of the API server's log.
func (cp *ControlPlane) APIServerLog(lines int) string {
	return strings.TrimSpace(Tail(cp.pki.file("kube-apiserver.log"), 0, lines))
}

func (cp *ControlPlane) stop() {
	for _, p := range []*Process{cp.apiserver, cp.etcd} {
		if p != nil {
			p.Kill()
		}
	}
}
