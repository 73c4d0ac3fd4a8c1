package e2e

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// TestRunShow runs the show of make run, whose every act waits for what it
// shows, and then checks what it leaves behind.
func TestRunShow(t *testing.T) {
	root, err := harness.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	above := t.TempDir()
	dir, other := filepath.Join(above, "kcm-cluster"), filepath.Join(above, "other")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "KCM_RUN_DIR="+above, "KCM_BINARY="+harness.BuiltBinary(t))
	managerPort := 0
	for _, name := range []string{"APISERVER", "MANAGER", "SCHEDULER", "KWOK", "ETCD", "ETCD_PEER"} {
		port, err := harness.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if name == "MANAGER" {
			managerPort = port
		}
		env = append(env, fmt.Sprintf("KCM_RUN_%s_PORT=%d", name, port))
	}
	script := func(name string) (string, error) {
		cmd := exec.Command(filepath.Join(root, "hack", name))
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	t.Cleanup(func() {
		if out, err := script("stop.sh"); err != nil {
			t.Errorf("stop: %v\n%s", err, out)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("stop left %s behind", dir)
		}
		if _, err := os.Stat(other); err != nil {
			t.Errorf("stop took what is not the cluster's: %v", err)
		}
	})
	out, err := script("run.sh")
	if err != nil {
		log := filepath.Join(dir, "work", "clusters", "kcm", "logs", "kube-controller-manager.log")
		t.Fatalf("%v\n%s\nThe controller manager's log ends:\n%s", err, out, harness.Tail(log, 0, 40))
	}
	t.Log(out)

	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	pods, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			t.Errorf("pod %s is left %s", pod.Name, pod.Status.Phase)
		}
	}
	if len(pods.Items) != 3 {
		t.Errorf("%d pods, want 3", len(pods.Items))
	}
	checkVolumes(t, client)
	pki := filepath.Join(dir, "work", "clusters", "kcm", "pki")
	debug := fmt.Sprintf("https://127.0.0.1:%d/debug/controllers/", managerPort)
	var controllers []struct{ Name, State, Why string }
	if err := getJSON(debug, filepath.Join(pki, "admin.crt"), filepath.Join(pki, "admin.key"), &controllers); err != nil {
		t.Fatal(err)
	}
	started := 0
	for _, c := range controllers {
		if c.State == "started" {
			started++
		} else if c.Why == "" {
			t.Errorf("%s is %s without a reason", c.Name, c.State)
		}
	}
	if started < 12 {
		t.Errorf("%d controllers started, want 12: %+v", started, controllers)
	}
	var key struct{ Key, LastSync string }
	if err := getJSON(debug+"deployment-controller?key=default/web", filepath.Join(pki, "admin.crt"), filepath.Join(pki, "admin.key"), &key); err != nil {
		t.Fatal(err)
	}
	if key.Key != "default/web" || !strings.HasSuffix(key.LastSync, "ago") {
		t.Errorf("the debug endpoint says %+v", key)
	}
}

// checkVolumes checks what is left of the set whose pods had volumes.
func checkVolumes(t *testing.T, client kubernetes.Interface) {
	claims, err := client.CoreV1().PersistentVolumeClaims("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=db"})
	if err != nil {
		t.Fatal(err)
	}
	bound := 0
	for _, claim := range claims.Items {
		if claim.Status.Phase == corev1.ClaimBound && claim.DeletionTimestamp == nil {
			bound++
		}
	}
	if bound != 3 {
		t.Errorf("%d claims of the set that was scaled down are Bound, want 3", bound)
	}
	attachments, err := client.StorageV1().VolumeAttachments().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(attachments.Items) != 1 {
		t.Errorf("%d volumes are attached, want that of the one pod", len(attachments.Items))
	}
}

// getJSON asks with a client certificate.
func getJSON(url, cert, key string, into any) error {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return err
	}
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}}, DisableKeepAlives: true}}
	response, err := client.Get(url)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return json.NewDecoder(response.Body).Decode(into)
}
