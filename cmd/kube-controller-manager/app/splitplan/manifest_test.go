package splitplan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// plain is a pod with a flag in each way that counts.
const plain = `
apiVersion: v1
kind: Pod
metadata:
  name: kube-controller-manager
  labels: {component: kube-controller-manager, tier: control-plane}
spec:
  containers:
  - name: kube-controller-manager
    image: registry.example.com/kube-controller-manager:v1
    command: [/go-runner, --log-file=/var/log/kcm.log, /usr/local/bin/kube-controller-manager]
    args: [--controllers=*, "--controllers=bootstrapsigner,tokencleaner", --service-account-private-key-file=/sa.key, --v=2, --enable-leader-migration]
    ports: [{name: probe-port, containerPort: 10257, hostPort: 10257}]
    livenessProbe: {httpGet: {path: /healthz, port: 10257}}
    startupProbe: {httpGet: {path: /healthz, port: probe-port}}
`

// takesValue knows the flags of these tests.
func takesValue(flag string) bool {
	return slices.Contains([]string{"controllers", "leader-elect-resource-name", "secure-port", keyFlag, "leader-migration-config", "v", "cluster-name"}, flag)
}

func read(t *testing.T, manifest string) *Manifest {
	t.Helper()
	m, err := Read([]byte(manifest), takesValue)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func planned(t *testing.T, m *Manifest, move string) Plan {
	t.Helper()
	r := ask("", move)
	r.Theirs = m.Line()
	p, err := New(r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTheManifestsDifferWhereTheyMust(t *testing.T) {
	m := read(t, plain)
	if diff := cmp.Diff(Line{Controllers: []string{"*", "bootstrapsigner", "tokencleaner"}, Lease: "kube-controller-manager", Port: 10257}, m.Line()); diff != "" {
		t.Error(diff)
	}
	p := planned(t, m, "bootstrapsigner,job")
	theirs, ours := m.Theirs(p), m.Ours(p, "localhost/ours:1")

	want := []string{"--controllers=*,tokencleaner,-job-controller", "--service-account-private-key-file=/sa.key", "--v=2", "--enable-leader-migration"}
	if diff := cmp.Diff(want, theirs.Spec.Containers[0].Args); diff != "" {
		t.Errorf("the original's arguments (-want +got):\n%s", diff)
	}
	theirs.Spec.Containers[0].Args = m.pod.Spec.Containers[0].Args
	if diff := cmp.Diff(m.pod, theirs); diff != "" {
		t.Errorf("more than --controllers changes in the original:\n%s", diff)
	}

	c := ours.Spec.Containers[0]
	want = []string{"--controllers=bootstrap-signer-controller,job-controller", "--v=2", "--leader-elect=true", "--leader-elect-resource-name=ours", "--secure-port=10357"}
	if diff := cmp.Diff(want, c.Args); diff != "" {
		t.Errorf("our arguments (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(m.pod.Spec.Containers[0].Command, c.Command); diff != "" {
		t.Errorf("our command:\n%s", diff)
	}
	got := []any{ours.Name, ours.Labels, c.Name, c.Image, c.Ports[0].ContainerPort, c.Ports[0].HostPort, c.LivenessProbe.HTTPGet.Port.IntValue(), c.StartupProbe.HTTPGet.Port.StrVal}
	if diff := cmp.Diff([]any{"ours", map[string]string{"component": "ours", "tier": "control-plane"}, "ours", "localhost/ours:1", int32(10357), int32(10357), 10357, "probe-port"}, got); diff != "" {
		t.Errorf("ours (-want +got):\n%s", diff)
	}
	if w := m.Warnings(); len(w) != 2 || !strings.Contains(w[0], "/var/log/kcm.log") || !strings.Contains(w[1], "leader") {
		t.Errorf("warnings %q", w)
	}
}

func TestTheKeyOfTokensIsInOneManifest(t *testing.T) {
	m := read(t, plain)
	has := func(pod *corev1.Pod) bool { return len(valuesOf(&pod.Spec.Containers[0], keyFlag)) > 0 }
	for move, ours := range map[string]bool{"job": false, "serviceaccount-token": true} {
		p := planned(t, m, move)
		if has(m.Ours(p, "")) != ours || has(m.Theirs(p)) == ours {
			t.Errorf("%s moves: the original has the key: %t, ours: %t", move, has(m.Theirs(p)), has(m.Ours(p, "")))
		}
	}
	if p := planned(t, m, "all"); !has(m.Ours(p, "")) {
		t.Error("ours runs everything, without the key")
	}
}

func TestAFlagAndItsValueMayBeTwoWords(t *testing.T) {
	const pod = "{kind: Pod, metadata: {name: kube-controller-manager}, spec: {containers: [{name: c, command: [%s], args: [%s]}]}}"
	for name, tc := range map[string]struct {
		command, args string
		theirs, ours  []string // the whole command lines
	}{
		"the controllers": {"kube-controller-manager", "--controllers, '*', --v=2",
			[]string{"kube-controller-manager", "--controllers=*,-job-controller", "--v=2"},
			[]string{"kube-controller-manager", "--controllers=job-controller", "--v=2"}},
		"a list that begins with a dash": {"kube-controller-manager", "--controllers, '-ttl-controller,*', --v=2",
			[]string{"kube-controller-manager", "--controllers=-ttl-controller,*,-job-controller", "--v=2"},
			[]string{"kube-controller-manager", "--controllers=job-controller", "--v=2"}},
		"the file of a leader migration": {"kube-controller-manager", "--enable-leader-migration, --leader-migration-config, /etc/migration.yaml, --v, '2'",
			[]string{"kube-controller-manager", "--enable-leader-migration", "--leader-migration-config=/etc/migration.yaml", "--v=2", "--controllers=*,-job-controller"},
			[]string{"kube-controller-manager", "--v=2", "--controllers=job-controller"}},
		"the key of tokens": {"kube-controller-manager, --service-account-private-key-file", "/sa.key, --v=2",
			[]string{"kube-controller-manager", "--service-account-private-key-file=/sa.key", "--v=2", "--controllers=*,-job-controller"},
			[]string{"kube-controller-manager", "--v=2", "--controllers=job-controller"}},
		"underscores": {"kube-controller-manager", "--service_account_private_key_file=/sa_1.key, --cluster_name=a_b, --v=2",
			[]string{"kube-controller-manager", "--service-account-private-key-file=/sa_1.key", "--cluster-name=a_b", "--v=2", "--controllers=*,-job-controller"},
			[]string{"kube-controller-manager", "--cluster-name=a_b", "--v=2", "--controllers=job-controller"}},
		"an empty value": {"kube-controller-manager", "--cluster-name, '', --v=2",
			[]string{"kube-controller-manager", "--cluster-name=", "--v=2", "--controllers=*,-job-controller"},
			[]string{"kube-controller-manager", "--cluster-name=", "--v=2", "--controllers=job-controller"}},
		"the log of a wrapper": {"/go-runner, --also-stdout, --log-file, /var/log/kcm.log, kube-controller-manager", "--v=2",
			[]string{"/go-runner", "--also-stdout", "--log-file=/var/log/kcm.log", "kube-controller-manager", "--v=2", "--controllers=*,-job-controller"},
			[]string{"/go-runner", "--also-stdout", "--log-file=/var/log/kcm.log", "kube-controller-manager", "--v=2", "--controllers=job-controller"}},
		"a flag that is not known": {"kube-controller-manager", "--unknown, --controllers=*, word",
			[]string{"kube-controller-manager", "--unknown", "--controllers=*,-job-controller", "word"},
			[]string{"kube-controller-manager", "--unknown", "--controllers=job-controller", "word"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := read(t, fmt.Sprintf(pod, tc.command, tc.args))
			p := planned(t, m, "job")
			if diff := cmp.Diff(tc.theirs, words(&m.Theirs(p).Spec.Containers[0])); diff != "" {
				t.Errorf("the original's (-want +got):\n%s", diff)
			}
			ours := words(&m.Ours(p, "").Spec.Containers[0])
			if diff := cmp.Diff(append(tc.ours, "--leader-elect=true", "--leader-elect-resource-name=ours", "--secure-port=10357"), ours); diff != "" {
				t.Errorf("ours (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAManifestThatCannotBeSplitIsRefused(t *testing.T) {
	with := func(old, new string) string { return strings.ReplaceAll(plain, old, new) }
	for name, tc := range map[string]struct{ manifest, want string }{
		"no YAML":                      {"{", "did not find"},
		"another kind":                 {"kind: ConfigMap", `it is a "ConfigMap" and no Pod`},
		"an unknown field":             {with("  containers:", "  containerz:"), `unknown field "containerz"`},
		"the command line of a shell":  {with("/go-runner, --log-file=/var/log/kcm.log, /usr/local/bin/kube-controller-manager", "sh, -c, kube-controller-manager --controllers=*"), "no container runs kube-controller-manager"},
		"a flag without its value":     {with("--v=2, --enable-leader-migration", "--secure-port"), "--secure-port, at the end of the command line, has no value"},
		"a port apart, and no number":  {with("--v=2", "--secure-port, https"), "--secure-port=https is not a number"},
		"a port apart":                 {with("--v=2", `--secure-port, "10258"`), ""},
		"a port that is no number":     {with("--v=2", "--secure-port=https"), "--secure-port=https is not a number"},
		"the same with another lease":  {with("--v=2", "--leader-elect-resource-name=lock"), ""},
		"a port that is given in full": {with("--v=2", "--secure-port=10258"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Read([]byte(tc.manifest), takesValue)
			switch {
			case tc.want == "" && err != nil:
				t.Error(err)
			case tc.want == "" && m.Line().Lease == defaultLease && m.Line().Port == defaultPort:
				t.Error("the flag does not count")
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("said %v, want %q", err, tc.want)
			}
		})
	}
}
