package selinuxwarning

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// world is a controller whose caches are filled by hand.
type world struct {
	*fixture.Rig
	*Controller
	t *testing.T
}

func newWorld(t *testing.T, objects ...runtime.Object) *world {
	t.Helper()
	rig := fixture.New(fake.NewClientset(), noon)
	core := rig.In.Core().V1()
	c, err := New(Caches{Pods: core.Pods(), Claims: core.PersistentVolumeClaims(), Volumes: core.PersistentVolumes(),
		Drivers: rig.In.Storage().V1().CSIDrivers()}, rig.Hand())
	if err != nil {
		t.Fatal(err)
	}
	rig.Cache(t, objects...)
	return &world{rig, c, t}
}

// judge judges pods in this order and returns the reasons and pods that were told.
func (w *world) judge(pods ...*corev1.Pod) []string {
	w.t.Helper()
	for _, pod := range pods {
		if err := w.Reconcile(w.t.Context(), client.ObjectKeyFromObject(pod)).Err(); err != nil {
			w.t.Fatalf("judge %s: %v", pod.Name, err)
		}
	}
	var told []string
	for _, event := range strings.Split(w.Told(), "; ") {
		if words := strings.Fields(event); len(words) > 1 {
			told = append(told, words[0]+" "+words[1])
		}
	}
	slices.Sort(told)
	return slices.Compact(told)
}

// series counts the series of the metric, by property.
func series(t *testing.T) map[string]int {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, f := range families {
		if f.GetName() != "selinux_warning_controller_selinux_volume_conflict" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "property" {
					got[l.GetValue()] += int(m.GetGauge().GetValue())
				}
			}
		}
	}
	return got
}

// shared are two claims in namespaces a and b whose volumes are one, and its driver.
func shared(mounts bool) []runtime.Object {
	claimA, pvA := bound("a", "vol-1")
	claimB, pvB := bound("b", "vol-1")
	return []runtime.Object{claimA, pvA, claimB, pvB, csiDriver(mounts)}
}

func TestTwoPodsOnAVolume(t *testing.T) {
	labels, policies, both := []string{"Normal SELinuxLabelConflict"}, []string{"Normal SELinuxChangePolicyConflict"},
		[]string{"Normal SELinuxChangePolicyConflict", "Normal SELinuxLabelConflict"}
	recursive := corev1.SELinuxChangePolicyRecursive
	for name, tc := range map[string]struct {
		one, two *corev1.Pod
		driver   bool
		told     []string
		series   map[string]int
	}{
		"two levels": {aPod("a", "one", level("s0:c1,c2")), aPod("a", "two", level("s0:c98,c99")), true, labels, map[string]int{seLinuxLabel: 2}},
		"one level":  {aPod("a", "one", level("s0:c1")), aPod("a", "two", level("s0:c1")), true, nil, map[string]int{}},
		"two policies": {withPolicy(aPod("a", "one", level("s0:c1")), recursive), aPod("a", "two", level("s0:c1")), true, both,
			map[string]int{seLinuxLabel: 2, changePolicy: 2}},
		"two policies and no level": {withPolicy(aPod("a", "one", nil), recursive), aPod("a", "two", &corev1.SELinuxOptions{Type: "t"}), true, policies,
			map[string]int{changePolicy: 2}},
		"a pod without a label is labelled file by file": {aPod("a", "one", nil), aPod("a", "two", level("s0")), true, both,
			map[string]int{seLinuxLabel: 2, changePolicy: 2}},
		"a driver without support":   {aPod("a", "one", level("s0:c1")), aPod("a", "two", level("s0:c2")), false, nil, map[string]int{}},
		"two namespaces":             {aPod("a", "one", level("s0:c1")), aPod("b", "two", level("s0:c2")), true, labels, map[string]int{seLinuxLabel: 2}},
		"one that has succeeded":     {aPod("a", "one", level("s0:c1")), inPhase(aPod("a", "two", level("s0:c2")), corev1.PodSucceeded), true, nil, map[string]int{}},
		"one that has failed":        {aPod("a", "one", level("s0:c1")), inPhase(aPod("a", "two", level("s0:c2")), corev1.PodFailed), true, nil, map[string]int{}},
		"a type that only one names": {aPod("a", "one", &corev1.SELinuxOptions{Type: "a_t", Level: "s0"}), aPod("a", "two", level("s0")), true, nil, map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(shared(tc.driver), tc.one, tc.two)...)
			if diff := cmp.Diff(tc.told, w.judge(tc.one, tc.two)); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.series, series(t)); diff != "" {
				t.Errorf("series (-want +got):\n%s", diff)
			}
			if again := w.judge(tc.one, tc.two); again != nil {
				t.Errorf("told again: %v", again)
			}
			w.In.Core().V1().Pods().Informer().GetStore().Delete(tc.two)
			if told := w.judge(tc.two); told != nil || len(series(t)) > 0 {
				t.Errorf("after one has gone: told %v, series %v", told, series(t))
			}
			if requests := w.Requests(); requests != "" {
				t.Errorf("asked the API server: %s", requests)
			}
		})
	}
}

