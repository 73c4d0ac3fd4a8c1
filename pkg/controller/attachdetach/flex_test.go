package attachdetach

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

const flexName = "example/flex/v0"

// flexDriver is the one FlexVolume driver of a host. It gives each attachment a device of its own.
type flexDriver struct {
	mu       sync.Mutex
	missing  bool
	attached map[string]bool // by node
	calls    []string
	onChange func(string)
}

func (d *flexDriver) called(format string, args ...any) {
	d.calls = append(d.calls, fmt.Sprintf(format, args...))
}

func (d *flexDriver) Ready() bool { return true }

func (d *flexDriver) Attaches(driver string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return driver == "example/flex" && !d.missing
}

func (d *flexDriver) Attach(_ context.Context, volume volumes.Flex, title, node string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.called("attach %s of %s to %s", title, volume.Driver, node)
	if d.attached == nil {
		d.attached = map[string]bool{}
	}
	d.attached[node] = true
	return fmt.Sprintf("/dev/%d", len(d.calls)), nil
}

func (d *flexDriver) Attached(_ context.Context, _ volumes.Flex, title, node string) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.called("isattached %s to %s", title, node)
	return d.attached[node], nil
}

func (d *flexDriver) Detach(_ context.Context, driver, title, node string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.called("detach %s of %s from %s", title, driver, node)
	delete(d.attached, node)
	return nil
}

func (d *flexDriver) OnChange(do func(driver string)) { d.onChange = do }

// told returns what the driver was told since it was last asked.
func (d *flexDriver) told() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() { d.calls = nil }()
	return strings.Join(d.calls, ", ")
}

func (d *flexDriver) asked(what string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.ContainsFunc(d.calls, func(call string) bool { return strings.HasPrefix(call, what) })
}

func (d *flexDriver) change(how func()) {
	d.mu.Lock()
	how()
	d.mu.Unlock()
	d.onChange("example/flex")
}

func flexPV() *corev1.PersistentVolume {
	v := pv(0)
	v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{FlexVolume: &corev1.FlexPersistentVolumeSource{Driver: "example/flex"}}
	return v
}

// device is where the status of a node says that a volume is; false if it does not list it.
func (r *running) device(name volumes.Name, node string) (string, bool) {
	for _, a := range r.node(node).Status.VolumesAttached {
		if a.Name == name {
			return a.DevicePath, true
		}
	}
	return "", false
}

func TestAFlexVolumeComesAndGoes(t *testing.T) {
	d := &flexDriver{}
	r := run(t, Options{Drivers: d}, node("n1"), claim(0), flexPV(), podOf("web", 0, "n1"))
	onDevice := func(want string) {
		t.Helper()
		fixture.Eventually(t, "the status lists it at "+want, func() bool { device, _ := r.device(flexName, "n1"); return device == want })
	}
	onDevice("/dev/1")
	if told := d.told(); told != "attach v0 of example/flex to n1" {
		t.Errorf("the driver was told to %s", told)
	}
	askAgain := func(until string) {
		t.Helper()
		fixture.Eventually(t, "the driver is asked to "+until, func() bool {
			r.Clock.Step(time.Minute)
			return d.asked(until)
		})
	}
	askAgain("isattached")
	onDevice("/dev/1")
	if d.asked("attach") {
		t.Errorf("what is attached is attached again: %s", d.told())
	}
	d.told()
	d.change(func() { d.attached = nil })
	askAgain("attach")
	fixture.Eventually(t, "it has another device", func() bool { device, is := r.device(flexName, "n1"); return is && device != "/dev/1" })
	d.told()
	r.deletePod("web")
	fixture.Eventually(t, "nothing is remembered of it", func() bool {
		r.Clock.Step(time.Second) // a timer that was set after the step
		return len(r.c.book.all()) == 0
	})
	if _, listed := r.device(flexName, "n1"); listed || !strings.HasSuffix(d.told(), "detach v0 of example/flex from n1") {
		t.Errorf("the status lists it: %t", listed)
	}
}

func TestEachNodeShowsItsOwnDevice(t *testing.T) {
	volume := flexPV()
	volume.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	r := run(t, Options{Drivers: &flexDriver{}}, node("n1"), node("n2"), claim(0), volume, podOf("a", 0, "n1"), podOf("b", 0, "n2"))
	fixture.Eventually(t, "each has its device", func() bool {
		one, _ := r.device(flexName, "n1")
		two, _ := r.device(flexName, "n2")
		return one != "" && two != "" && one != two
	})
}

