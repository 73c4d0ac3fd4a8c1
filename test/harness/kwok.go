package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// KwokOptions changes what StartKwok starts.
type KwokOptions struct {
	// Dir holds everything; it must exist.
	Dir string
	// Tools are the executables; zero means FindTools.
	Tools Tools
	// AuditPolicy is the policy file's content; empty means the requests of the
	// controller manager and its controllers, at level Metadata.
	AuditPolicy string
	// NodeLeaseSeconds is how long a simulated node's lease is good; 0 means 40.
	NodeLeaseSeconds int
	// Stages are the YAML documents of how the simulator plays pods; empty means as it does by itself.
	Stages string
}

// Kwok is a cluster made by kwokctl: etcd, kube-apiserver, kube-scheduler and
// simulated nodes, on loopback. It has no controller manager of its own.
type Kwok struct {
	// Dir holds keys, logs and data.
	Dir string
	// Kubeconfig is the administrator's, ManagerKubeconfig that of the user
	// system:kube-controller-manager, whom RBAC binds to its bootstrap role.
	Kubeconfig, ManagerKubeconfig string
	// Config is a client configuration without limits, for system:masters.
	Config *rest.Config
	// Client uses Config.
	Client kubernetes.Interface
	// Audit is what the audit policy keeps.
	Audit *AuditLog

	tools Tools
}

// AliveLabel is the label of the nodes that the simulator plays. A node that
// loses it falls silent, as a machine does that lost its power.
const AliveLabel = "kwok"

const kwokName = "kcm"

// StartKwok makes a cluster. The caller deletes it with Delete; what StartKwok
// could not bring up, it has deleted itself.
func StartKwok(ctx context.Context, options KwokOptions) (*Kwok, error) {
	k := &Kwok{Dir: options.Dir, tools: options.Tools}
	k.Kubeconfig = filepath.Join(k.Dir, "kubeconfig")
	k.ManagerKubeconfig = filepath.Join(k.Dir, "controller-manager.conf")
	k.Audit = &AuditLog{path: filepath.Join(k.home(), "logs", "audit.log")}
	if k.tools == (Tools{}) {
		var err error
		if k.tools, err = FindTools(); err != nil {
			return nil, err
		}
	}
	if err := k.create(ctx, options); err != nil {
		return nil, errors.Join(err, k.Delete())
	}
	return k, nil
}

func (k *Kwok) create(ctx context.Context, options KwokOptions) error {
	if err := k.configure(options); err != nil {
		return err
	}
	out, err := k.kwokctl(ctx, "--config", k.file("kwok.yaml"), "create", "cluster", "--kubeconfig", k.Kubeconfig, "--wait", "180s")
	if err != nil {
		return fmt.Errorf("create the cluster: %w\n%s", err, out)
	}
	if k.Config, err = clientcmd.BuildConfigFromFlags("", k.Kubeconfig); err != nil {
		return fmt.Errorf("read the admin kubeconfig: %w", err)
	}
	k.Config.QPS = -1
	k.Config.WarningHandler = rest.NoWarnings{}
	if k.Client, err = kubernetes.NewForConfig(k.Config); err != nil {
		return fmt.Errorf("make the admin client: %w", err)
	}
	return k.writeManagerKubeconfig()
}

