package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// The manifests of a split, and the names by which the two programs run, which are how
// their user agents begin.
const (
	theirPod, ourPod = "kube-controller-manager", "kube-controller-manager-split"
	theirs, ours     = "the-original", "ours-beside-it"
)

// splitStages are what ours runs, one after the other. The last is what it began with.
var splitStages = [][]string{
	nil,
	{"deployment-controller", "replicaset-controller"},
	{"deployment-controller", "replicaset-controller", "job-controller", "cronjob-controller"},
	{"all"},
	{"deployment-controller", "replicaset-controller"},
	nil,
}

// TestASplitMovesControllersThereAndBack runs the original and ours side by side with the
// static pods that plan-split writes, and moves controllers to ours and back, as
// docs/operate/split.md says, on two nodes, while a Deployment rolls and Jobs run. No object
// may be written by both for one controller, none twice, and none may be lost. In the middle
// of it both leaders are killed, and their standbys go on.
func TestASplitMovesControllersThereAndBack(t *testing.T) {
	t.Parallel()
	s := newSplit(t)
	churn := startChurn(t, s.cp, s.client)
	var stages []splitStage
	for i, moved := range splitStages {
		if i > 0 {
			s.move(t, splitStages[i-1], moved)
		} else {
			s.run(t, theirPod, s.manifest)
		}
		stage := splitStage{moved: moved, from: time.Now()}
		if i == killedIn {
			s.killLeader(t, theirPod)
			s.killLeader(t, ourPod)
		}
		churn.goesOn(t, i)
		stage.to = time.Now()
		stages = append(stages, stage)
	}
	churn.finish(t)
	churn.judge(t)
	judgeWriters(t, s.cp.Audit, stages)
	for at, p := range s.running {
		if err := p.Terminate(patient); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// killedIn is the stage in which the leaders are killed: both run something in it.
const killedIn = 2

// splitNodes is how many nodes have the static pods. One of each pod leads.
const splitNodes = 2

// splitPod is a static pod on a node.
type splitPod struct {
	pod  string
	node int
}

func (p splitPod) String() string { return fmt.Sprintf("%s-%d", p.pod, p.node) }

// split is a control plane with the kubelets of two static pods.
type split struct {
	cp     *harness.ControlPlane
	client kubernetes.Interface
	dir    string
	// manifest is the static pod of the original when nothing has moved.
	manifest string
	// ports are where the pods listen: the nodes of the test have one address.
	ports    map[splitPod]int
	binaries map[string]string
	running  map[splitPod]*harness.Process
	args     map[splitPod][]string
	logs     map[splitPod]string
	starts   int
	holders  map[string]string
}

func newSplit(t *testing.T) *split {
	t.Helper()
	tools, err := harness.FindTools()
	if err != nil {
		t.Fatal(err)
	}
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{Tools: tools})
	s := &split{cp: cp, client: clientOf(t, cp), dir: t.TempDir(), ports: map[splitPod]int{}, binaries: map[string]string{},
		running: map[splitPod]*harness.Process{}, args: map[splitPod][]string{}, logs: map[splitPod]string{}, holders: map[string]string{}}
	for pod, binary := range map[string][2]string{theirPod: {theirs, tools.ReferenceManager}, ourPod: {ours, harness.BuiltBinary(t)}} {
		s.binaries[pod] = filepath.Join(s.dir, binary[0])
		if err := os.Symlink(binary[1], s.binaries[pod]); err != nil {
			t.Fatal(err)
		}
		for node := range splitNodes {
			if s.ports[splitPod{pod, node}], err = harness.FreePort(); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Each takeover of the original takes the whole lease, which it keeps when it ends.
	args := append(kubeadmArgs(cp), fmt.Sprintf("--secure-port=%d", s.ports[splitPod{theirPod, 0}]), "--kube-api-qps=500", "--kube-api-burst=1000",
		"--leader-elect-lease-duration=15s", "--leader-elect-renew-deadline=10s", "--leader-elect-retry-period=1s")
	pod := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: theirPod, Namespace: "kube-system"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: theirPod, Image: "original", Command: append([]string{"kube-controller-manager"}, args...)}}}}
	content, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	s.manifest = filepath.Join(s.dir, theirPod+".yaml")
	if err := os.WriteFile(s.manifest, content, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for at, p := range s.running {
			p.Kill()
			if t.Failed() {
				t.Logf("%s said:\n%s", at, harness.Tail(s.logs[at], 0, 40))
			}
		}
	})
	return s
}