func TestBothPodsAreTold(t *testing.T) {
	one, two := aPod("a", "one", level("s0:c1")), aPod("b", "two", level("s0:c2"))
	three := aPod("a", "three", level("s0:c1"))
	w := newWorld(t, append(shared(true), one, two, three)...)
	w.judge(one, three)
	if err := w.Reconcile(t.Context(), key{Namespace: "b", Name: "two"}).Err(); err != nil {
		t.Fatal(err)
	}
	got := w.Told()
	if strings.Count(got, `SELinuxLabel":::s0:c1" conflicts with another pod`) != 2 || strings.Count(got, `SELinuxLabel":::s0:c2" conflicts with another pod`) != 2 {
		t.Errorf("told %s", got)
	}
}

// The second of the pod's names for the volume has the label that the pod is known by then.
func TestAPodThatHasAVolumeUnderTwoNames(t *testing.T) {
	one, two, both := aPod("a", "one", level("s0:c1")), aPod("a", "two", level("s0:c2")), aPod("a", "both", nil)
	both.Spec.Containers = []corev1.Container{container(level("s0:c1"), "data"), container(level("s0:c2"), "again")}
	again := both.Spec.Volumes[0]
	again.Name = "again"
	both.Spec.Volumes = []corev1.Volume{again, both.Spec.Volumes[0]}
	w := newWorld(t, append(shared(true), one, two, both)...)
	w.judge(one, two)
	w.Told()
	for range 2 { // when it is judged again, the first name has another label than it is known by
		if err := w.Reconcile(t.Context(), client.ObjectKeyFromObject(both)).Err(); err != nil {
			t.Fatal(err)
		}
		told := w.Told()
		for _, want := range []string{`":::s0:c1" conflicts with pod two`, `":::s0:c2" conflicts with pod both`, `":::s0:c2" conflicts with pod one`, `":::s0:c1" conflicts with pod both`} {
			if strings.Count(told, want) != 1 {
				t.Errorf("told %s, want one of %s", told, want)
			}
		}
	}
	if pair := (pair{client.ObjectKeyFromObject(both), client.ObjectKeyFromObject(one), conflict{seLinuxLabel, ":::s0:c2", ":::s0:c1"}}); !w.book.conflicts()[pair] || len(w.book.conflicts()) != 4 {
		t.Errorf("conflicts: %v", w.book.conflicts())
	}
}

func TestAPodKeepsTheVolumeThatItsClaimHasLost(t *testing.T) {
	one, two, three := aPod("a", "one", level("s0:c1")), aPod("b", "two", level("s0:c2")), aPod("a", "three", level("s0:c3"))
	w := newWorld(t, append(shared(true), one, two, three)...)
	w.judge(one)
	_, again := bound("a", "vol-2")
	w.Cache(t, again)
	if told := w.judge(one); told != nil {
		t.Errorf("told %v", told)
	}
	if told := w.judge(two); len(told) != 1 || series(t)[seLinuxLabel] != 2 {
		t.Errorf("of the volume before: told %v, series %v", told, series(t))
	}
	if told := w.judge(three); len(told) != 1 || series(t)[seLinuxLabel] != 4 {
		t.Errorf("of the volume now: told %v, series %v", told, series(t))
	}
	w.Cache(t, csiDriver(false))
	w.Reconcile(t.Context(), client.ObjectKeyFromObject(one))
	if w.Told(); len(series(t)) > 0 || w.Len() != 0 {
		t.Errorf("without labels: series %v, %d pods to judge", series(t), w.Len())
	}
}

