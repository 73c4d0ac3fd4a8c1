package selinuxwarning

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

// TestTheBookHasWhatConflicts lets pods come, end and go, claims be bound and a driver
// change, and judges pods in any order. When all have been judged, the conflicts are those
// of the pods that are there.
func TestTheBookHasWhatConflicts(t *testing.T) {
	for seed := range testworld.Seeds(t, 100) {
		w := newWorld(t)
		play := testworld.New(seed)
		pods := w.In.Core().V1().Pods().Informer().GetStore()
		labels := []*corev1.SELinuxOptions{nil, level("s0:c1"), level("s0:c2"), {Type: "a_t", Level: "s0:c1"}, {Type: "b_t", Level: "s0:c1"}}
		bindings := map[string]bool{}
		mounts := false
		all := map[key]*corev1.Pod{}
		for step := range 120 {
			namespace := []string{"a", "b"}[play.Rand.IntN(2)]
			pod := aPod(namespace, fmt.Sprintf("pod-%d", play.Rand.IntN(6)), labels[play.Rand.IntN(len(labels))])
			pod.UID = types.UID(fmt.Sprint(step))
			if play.Rand.IntN(5) == 0 {
				pod = withPolicy(pod, corev1.SELinuxChangePolicyRecursive)
			}
			k := client.ObjectKeyFromObject(pod)
			switch play.Rand.IntN(8) {
			case 0, 1, 2:
				w.Cache(t, pod)
				all[k] = pod
			case 3:
				if old := all[k]; old != nil {
					ended := inPhase(old.DeepCopy(), corev1.PodSucceeded)
					w.Cache(t, ended)
					all[k] = ended
				}
			case 4:
				_ = pods.Delete(pod)
				delete(all, k)
			case 5:
				claim, pv := bound(namespace, "vol-1")
				w.Cache(t, claim, pv)
				bindings[namespace] = true
			case 6:
				mounts = !mounts
				w.Cache(t, csiDriver(mounts))
			}
			w.judge(aPod([]string{"a", "b"}[play.Rand.IntN(2)], fmt.Sprintf("pod-%d", play.Rand.IntN(6)), nil))
		}
		for n := range 6 {
			w.judge(aPod("a", fmt.Sprintf("pod-%d", n), nil), aPod("b", fmt.Sprintf("pod-%d", n), nil))
		}
		want := map[pair]bool{}
		for one, pod := range all {
			for two, other := range all {
				if one == two || !mounts || !bindings[one.Namespace] || !bindings[two.Namespace] || pod.Status.Phase != "" || other.Status.Phase != "" {
					continue
				}
				for _, c := range conflicts(asks(pod), asks(other)) {
					want[pair{one, two, c}] = true
				}
			}
		}
		if diff := cmp.Diff(want, w.book.conflicts(), cmp.AllowUnexported(pair{}, conflict{})); diff != "" {
			t.Fatalf("seed %d: conflicts (-want +got):\n%s", seed, diff)
		}
	}
}

// asks is the label that a pod of these tests asks for.
func asks(pod *corev1.Pod) label {
	c := pod.Spec.SecurityContext
	if c.SELinuxChangePolicy != nil || c.SELinuxOptions == nil {
		return ""
	}
	return label("::" + c.SELinuxOptions.Type + ":" + c.SELinuxOptions.Level)
}