// What the driver says to that would be taken for its answer to the detach.
func TestADriverIsNotAskedAboutAVolumeThatNoPodWants(t *testing.T) {
	source, err := volumes.OfPV(flexPV())
	if err != nil {
		t.Fatal(err)
	}
	flex := func(v *volumeView) { v.name, v.source = flexName, source }
	left := unused
	left.looked = ago(time.Hour)
	for name, tc := range map[string]struct {
		view *volumeView
		want string
	}{
		"a pod wants it":   {of(flex, has("n1", left), wants("n1", "web")), "isattached Node n1"},
		"no pod wants it":  {of(flex, has("n1", left)), "check Node n1, detach Node n1"},
		"it is in use yet": {of(flex, has("n1", left), facts("n1", func(f *nodeFacts) { f.inUse = true })), ""},
	} {
		if got := steps(planVolume(tc.view, noon).Stages); got != tc.want {
			t.Errorf("%s: wants %q", name, got)
		}
	}
}

func TestAFlexVolumeWaitsForItsDriver(t *testing.T) {
	d := &flexDriver{missing: true}
	r := run(t, Options{Drivers: d}, node("n1"), claim(0), flexPV(), podOf("web", 0, "n1"))
	fixture.Eventually(t, "it has looked", func() bool { return r.c.Snapshot().Counts.Syncs > 1 && r.c.Len() == 0 })
	if told := d.told(); told != "" {
		t.Errorf("the driver was told to %s", told)
	}
	d.change(func() { d.missing = false })
	fixture.Eventually(t, "it is attached", func() bool { _, is := r.device(flexName, "n1"); return is })
}

func TestWhoAttachesAVolume(t *testing.T) {
	flex, err := volumes.OfPV(flexPV())
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		drivers Drivers
		want    bool
	}{
		"its driver":                 {&flexDriver{}, true},
		"nobody: the driver is gone": {&flexDriver{missing: true}, false},
		"nobody: there are none":     {nil, false},
	} {
		c := controllerOf(t, fixture.New(fake.NewClientset(), noon), Options{Drivers: tc.drivers})
		if attaches, detaches := c.attachable(flex), c.plugged(flexName); attaches != tc.want || detaches != tc.want {
			t.Errorf("%s: attaches %t, detaches %t", name, attaches, detaches)
		}
	}
}

// inline is a pod that describes its volumes itself.
func inline(name, node string, sources ...corev1.VolumeSource) *corev1.Pod {
	pod := podOf(name, 0, node)
	pod.Spec.Volumes = nil
	for i, source := range sources {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("data-%d", i), VolumeSource: source})
	}
	return pod
}

// The pods on a node say whether they only read the volume of a claim; the volume does not.
func TestWhoOnlyReadsAFlexVolume(t *testing.T) {
	for name, tc := range map[string]struct{ pv, claim, reads bool }{
		"nobody says so":  {false, false, false},
		"the volume does": {true, false, false},
		"the pod does":    {false, true, true},
		"both do":         {true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			rig := fixture.New(fake.NewClientset(), noon)
			c := controllerOf(t, rig, Options{Drivers: &flexDriver{}})
			c.book.nodeSeen("n1", true, true)
			volume, pod := flexPV(), podOf("web", 0, "n1")
			volume.Spec.FlexVolume.ReadOnly = tc.pv
			pod.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = tc.claim
			rig.Cache(t, claim(0), volume, pod)
			v := &volumeView{name: volumes.FlexName("example/flex", volume.Name)}
			if err := c.wanted(v); err != nil {
				t.Fatal(err)
			}
			if source := v.sourceAt("n1"); len(v.wants["n1"]) != 1 || source.Flex.ReadOnly != tc.reads || v.source.Flex.ReadOnly {
				t.Errorf("for the pod: %+v, for the volume alone: %+v", source.Flex, v.source.Flex)
			}
		})
	}
}

func TestAVolumeWithNothingToItsAttachment(t *testing.T) {
	for name, source := range map[volumes.Name]corev1.VolumeSource{
		"kubernetes.io/iscsi/p:i:0": {ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "p", IQN: "i"}},
		"kubernetes.io/fc/[w]":      {FC: &corev1.FCVolumeSource{WWIDs: []string{"w"}}},
	} {
		t.Run(string(name), func(t *testing.T) {
			nfs := corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s"}}
			r := run(t, Options{}, node("n1"), inline("web", "n1", nfs, source))
			fixture.Eventually(t, "the status lists it", func() bool { _, is := r.device(name, "n1"); return is })
			if told := r.Told(); told != `Normal SuccessfulAttachVolume AttachVolume.Attach succeeded for volume "data-1" ` {
				t.Errorf("told %q", told)
			}
			r.deletePod("web")
			fixture.Eventually(t, "nothing is remembered of it", func() bool { return len(r.c.book.all()) == 0 })
			if n := r.node("n1"); len(n.Status.VolumesAttached) > 0 {
				t.Errorf("the status lists %v", n.Status.VolumesAttached)
			}
			for _, a := range r.Client.Actions() {
				if a.Matches("create", "volumeattachments") {
					t.Error("it has a VolumeAttachment")
				}
			}
		})
	}
}