func TestOthersAreToldWhenOneHasGone(t *testing.T) {
	one, two, three := aPod("a", "one", level("s0:c1")), aPod("a", "two", level("s0:c2")), aPod("a", "zero", level("s0:c3"))
	w := newWorld(t, append(shared(true), one, two, three)...)
	w.judge(one, two)
	w.In.Core().V1().Pods().Informer().GetStore().Delete(one)
	if told := w.judge(three); len(told) != 1 {
		t.Errorf("told %v", told)
	}
	if pair := (pair{client.ObjectKeyFromObject(two), client.ObjectKeyFromObject(three), conflict{seLinuxLabel, ":::s0:c2", ":::s0:c3"}}); !w.book.conflicts()[pair] {
		t.Errorf("no conflict of the two that are there: %v", w.book.conflicts())
	}
}

func TestAPodThatIsMadeAgainIsJudgedAgain(t *testing.T) {
	one, two := aPod("a", "one", level("s0:c1")), aPod("a", "two", level("s0:c2"))
	w := newWorld(t, append(shared(true), one, two)...)
	w.judge(one, two)
	again := two.DeepCopy()
	again.UID = "another"
	w.Cache(t, again)
	if told := w.judge(again); len(told) != 1 || len(series(t)) != 1 {
		t.Errorf("told %v, series %v", told, series(t))
	}
	other := aPod("a", "two", level("s0:c1"))
	other.UID = "a third one"
	w.Cache(t, other)
	if told := w.judge(other); told != nil || len(series(t)) > 0 {
		t.Errorf("told %v, series %v", told, series(t))
	}
}

func TestADriverThatComesToMountWithLabels(t *testing.T) {
	one, two := aPod("a", "one", level("s0:c1")), aPod("a", "two", level("s0:c2"))
	three := aPod("a", "three", level("s0:c2"))
	w := newWorld(t, append(shared(false), one, two, three)...)
	w.judge(one, two, three)
	if diff := cmp.Diff([]key{{Namespace: "a", Name: "one"}, {Namespace: "a", Name: "three"}, {Namespace: "a", Name: "two"}}, w.book.with(driver)); diff != "" {
		t.Errorf("pods of the driver (-want +got):\n%s", diff)
	}
	w.Cache(t, csiDriver(true))
	if told := w.judge(one); told != nil {
		t.Errorf("told %v before the others were judged", told)
	}
	if told := w.judge(two, three); len(told) != 1 || series(t)[seLinuxLabel] != 4 {
		t.Errorf("told %v, series %v", told, series(t))
	}
	w.In.Storage().V1().CSIDrivers().Informer().GetStore().Delete(csiDriver(true))
	if told := w.judge(one, two, three); told != nil || len(series(t)) > 0 {
		t.Errorf("told %v, series %v of a driver that is gone", told, series(t))
	}
}

func TestADriverThatChangesMeanwhileIsJudgedAgain(t *testing.T) {
	one := aPod("a", "one", level("s0:c1"))
	w := newWorld(t, append(shared(true), one)...)
	w.note(client.ObjectKeyFromObject(one), noted{one.UID, []use{{source{"csi", driver, false}, ":::s0"}}})
	if w.Len() != 1 {
		t.Error("the pod is not judged again")
	}
	w = newWorld(t, append(shared(true), one)...)
	w.note(client.ObjectKeyFromObject(one), noted{one.UID, []use{{source{"csi", driver, true}, ""}, {source{"iscsi", "", true}, ""}}})
	if w.Len() != 0 {
		t.Error("the pod is judged again although nothing has changed")
	}
}

