package app

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/config"
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/splitplan"
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
)

// TestEveryControllerSaysWhatItGoesWith fails when a controller is added and nobody has
// thought about how it moves.
func TestEveryControllerSaysWhatItGoesWith(t *testing.T) {
	for _, c := range Controllers() {
		if !splitplan.Says(c.Name) {
			t.Errorf("%s has no row in app/splitplan/table.go", c.Name)
		}
	}
	if got, want := splitplan.Rows(), len(Controllers()); got != want {
		t.Errorf("app/splitplan/table.go has %d rows for %d controllers", got, want)
	}
}

func TestRowsOfASplitKnowGatesAndClouds(t *testing.T) {
	for _, row := range splitRows() {
		if want := row.Name == names.CloudNodeLifecycleController || row.Name == names.NodeRouteController || row.Name == names.ServiceLBController; row.Cloud != want {
			t.Errorf("%s: cloud %t", row.Name, row.Cloud)
		}
		// The publisher of trust bundles needs its gate for the API too; all others that are off are here.
		if off := slices.Contains(offByDefault, row.Name); off != (len(row.Gates) > 0) {
			t.Errorf("%s: gates %v", row.Name, row.Gates)
		}
	}
}

// planSplit runs the subcommand as part of the command.
func planSplit(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	root := newCommand(func(context.Context, *config.CompletedConfig) error { t.Error("it is not asked"); return nil })
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append([]string{"plan-split"}, args...))
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestPlanSplit(t *testing.T) {
	original := filepath.Join(t.TempDir(), "kube-controller-manager.yaml")
	copyTo(t, kubeadmManifest, original)
	into := t.TempDir()
	for name, tc := range map[string]struct {
		args []string
		want []string
		err  string
	}{
		"without a question it says what belongs together": {
			want: []string{"must run in one process:\n  node-lifecycle-controller and taint-eviction-controller: ", "deployment-controller and replicaset-controller: ",
				"serviceaccount-token-controller", "runs with the feature gate GenericWorkload only", "runs with a cloud provider only"}},
		"a move is answered with the flags of both": {
			args: []string{"--move=deployment,replicaset", "--controllers=*,bootstrapsigner,tokencleaner"},
			want: []string{"  --controllers=*,bootstrapsigner,tokencleaner,-deployment-controller,-replicaset-controller\n",
				"  --controllers=deployment-controller,replicaset-controller\n  --leader-elect=true\n  --leader-elect-resource-name=kube-controller-manager-split\n  --secure-port=10357\n"}},
		"a warning is with the answer": {
			args: []string{"--move=deployment"}, want: []string{"Warning: deployment-controller moves without replicaset-controller."}},
		"lease and port can be chosen": {
			args: []string{"--move=job", "--leader-elect-resource-name=kcm", "--secure-port=11000"}, want: []string{"--leader-elect-resource-name=kcm\n  --secure-port=11000\n"}},
		"the manifest says how the original runs": {
			args: []string{"--move=bootstrapsigner", "--manifest=" + original}, want: []string{"  --controllers=*,tokencleaner\n"}},
		"all but the manifest of the original is there when everything moves": {
			args: []string{"--move=all", "--manifest=" + original, "--write-manifests=" + into},
			want: []string{"The original runs nothing then", "Wrote 1 manifests into " + into}},
		"help is its own": {args: []string{"--help"}, want: []string{"plan-split [flags]", "--write-manifests"}},
		"what cannot be is refused": {
			args: []string{"--move=foo,taint-eviction-controller"}, err: "--move: \"foo\" is not in the list of known controllers\n--move: taint-eviction-controller would move without node-lifecycle-controller"},
		"arguments are refused":         {args: []string{"job"}, err: `unknown command "job"`},
		"manifests need one to be from": {args: []string{"--move=job", "--write-manifests=" + into}, err: "--write-manifests needs --manifest"},
		"two sources are one too many":  {args: []string{"--move=job", "--controllers=*", "--manifest=" + original}, err: "--controllers and --manifest both say how the original runs"},
		"a manifest that is not there": {args: []string{"--move=job", "--manifest=/nonexistent.yaml"},
			err: "--manifest: open /nonexistent.yaml: no such file or directory"},
		"a manifest that is none": {args: []string{"--move=job", "--manifest=plansplit.go"}, err: "--manifest=plansplit.go: "},
		"the directory of the kubelet": {args: []string{"--move=job", "--manifest=" + original, "--write-manifests=" + filepath.Dir(original)},
			err: "that is where --manifest is; the kubelet would take both manifests at once"},
		"the name of the original": {args: []string{"--move=job", "--manifest=" + original, "--write-manifests=" + into, "--leader-elect-resource-name=kube-controller-manager"},
			err: "--leader-elect-resource-name=kube-controller-manager: the original has this lease"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := planSplit(t, tc.args...)
			if said := errorOf(err); !strings.Contains(said, tc.err) || (tc.err == "") != (err == nil) {
				t.Errorf("error %q, want %q", said, tc.err)
			}
			for _, want := range tc.want {
				if !strings.Contains(got, want) {
					t.Errorf("it lacks %q:\n%s", want, got)
				}
			}
		})
	}
}

func errorOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestPlanSplitKnowsWhichFlagsHaveValues has flags of all sections before the one that counts.
func TestPlanSplitKnowsWhichFlagsHaveValues(t *testing.T) {
	original := filepath.Join(t.TempDir(), "pod.yaml")
	manifest := `{kind: Pod, spec: {containers: [{command: [kube-controller-manager, --leader-elect, --v, "2", --kubeconfig, /conf,
		--profiling, --feature-gates, A=true, --version, --controllers, "-ttl-controller,*", --leader-migration-config, /migration.yaml]}]}}`
	if err := os.WriteFile(original, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	into := t.TempDir()
	if got, err := planSplit(t, "--move=job", "--manifest="+original, "--write-manifests="+into); err != nil || !strings.Contains(got, "  --controllers=-ttl-controller,*,-job-controller\n") {
		t.Fatalf("%v\n%s", err, got)
	}
	ours, err := os.ReadFile(filepath.Join(into, "kube-controller-manager-split.yaml"))
	if err != nil || strings.Contains(string(ours), "migration") || !strings.Contains(string(ours), "- --kubeconfig=/conf\n") || !strings.Contains(string(ours), "- --profiling\n") {
		t.Errorf("%v\n%s", err, ours)
	}
}

// kubeadmManifest is the static pod that kubeadm writes.
const kubeadmManifest = "../../../test/image/testdata/kubeadm.yaml"

func copyTo(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestTheManifestsOfASplitAreThosePlanned holds build/split to what plan-split writes for
// the manifest of kubeadm; with UPDATE=1 it writes them.
func TestTheManifestsOfASplitAreThosePlanned(t *testing.T) {
	const there = "../../../build/split"
	original, into := filepath.Join(t.TempDir(), "kube-controller-manager.yaml"), t.TempDir()
	copyTo(t, kubeadmManifest, original)
	if _, err := planSplit(t, "--move=deployment-controller,replicaset-controller", "--manifest="+original, "--write-manifests="+into); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kube-controller-manager.yaml", "kube-controller-manager-split.yaml"} {
		if os.Getenv("UPDATE") != "" {
			copyTo(t, filepath.Join(into, name), filepath.Join(there, name))
		}
		want, err := os.ReadFile(filepath.Join(into, name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(there, name))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("build/split/%s is not as planned, run make split-manifests (-want +got):\n%s", name, diff)
		}
	}
}
