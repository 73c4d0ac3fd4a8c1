package attachdetach

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

// A world has nodes with kubelets, a driver, people who make and delete pods, and a
// manager whose caches are behind, whose answers are lost and that is killed between
// any two writes. Each volume is for one node only.
type world struct {
	*server
	t       testing.TB
	chance  *rand.Rand
	manager *manager
	// former led before, and goes on for as many turns as are left.
	former *manager
	left   int
	// mounted is what the kubelets have mounted, by node.
	mounted map[string]map[volumes.Name]bool
	// troubles is how many more things may go wrong.
	troubles int
	// late are the writes of a process that was killed which the API server has not taken yet.
	late   []func()
	pods   int
	notes  []string
	broken string
}

const worldVolumes = 3

var worldNodes = []string{"n1", "n2", "n3"}

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{server: newServer(), t: t, chance: rand.New(rand.NewPCG(seed, 7)), mounted: map[string]map[volumes.Name]bool{}, troubles: 12}
	for _, name := range worldNodes {
		w.mounted[name] = map[volumes.Name]bool{}
		w.write(nodesKind, nil, node(name))
	}
	for i := range worldVolumes {
		w.write(claimsKind, nil, claim(i))
		w.write(pvsKind, nil, pv(i))
	}
	w.server.judge = w.judge
	w.manager = newManager(w)
	return w
}

func (w *world) say(format string, args ...any) {
	w.notes = append(w.notes, fmt.Sprintf(format, args...))
}

func (w *world) break_(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
	}
}

// judge looks at each write before it takes place.
func (w *world) judge(kind string, before, after any) {
	if va, is := before.(*storagev1.VolumeAttachment); is && va.DeletionTimestamp == nil {
		if after == nil || after.(*storagev1.VolumeAttachment).DeletionTimestamp != nil {
			name, on := volumeOf(va), w.get(nodesKind, va.Spec.NodeName)
			if n, there := on.(*corev1.Node); there && slices.Contains(n.Status.VolumesInUse, name) {
				w.break_("%s is detached from %s, which has it in use", name, n.Name)
			}
			if n, there := on.(*corev1.Node); there && lists(n, name) {
				w.break_("%s is detached from %s, whose status lists it", name, n.Name)
			}
		}
	}
	if n, is := after.(*corev1.Node); is {
		for _, listed := range n.Status.VolumesAttached {
			va, there := w.get(vasKind, attachmentName(listed.Name, n.Name)).(*storagev1.VolumeAttachment)
			if !there || !va.Status.Attached {
				w.break_("the status of %s lists %s, which is not attached", n.Name, listed.Name)
			}
		}
	}
}

func lists(n *corev1.Node, name volumes.Name) bool {
	return slices.ContainsFunc(n.Status.VolumesAttached, func(a corev1.AttachedVolume) bool { return a.Name == name })
}

// invariants are of what is mounted.
func (w *world) invariants() {
	for i := range worldVolumes {
		name, on := nameOf(i), []string{}
		for _, n := range worldNodes {
			if !w.mounted[n][name] {
				continue
			}
			on = append(on, n)
			if va, is := w.get(vasKind, attachmentName(name, n)).(*storagev1.VolumeAttachment); !is || !va.Status.Attached || va.DeletionTimestamp != nil {
				w.break_("%s is mounted on %s and not attached", name, n)
			}
		}
		if len(on) > 1 {
			w.break_("%s is mounted on %v", name, on)
		}
	}
}

// people make and delete pods.
func (w *world) people() bool {
	if w.troubles == 0 {
		return false
	}
	w.troubles--
	all := w.all(podsKind)
	if len(all) > 2 || len(all) > 0 && w.chance.IntN(2) == 0 {
		pod := all[w.chance.IntN(len(all))].(*corev1.Pod)
		w.say("delete pod %s", pod.Name)
		w.write(podsKind, pod, nil)
		return true
	}
	w.pods++
	pod := podOf(fmt.Sprintf("p%d", w.pods), w.chance.IntN(worldVolumes), worldNodes[w.chance.IntN(len(worldNodes))])
	w.say("make pod %s on %s", pod.Name, pod.Spec.NodeName)
	w.write(podsKind, nil, pod)
	return true
}

// kubelet does one thing on a node: it says that a volume is in use, mounts it when it
// stands among those attached, unmounts it, and says that it is not in use any more.
func (w *world) kubelet(name string) bool {
	n := w.get(nodesKind, name).(*corev1.Node)
	wanted := map[volumes.Name]bool{}
	for _, item := range w.all(podsKind) {
		if pod := item.(*corev1.Pod); pod.Spec.NodeName == name {
			wanted[nameOfPod(pod)] = true
		}
	}
	for i := range worldVolumes {
		volume := nameOf(i)
		inUse := slices.Contains(n.Status.VolumesInUse, volume)
		switch {
		case wanted[volume] && !inUse:
			w.say("%s uses %s", name, volume)
			w.change(n, func(n *corev1.Node) { n.Status.VolumesInUse = append(n.Status.VolumesInUse, volume) })
		case wanted[volume] && !w.mounted[name][volume] && lists(n, volume):
			w.say("%s mounts %s", name, volume)
			w.mounted[name][volume] = true
		case !wanted[volume] && w.mounted[name][volume]:
			w.say("%s unmounts %s", name, volume)
			w.mounted[name][volume] = false
		case !wanted[volume] && inUse:
			w.say("%s no longer uses %s", name, volume)
			w.change(n, func(n *corev1.Node) {
				n.Status.VolumesInUse = slices.DeleteFunc(n.Status.VolumesInUse, func(v volumes.Name) bool { return v == volume })
			})
		default:
			continue
		}
		return true
	}
	return false
}