func TestWhatWakesAPod(t *testing.T) {
	pod := aPod("a", "one", nil)
	ended, other := inPhase(pod.DeepCopy(), corev1.PodSucceeded), pod.DeepCopy()
	other.UID = "x"
	for name, tc := range map[string]struct {
		change runner.Change[corev1.Pod]
		want   bool
	}{
		"a new pod":              {runner.Change[corev1.Pod]{New: pod}, true},
		"a pod that is gone":     {runner.Change[corev1.Pod]{Old: pod}, true},
		"a pod that ends":        {runner.Change[corev1.Pod]{Old: pod, New: ended}, true},
		"another of its name":    {runner.Change[corev1.Pod]{Old: pod, New: other}, true},
		"a pod that only starts": {runner.Change[corev1.Pod]{Old: pod, New: inPhase(pod.DeepCopy(), corev1.PodRunning)}, false},
		"one that had ended":     {runner.Change[corev1.Pod]{Old: ended, New: ended}, false},
	} {
		if got := wakes(tc.change); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	claim, pv := bound("a", "vol-1")
	pending, again, its, free := claim.DeepCopy(), claim.DeepCopy(), claim.DeepCopy(), pv.DeepCopy()
	its.OwnerReferences = []metav1.OwnerReference{{Kind: "Pod", Name: "a", UID: "a", Controller: ptr.To(true)}}
	pending.Status.Phase, again.UID, free.Spec.ClaimRef = corev1.ClaimPending, "x", nil
	type claims = runner.Change[corev1.PersistentVolumeClaim]
	for name, tc := range map[string]struct {
		change claims
		want   bool
	}{
		"a claim gets its volume": {claims{Old: pending, New: claim}, true}, "a bound claim is new": {claims{New: claim}, true},
		"another of its name": {claims{Old: again, New: claim}, true}, "it stays bound": {claims{Old: claim, New: claim}, false},
		"it gets its owner": {claims{Old: claim, New: its}, true},
		"it is not bound":   {claims{New: pending}, false}, "it is gone": {claims{Old: claim}, false},
	} {
		if got := newlyBound(tc.change); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	type volumes = runner.Change[corev1.PersistentVolume]
	for name, tc := range map[string]struct {
		change volumes
		want   bool
	}{
		"a volume gets its claim": {volumes{Old: free, New: pv}, true}, "a claimed volume is new": {volumes{New: pv}, true},
		"it stays claimed": {volumes{Old: pv, New: pv}, false}, "it is free": {volumes{New: free}, false}, "it is gone": {volumes{Old: pv}, false},
	} {
		if got := newlyClaimed(tc.change); (got != nil) != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestABindingIsSeenByPodsThatExist(t *testing.T) {
	one, two := aPod("a", "one", level("s0:c1")), aPod("a", "two", level("s0:c2"))
	claim, pv := bound("a", "vol-1")
	pending := claim.DeepCopy()
	pending.Status.Phase, pending.Spec.VolumeName = corev1.ClaimPending, ""
	server := fake.NewClientset(one, two, pending, pv, csiDriver(true))
	rig := fixture.New(server, noon)
	own := Informers(server, 0)
	core := rig.In.Core().V1()
	c, err := New(Caches{Pods: own.Core().V1().Pods(), Claims: core.PersistentVolumeClaims(), Volumes: core.PersistentVolumes(),
		Drivers: rig.In.Storage().V1().CSIDrivers()}, fixture.Hand(server, rig.Events))
	if err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, server, c.Run, rig.In, own)
	if _, err := server.CoreV1().PersistentVolumeClaims("a").Update(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "both pods conflict", func() bool { return len(c.book.conflicts()) == 2 })
	if pods, _ := cache.Lookup[corev1.Pod](own.Core().V1().Pods().Informer().GetIndexer(), cache.PodsByClaim, "a/data"); len(pods) != 2 {
		t.Errorf("%d pods of the claim are found", len(pods))
	}
}