// move takes the steps from one stage to the next in the order of the procedure: whoever
// is to run less comes first, and the other when the first runs so.
func (s *split) move(t *testing.T, from, to []string) {
	t.Helper()
	dir := s.plan(t, to)
	order := []string{theirPod, ourPod}
	if len(to) < len(from) && !slices.Contains(to, "all") || slices.Contains(from, "all") {
		order = []string{ourPod, theirPod}
	}
	for _, pod := range order {
		s.run(t, pod, filepath.Join(dir, pod+".yaml"))
	}
	t.Logf("ours runs %s", strings.Join(to, ","))
}

// plan returns where the manifests of a stage are. One that is not there is of a pod that
// is not to run.
func (s *split) plan(t *testing.T, moved []string) string {
	t.Helper()
	dir := t.TempDir()
	if len(moved) == 0 {
		content, err := os.ReadFile(s.manifest)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, theirPod+".yaml"), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	out, err := exec.CommandContext(t.Context(), s.binaries[ourPod], "plan-split", "--move="+strings.Join(moved, ","),
		"--manifest="+s.manifest, "--write-manifests="+dir, fmt.Sprintf("--secure-port=%d", s.ports[splitPod{ourPod, 0}])).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
}

// run does what the kubelets do when a manifest changes, comes or goes on every node, the
// leader's last: each ends the pod, and starts what the manifest says. It returns when
// one of these leads.
func (s *split) run(t *testing.T, pod, manifest string) {
	t.Helper()
	content, err := os.ReadFile(manifest)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var made *corev1.Pod
	if err == nil {
		made = &corev1.Pod{}
		if err := yaml.UnmarshalStrict(content, made); err != nil {
			t.Fatal(err)
		}
	}
	leader, _ := s.leader(t, pod) // none before the first start
	for i := range splitNodes {
		at := splitPod{pod, (leader.node + 1 + i) % splitNodes}
		if p := s.running[at]; p != nil {
			if err := p.Terminate(patient); err != nil {
				t.Fatal(err)
			}
			delete(s.running, at)
		}
		if made != nil {
			s.start(t, at, made.Spec.Containers[0].Command[1:])
		}
	}
	if made != nil {
		s.wait(t, pod)
	}
}

func (s *split) start(t *testing.T, at splitPod, args []string) {
	t.Helper()
	args = slices.Clone(args)
	for i, arg := range args {
		if strings.HasPrefix(arg, "--secure-port=") {
			args[i] = fmt.Sprintf("--secure-port=%d", s.ports[at])
		}
	}
	s.starts++
	s.logs[at] = filepath.Join(s.dir, fmt.Sprintf("%s-%d.log", at, s.starts))
	p, err := harness.StartProcess(at.String(), s.binaries[at.pod], args, s.logs[at])
	if err != nil {
		t.Fatal(err)
	}
	s.running[at], s.args[at] = p, args
}

// wait returns when another process than before leads, and has logged that.
func (s *split) wait(t *testing.T, pod string) {
	t.Helper()
	if err := s.running[splitPod{pod, 0}].Until(2*patient, func() error { return s.leads(t.Context(), pod) }); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, patient, func(context.Context) error {
		if _, known := s.leader(t, pod); !known {
			return fmt.Errorf("no %s has logged that it leads", pod)
		}
		return nil
	})
}

// leader returns where the pod leads, and false if none has logged that it does.
func (s *split) leader(t *testing.T, pod string) (splitPod, bool) {
	t.Helper()
	for node := range splitNodes {
		at := splitPod{pod, node}
		if s.running[at] == nil {
			continue
		}
		said, err := os.ReadFile(s.logs[at])
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(strings.ToLower(string(said)), "successfully acquired lease") {
			return at, true
		}
	}
	return splitPod{pod: pod}, false
}

// killLeader kills the leader, starts it again as a kubelet does, and returns when another
// process leads.
func (s *split) killLeader(t *testing.T, pod string) {
	t.Helper()
	at, _ := s.leader(t, pod)
	s.running[at].Kill()
	s.start(t, at, s.args[at])
	s.wait(t, pod)
}

// leads fails until another process than the last one holds the lease of a pod.
func (s *split) leads(ctx context.Context, pod string) error {
	lease, err := s.client.CoordinationV1().Leases("kube-system").Get(ctx, pod, metav1.GetOptions{})
	if err != nil {
		return err
	}
	holder := ""
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	if holder == "" || holder == s.holders[pod] {
		return fmt.Errorf("the lease %s is held by %q", pod, holder)
	}
	s.holders[pod] = holder
	return nil
}