func (w *world) change(n *corev1.Node, how func(*corev1.Node)) {
	after := n.DeepCopy()
	how(after)
	w.write(nodesKind, n, after)
}

// driver attaches and detaches, and fails at times.
func (w *world) driver() bool {
	for _, item := range w.all(vasKind) {
		va := item.(*storagev1.VolumeAttachment)
		after := va.DeepCopy()
		fails := w.troubles > 0 && w.chance.IntN(5) == 0
		switch {
		case va.DeletionTimestamp != nil && fails && va.Status.DetachError == nil:
			after.Status.DetachError = &storagev1.VolumeError{Message: "busy"}
		case va.DeletionTimestamp != nil:
			after = nil
		case !va.Status.Attached && fails && va.Status.AttachError == nil:
			after.Status.AttachError = &storagev1.VolumeError{Message: "no room"}
		case !va.Status.Attached:
			after.Status.Attached, after.Status.AttachError = true, nil
		default:
			continue
		}
		w.say("the driver answers about %s on %s", volumeOf(va), va.Spec.NodeName)
		if after == nil {
			w.write(vasKind, va, nil)
		} else {
			w.write(vasKind, va, after)
		}
		return true
	}
	return false
}

// settle plays until nothing is left to do.
func (w *world) settle() {
	actors := []func() bool{
		w.people, w.driver, w.manager1, w.manager1, w.deliver, w.deliver, w.arrive, w.goOn, w.goOn,
		func() bool { return w.kubelet("n1") }, func() bool { return w.kubelet("n2") }, func() bool { return w.kubelet("n3") },
	}
	for steps := 0; ; steps++ {
		did := false
		for _, i := range w.chance.Perm(len(actors)) {
			if actors[i]() {
				did = true
			}
			if w.invariants(); w.broken != "" {
				return
			}
		}
		if !did && !w.manager.next() {
			return
		}
		if steps > 3000 {
			w.break_("not settled")
			return
		}
	}
}

func (w *world) manager1() bool { return w.manager.turn() }
func (w *world) deliver() bool  { return w.manager.deliver() }

// arrive lets a late write take place, some time after the next manager has begun.
func (w *world) arrive() bool {
	if len(w.late) == 0 || w.chance.IntN(6) > 0 {
		return len(w.late) > 0
	}
	w.say("a late write arrives")
	write := w.late[0]
	w.late = w.late[1:]
	write()
	return true
}

// settled says what is not as it should be at the end.
func (w *world) settled() string {
	var odd []string
	for i := range worldVolumes {
		name, wants := nameOf(i), map[string]bool{}
		for _, item := range w.all(podsKind) {
			if pod := item.(*corev1.Pod); nameOfPod(pod) == name {
				wants[pod.Spec.NodeName] = true
			}
		}
		var on []string
		for _, n := range worldNodes {
			va := w.get(vasKind, attachmentName(name, n))
			if va != nil {
				on = append(on, n)
			}
			if !wants[n] && (va != nil || lists(w.get(nodesKind, n).(*corev1.Node), name)) {
				odd = append(odd, fmt.Sprintf("%s is left on %s", name, n))
			}
		}
		// Where an attach has failed an object may be left, which is in nobody's way.
		if len(wants) > 0 && !slices.ContainsFunc(on, func(n string) bool { return w.mounted[n][name] }) {
			odd = append(odd, fmt.Sprintf("%s is wanted on %v, attached to %v and mounted: %v", name, wants, on, w.mounted))
		}
	}
	return strings.Join(odd, "; ")
}

func TestInAWorldNoVolumeIsTakenFromWhoUsesIt(t *testing.T) {
	for seed := range testworld.Seeds(t, 400) {
		w := newWorld(t, seed)
		w.settle()
		if w.broken == "" {
			// A node that was not seen again may keep what was found as an object only.
			for _, name := range worldNodes {
				n := w.get(nodesKind, name).(*corev1.Node)
				w.change(n, func(n *corev1.Node) { n.Labels = map[string]string{"seen": "again"} })
			}
			w.settle()
		}
		if w.broken == "" {
			w.broken = w.settled()
		}
		if w.broken != "" {
			t.Fatalf("seed %d: %s\n%s", seed, w.broken, strings.Join(w.notes[max(0, len(w.notes)-120):], "\n"))
		}
	}
}

func node(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{managedBy: "true"}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func nameOf(i int) volumes.Name { return volumes.CSIName("csi.example", fmt.Sprintf("h%d", i)) }

func nameOfPod(pod *corev1.Pod) volumes.Name {
	return volumes.CSIName("csi.example", "h"+strings.TrimPrefix(pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName, "c"))
}

func volumeOf(va *storagev1.VolumeAttachment) volumes.Name {
	return volumes.CSIName("csi.example", "h"+strings.TrimPrefix(*va.Spec.Source.PersistentVolumeName, "v"))
}

func pv(i int) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("v%d", i), UID: types.UID(fmt.Sprintf("uid-v%d", i))},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			ClaimRef:               &corev1.ObjectReference{Namespace: "ns", Name: fmt.Sprintf("c%d", i), UID: types.UID(fmt.Sprintf("uid-c%d", i))},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi.example", VolumeHandle: fmt.Sprintf("h%d", i)}},
		},
	}
}

func claim(i int) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("c%d", i), UID: types.UID(fmt.Sprintf("uid-c%d", i))},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: fmt.Sprintf("v%d", i)},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
}

func podOf(name string, volume int, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{NodeName: node, Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprintf("c%d", volume)}}}}},
	}
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