func TestAVolumeThatAPodDescribesItselfHasItsSpecification(t *testing.T) {
	ebs := corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol-1"}}
	r := run(t, Options{}, node("n1"), inline("web", "n1", ebs))
	name := attachmentName(volumes.CSIName("ebs.csi.aws.com", "vol-1"), "n1")
	fixture.Eventually(t, "there is an attachment", func() bool {
		va, err := r.Client.StorageV1().VolumeAttachments().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		if spec := va.Spec.Source.InlineVolumeSpec; va.Spec.Source.PersistentVolumeName != nil || spec == nil || spec.CSI.VolumeHandle != "vol-1" {
			t.Errorf("attaches %+v", va.Spec.Source)
		}
		return true
	})
}

// iscsiPV is a PersistentVolume that means the same volume as all others of this function.
func iscsiPV(i int) *corev1.PersistentVolume {
	v := pv(i)
	v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: "p", IQN: "i"}}
	return v
}

func TestOfTwoClaimsForAVolumeTheFirstInThePodSaysWhatItIs(t *testing.T) {
	for want, order := range map[string][]int{"v0": {0, 1}, "v1": {1, 0}} {
		rig := fixture.New(fake.NewClientset(), noon)
		c := controllerOf(t, rig, Options{})
		c.book.nodeSeen("n1", true, true)
		pod, second := podOf("web", order[0], "n1"), podOf("web", order[1], "n1")
		second.Spec.Volumes[0].Name = "second"
		pod.Spec.Volumes = append(pod.Spec.Volumes, second.Spec.Volumes[0])
		rig.Cache(t, claim(0), iscsiPV(0), claim(1), iscsiPV(1), pod)
		v := &volumeView{name: "kubernetes.io/iscsi/p:i:0"}
		if err := c.wanted(v); err != nil {
			t.Fatal(err)
		}
		if got := v.sourceAt("n1").Title; got != want {
			t.Errorf("with the claims in the order of %v it is %s", order, got)
		}
	}
}

func TestWhoUsesAVolumeSaysWhatItIs(t *testing.T) {
	own := inline("own", "n1", corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{TargetPortal: "p", IQN: "i"}})
	ended := podOf("ended", 0, "n1")
	ended.Status.Phase = corev1.PodSucceeded
	for name, tc := range map[string]struct {
		pvs   int
		pods  []*corev1.Pod
		want  string // the title of the volume
		wants int
	}{
		"nobody uses any":       {2, nil, "v0", 0},
		"one of the second":     {2, []*corev1.Pod{podOf("b", 1, "n1")}, "v1", 1},
		"one of each":           {2, []*corev1.Pod{podOf("a", 0, "n1"), podOf("b", 1, "n1")}, "v0", 2},
		"one that describes it": {2, []*corev1.Pod{own}, "data-0", 1},
		"one that describes it, and there is nothing else": {0, []*corev1.Pod{own}, "data-0", 1},
		"one that describes it, and one of the second":     {2, []*corev1.Pod{own, podOf("b", 1, "n1")}, "v1", 2},
		"one that has ended":                               {2, []*corev1.Pod{ended}, "v0", 0},
		"one on a node that is not managed":                {2, []*corev1.Pod{podOf("b", 1, "n2")}, "v1", 0},
	} {
		t.Run(name, func(t *testing.T) {
			rig := fixture.New(fake.NewClientset(), noon)
			c := controllerOf(t, rig, Options{})
			c.book.nodeSeen("n1", true, true)
			for i := range tc.pvs {
				rig.Cache(t, claim(i), iscsiPV(i))
			}
			for _, pod := range tc.pods {
				rig.Cache(t, pod)
			}
			v := &volumeView{name: "kubernetes.io/iscsi/p:i:0"}
			if err := c.wanted(v); err != nil {
				t.Fatal(err)
			}
			if v.source == nil || v.source.Title != tc.want || len(v.wants["n1"]) != tc.wants || len(v.wants["n2"]) > 0 {
				t.Errorf("it is %+v, wanted by %v", v.source, v.wants)
			}
		})
	}
}