func (k *Kwok) configure(options KwokOptions) error {
	policy := options.AuditPolicy
	if policy == "" {
		policy = auditPolicy
	}
	if err := os.WriteFile(k.file("audit-policy.yaml"), []byte(policy), 0o600); err != nil {
		return fmt.Errorf("write the audit policy: %w", err)
	}
	lease := options.NodeLeaseSeconds
	if lease == 0 {
		lease = 40
	}
	var ports [6]any
	for i := range ports {
		port, err := freePort()
		if err != nil {
			return err
		}
		ports[i] = port
	}
	config := fmt.Sprintf(`apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokctlConfiguration
options:
  runtime: binary
  kubeVersion: v1.36.3
  bindAddress: 127.0.0.1
  heartbeatFactor: 1
  disableQPSLimits: true
  kubeApiserverPort: %d
  kubeControllerManagerPort: %d
  kubeSchedulerPort: %d
  kwokControllerPort: %d
  etcdPort: %d
  etcdPeerPort: %d
  disable: [kube-controller-manager]
`, ports[:]...) + fmt.Sprintf(`  nodeLeaseDurationSeconds: %d
  kubeAuditPolicy: %s
  etcdBinary: %[3]s/etcd
  kubeApiserverBinary: %[3]s/kube-apiserver
  kubeSchedulerBinary: %[3]s/kube-scheduler
  kwokControllerBinary: %[3]s/kwok
  kubectlBinary: %[3]s/kubectl
componentsPatches:
- name: kube-apiserver
  extraArgs:
  - {key: audit-log-maxsize, value: "0"}
  - {key: service-cluster-ip-range, value: 10.96.0.0/16}
- name: kwok-controller
  extraArgs:
  - {key: manage-all-nodes, value: "false"}
  - {key: manage-nodes-with-label-selector, value: %[4]s}
`, lease, k.file("audit-policy.yaml"), k.tools.Dir, AliveLabel)
	if options.Stages != "" {
		config += "---\n" + options.Stages
	}
	if err := os.WriteFile(k.file("kwok.yaml"), []byte(config), 0o600); err != nil {
		return fmt.Errorf("write the cluster's configuration: %w", err)
	}
	return nil
}

// writeManagerKubeconfig signs a certificate with the cluster's own authority.
func (k *Kwok) writeManagerKubeconfig() error {
	ca, err := loadAuthority(k.PKI("ca.crt"), k.PKI("ca.key"))
	if err != nil {
		return err
	}
	pair, err := ca.client("system:kube-controller-manager")
	if err != nil {
		return err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["kwok"] = &clientcmdapi.Cluster{Server: k.Config.Host, CertificateAuthorityData: encode("CERTIFICATE", ca.cert.Raw)}
	config.AuthInfos["kwok"] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.cert, ClientKeyData: pair.key}
	config.Contexts["kwok"] = &clientcmdapi.Context{Cluster: "kwok", AuthInfo: "kwok"}
	config.CurrentContext = "kwok"
	if err := clientcmd.WriteToFile(*config, k.ManagerKubeconfig); err != nil {
		return fmt.Errorf("write the manager's kubeconfig: %w", err)
	}
	return nil
}

func (k *Kwok) file(name string) string { return filepath.Join(k.Dir, name) }

func (k *Kwok) home() string { return filepath.Join(k.Dir, "work", "clusters", kwokName) }

// PKI is the path of a key or certificate of the cluster: ca.crt, ca.key,
// admin.crt, admin.key; the latter also signs service account tokens.
func (k *Kwok) PKI(name string) string { return filepath.Join(k.home(), "pki", name) }

// Log is the path of a component's log.
func (k *Kwok) Log(component string) string {
	return filepath.Join(k.home(), "logs", component+".log")
}

// kwokctl runs apart from the terminal: an interrupt is for the caller to
// handle, who still has to delete the cluster.
func (k *Kwok) kwokctl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(k.tools.Dir, "kwokctl"), append([]string{"--name", kwokName}, args...)...)
	cmd.Env = append(os.Environ(), "KWOK_WORKDIR="+k.file("work"), "PATH="+k.tools.Dir+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Delete ends every process of the cluster and returns when they are gone. It
// takes no context: it must work when the caller's is done.
func (k *Kwok) Delete() error {
	pids := k.pids()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := os.Stat(k.home()); err != nil {
		return nil
	}
	out, err := k.kwokctl(ctx, "delete", "cluster")
	if err != nil {
		err = fmt.Errorf("delete the cluster: %w\n%s", err, out)
	}
	for _, pid := range pids {
		if !k.gone(pid, 20*time.Second) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			k.gone(pid, 5*time.Second)
		}
	}
	return err
}

// pids are the processes that kwokctl has noted.
func (k *Kwok) pids() []int {
	files, err := filepath.Glob(filepath.Join(k.home(), "pids", "*.pid"))
	if err != nil {
		return nil
	}
	var pids []int
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if pid, err := strconv.Atoi(strings.TrimSpace(string(content))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// gone waits until a process has ended. A process that runs no executable of
// this cluster is another one by now.
func (k *Kwok) gone(pid int, within time.Duration) bool {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(within); time.Now().Before(deadline); <-tick.C {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || !strings.HasPrefix(string(command), k.home()+"/") {
			return true
		}
	}
	return false
}
