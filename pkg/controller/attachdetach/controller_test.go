package attachdetach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// running is a controller that runs on a fake API server.
type running struct {
	*fixture.Rig
	t *testing.T
	c *Controller
}

func run(t *testing.T, o Options, objects ...runtime.Object) *running {
	t.Helper()
	client := fake.NewClientset(objects...)
	rig := fixture.New(client, noon)
	r := &running{Rig: rig, t: t, c: controllerOf(t, rig, o)}
	fixture.Run(t, client, func(ctx context.Context) { r.c.Run(ctx) }, rig.In)
	return r
}

func (r *running) node(name string) *corev1.Node {
	r.t.Helper()
	n, err := r.Client.CoreV1().Nodes().Get(r.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

func (r *running) attachment(node string) *storagev1.VolumeAttachment {
	va, err := r.Client.StorageV1().VolumeAttachments().Get(r.t.Context(), attachmentName(nameOf(0), node), metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return va
}

// attach plays the driver.
func (r *running) attach(node string) {
	r.t.Helper()
	fixture.Eventually(r.t, "there is an attachment", func() bool { return r.attachment(node) != nil })
	va := r.attachment(node)
	va.Status.Attached = true
	must(r.t)(r.Client.StorageV1().VolumeAttachments().UpdateStatus(r.t.Context(), va, metav1.UpdateOptions{}))
}

func (r *running) update(n *corev1.Node) {
	r.t.Helper()
	must(r.t)(r.Client.CoreV1().Nodes().Update(r.t.Context(), n, metav1.UpdateOptions{}))
}

func must(t *testing.T) func(any, error) {
	return func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

func (r *running) deletePod(name string) {
	r.t.Helper()
	if err := r.Client.CoreV1().Pods("ns").Delete(r.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *running) lists(node string) bool { return lists(r.node(node), nameOf(0)) }

func attachedTo(node string) *storagev1.VolumeAttachment {
	va := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: attachmentName(nameOf(0), node), UID: "va"}}
	va.Spec = storagev1.VolumeAttachmentSpec{Attacher: "csi.example", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: ptr.To("v0")}}
	va.Status.Attached = true
	return va
}

// reporting is a node whose status lists the volume, and has it in use or not.
func reporting(name string, inUse bool) *corev1.Node {
	n := node(name)
	n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: nameOf(0)}}
	if inUse {
		n.Status.VolumesInUse = []volumes.Name{nameOf(0)}
	}
	return n
}

func TestAVolumeComesAndGoes(t *testing.T) {
	r := run(t, Options{}, node("n1"), claim(0), pv(0), podOf("web", 0, "n1"))
	r.attach("n1")
	fixture.Eventually(t, "the status lists it", func() bool { return r.lists("n1") })
	if told := r.Told(); told != `Normal SuccessfulAttachVolume AttachVolume.Attach succeeded for volume "v0" ` {
		t.Errorf("told %q", told)
	}
	if va := r.attachment("n1"); va.Spec.Attacher != "csi.example" || va.Spec.NodeName != "n1" || *va.Spec.Source.PersistentVolumeName != "v0" {
		t.Errorf("made %+v", va.Spec)
	}
	r.deletePod("web")
	fixture.Eventually(t, "it is detached", func() bool { return r.attachment("n1") == nil && !r.lists("n1") })
	fixture.Eventually(t, "nothing is remembered of it", func() bool { return len(r.c.book.all()) == 0 })
	if told := r.Told(); told != "" {
		t.Errorf("told %q of a detach", told)
	}
	order := []string{}
	for _, a := range r.Client.Actions() {
		if words := a.GetVerb() + " " + a.GetResource().Resource; slices.Contains([]string{"patch nodes", "get nodes", "delete volumeattachments"}, words) {
			order = append(order, words)
		}
	}
	if got := strings.Join(slices.Compact(order), ", "); !strings.Contains(got, "patch nodes, get nodes, delete volumeattachments") {
		t.Errorf("did %v", order)
	}
}

func TestObjectsMayComeInAnyOrder(t *testing.T) {
	objects := []runtime.Object{node("n1"), claim(0), pv(0), podOf("web", 0, "n1")}
	for last := range objects {
		t.Run(fmt.Sprintf("%T comes last", objects[last]), func(t *testing.T) {
			r := run(t, Options{}, slices.Delete(slices.Clone(objects), last, last+1)...)
			if err := r.Client.Tracker().Add(objects[last]); err != nil {
				t.Fatal(err)
			}
			r.attach("n1")
			fixture.Eventually(t, "the status lists it", func() bool { return r.lists("n1") })
		})
	}
	t.Run("a node becomes managed", func(t *testing.T) {
		n := node("n1")
		n.Annotations = nil
		r := run(t, Options{}, n, claim(0), pv(0), podOf("web", 0, "n1"))
		r.update(node("n1"))
		r.attach("n1")
	})
	t.Run("a label names the zone of a migrated volume", func(t *testing.T) {
		volume := pv(0)
		volume.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "disk"}}
		r := run(t, Options{}, node("n1"), claim(0), volume, podOf("web", 0, "n1"))
		attached := func(zone string) func() bool {
			return func() bool {
				name := volumes.Attachment("pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/"+zone+"/disks/disk", "n1")
				_, err := r.Client.StorageV1().VolumeAttachments().Get(t.Context(), name, metav1.GetOptions{})
				return err == nil
			}
		}
		fixture.Eventually(t, "it is attached without a zone", attached("UNSPECIFIED"))
		volume = volume.DeepCopy()
		volume.Labels = map[string]string{corev1.LabelTopologyZone: "z"}
		must(t)(r.Client.CoreV1().PersistentVolumes().Update(t.Context(), volume, metav1.UpdateOptions{}))
		fixture.Eventually(t, "it is attached in its zone, as kubelets that read it now call it", attached("z"))
	})
	t.Run("a bound claim gets its owner", func(t *testing.T) {
		its, volume, pod := claim(0), pv(0), podOf("web", 0, "n1")
		its.Name, volume.Spec.ClaimRef.Name = "web-data", "web-data"
		pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
		r := run(t, Options{}, node("n1"), its, volume, pod)
		fixture.Eventually(t, "it has looked", func() bool { return r.c.Snapshot().Counts.Syncs > 0 && r.c.Len() == 0 })
		owned := its.DeepCopy()
		owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: pod.UID, Controller: ptr.To(true)}}
		must(t)(r.Client.CoreV1().PersistentVolumeClaims("ns").Update(t.Context(), owned, metav1.UpdateOptions{}))
		r.attach("n1")
	})
}

func TestAProcessThatTakesOverWritesNothing(t *testing.T) {
	r := run(t, Options{}, reporting("n1", true), claim(0), pv(0), podOf("web", 0, "n1"), attachedTo("n1"))
	fixture.Eventually(t, "it has looked", func() bool { return r.c.Snapshot().Counts.Syncs > 2 && r.c.Len() == 0 })
	for _, a := range r.Client.Actions() {
		if verb := a.GetVerb(); verb != "list" && verb != "watch" {
			t.Errorf("asked to %s %s", verb, a.GetResource().Resource)
		}
	}
	if told := r.Told(); told != "" {
		t.Errorf("told %q", told)
	}
}

func TestWhatIsLeftOfAnEarlierProcess(t *testing.T) {
	t.Run("not in use", func(t *testing.T) {
		r := run(t, Options{}, reporting("n1", false), claim(0), pv(0), attachedTo("n1"))
		fixture.Eventually(t, "it is detached", func() bool { return r.attachment("n1") == nil && !r.lists("n1") })
	})
	t.Run("in use", func(t *testing.T) {
		r := run(t, Options{}, reporting("n1", true), claim(0), pv(0), attachedTo("n1"))
		fixture.Eventually(t, "it waits", func() bool { return waits(r.c, "n1") })
		if r.attachment("n1") == nil || !r.lists("n1") {
			t.Error("it has left the node")
		}
		r.update(reporting("n1", false))
		fixture.Eventually(t, "it is detached", func() bool { return r.attachment("n1") == nil && !r.lists("n1") })
	})
	t.Run("an object that no node speaks of", func(t *testing.T) {
		r := run(t, Options{}, node("n1"), claim(0), pv(0), attachedTo("n1"))
		fixture.Eventually(t, "it waits", func() bool { return waits(r.c, "n1") })
		n := node("n1")
		n.Labels = map[string]string{"seen": "again"}
		r.update(n)
		fixture.Eventually(t, "it is detached", func() bool { return r.attachment("n1") == nil })
	})
	t.Run("an object of a node that is gone", func(t *testing.T) {
		r := run(t, Options{}, claim(0), pv(0), attachedTo("n1"))
		fixture.Eventually(t, "it waits", func() bool { return waits(r.c, "n1") })
		if r.Clock.Step(forceAfter - time.Second); r.attachment("n1") == nil {
			t.Error("it did not wait for six minutes")
		}
		r.Clock.Step(2 * time.Second)
		fixture.Eventually(t, "it is detached", func() bool {
			r.Clock.Step(time.Second) // a timer that was set after the step
			return r.attachment("n1") == nil
		})
	})
}

func TestAnObjectGoesAlthoughItsDriverSaysItIsNotAttached(t *testing.T) {
	r := run(t, Options{}, reporting("n1", true), claim(0), pv(0), attachedTo("n1"), podOf("web", 0, "n1"))
	fixture.Eventually(t, "its pod is known", func() bool { return r.c.book.volume(nameOf(0)).pairs["n1"].wanted })
	r.deletePod("web")
	fixture.Eventually(t, "it waits", func() bool { return waits(r.c, "n1") })
	va := r.attachment("n1")
	va.Status.Attached = false
	must(t)(r.Client.StorageV1().VolumeAttachments().UpdateStatus(t.Context(), va, metav1.UpdateOptions{}))
	fixture.Eventually(t, "the status lists it no longer", func() bool { return !r.lists("n1") })
	if r.attachment("n1") == nil {
		t.Fatal("it has left a node that has it in use")
	}
	n := reporting("n1", false)
	n.Status.VolumesAttached = nil
	r.update(n)
	fixture.Eventually(t, "it is gone", func() bool { return r.attachment("n1") == nil })
}

// Before it died, the earlier process wanted the volume on the node where a pod still waits for it.
func TestAnAttachmentThatComesLateToWhereItIsWantedGoesWithThePod(t *testing.T) {
	r := run(t, Options{}, reporting("n1", true), node("n2"), claim(0), pv(0), attachedTo("n1"), podOf("web", 0, "n2"))
	onSecond := func() pair { return r.c.book.volume(nameOf(0)).pairs["n2"] }
	fixture.Eventually(t, "it is wanted elsewhere", func() bool { return onSecond().wanted })
	late := attachedTo("n2")
	late.Status.Attached = false
	must(t)(r.Client.StorageV1().VolumeAttachments().Create(t.Context(), late, metav1.CreateOptions{}))
	fixture.Eventually(t, "it is noticed", func() bool { return onSecond().state == uncertain && onSecond().wanted })
	r.deletePod("web")
	fixture.Eventually(t, "its detach waits", func() bool { return waits(r.c, "n2") })
	n := node("n2")
	n.Labels = map[string]string{"seen": "again"}
	r.update(n)
	fixture.Eventually(t, "it is detached", func() bool { return r.attachment("n2") == nil })
	if r.attachment("n1") == nil {
		t.Error("it has left the node that uses it")
	}
}

// waits reports whether the detach of the volume from a node waits.
func waits(c *Controller, node string) bool { return c.book.volume(nameOf(0)).pairs[node].waits }

func TestNothingLeavesOnAReadThatFailed(t *testing.T) {
	for name, answer := range map[string]func(*running){
		"the node cannot be read": func(r *running) { r.Fail("get", "nodes", errors.New("away")) },
		"the node uses it, which the cache does not show": func(r *running) {
			r.Client.PrependReactor("get", "nodes", func(ktesting.Action) (bool, runtime.Object, error) { return true, reporting("n1", true), nil })
		},
		"the status lists it, which the cache does not show": func(r *running) {
			r.Client.PrependReactor("get", "nodes", func(ktesting.Action) (bool, runtime.Object, error) { return true, reporting("n1", false), nil })
		},
		"the status cannot be written": func(r *running) { r.Fail("patch", "nodes", errors.New("no")) },
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, Options{}, reporting("n1", true), claim(0), pv(0), attachedTo("n1"))
			fixture.Eventually(t, "it waits", func() bool { return waits(r.c, "n1") })
			answer(r)
			failures := r.c.Snapshot().Counts.Errors
			r.update(reporting("n1", false))
			fixture.Eventually(t, "it was tried and failed", func() bool { return r.c.Snapshot().Counts.Errors > failures })
			for _, a := range r.Client.Actions() {
				if a.Matches("delete", "volumeattachments") {
					t.Error("it was detached")
				}
			}
		})
	}
}

func TestNobodyIsToldOfAVolumeThatIsAboutToLeave(t *testing.T) {
	r := run(t, Options{}, reporting("n1", true), node("n2"), claim(0), pv(0), attachedTo("n1"))
	fixture.Eventually(t, "it waits", func() bool { return waits(r.c, "n1") })
	answer := make(chan struct{})
	r.Client.PrependReactor("patch", "nodes", func(ktesting.Action) (bool, runtime.Object, error) {
		<-answer
		return true, nil, errors.New("no")
	})
	if err := r.Client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), reporting("n1", false), ""); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "it leaves", func() bool { return r.c.book.volume(nameOf(0)).pairs["n1"].leaving })
	if err := r.Client.Tracker().Add(podOf("web", 0, "n2")); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "it is wanted elsewhere", func() bool { return r.c.book.volume(nameOf(0)).pairs["n2"].wanted })
	if told := r.Told(); told != "" {
		t.Errorf("told %q before the answer", told)
	}
	close(answer)
	fixture.Eventually(t, "it stays, and an event says so", func() bool { return strings.Contains(r.Told(), "Multi-Attach error") })
}

func TestTheStatusOfANodeIsWrittenForTheVersionThatWasRead(t *testing.T) {
	r := run(t, Options{}, reporting("n1", true), claim(0), pv(0), attachedTo("n1"))
	fixture.Eventually(t, "it waits", func() bool { return waits(r.c, "n1") })
	var mu sync.Mutex
	var versions []string
	r.Client.PrependReactor("get", "nodes", func(ktesting.Action) (bool, runtime.Object, error) {
		live := reporting("n1", false)
		live.ResourceVersion = "77"
		live.Status.VolumesAttached = nil
		return true, live, nil
	})
	r.Client.PrependReactor("patch", "nodes", func(a ktesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		var patch struct{ Metadata metav1.ObjectMeta }
		if err := json.Unmarshal(a.(ktesting.PatchAction).GetPatch(), &patch); err != nil {
			return true, nil, err
		}
		if versions = append(versions, patch.Metadata.ResourceVersion); patch.Metadata.ResourceVersion != "77" {
			return true, nil, apierrors.NewConflict(corev1.Resource("nodes"), "n1", errors.New("changed"))
		}
		return false, nil, nil
	})
	failures := r.c.Snapshot().Counts.Errors
	r.update(reporting("n1", false))
	fixture.Eventually(t, "it is detached", func() bool { return r.attachment("n1") == nil })
	mu.Lock()
	defer mu.Unlock()
	if len(versions) != 2 || versions[1] != "77" || r.c.Snapshot().Counts.Errors != failures {
		t.Errorf("patches of the versions %q, %d failures", versions, r.c.Snapshot().Counts.Errors-failures)
	}
}

func TestAClaimThatIsGoneTakesNothingFromItsPod(t *testing.T) {
	r := run(t, Options{}, reporting("n1", false), claim(0), pv(0), podOf("web", 0, "n1"), attachedTo("n1"))
	wanted := func() bool { return r.c.book.volume(nameOf(0)).pairs["n1"].wanted }
	fixture.Eventually(t, "it is wanted", wanted)
	syncs := r.c.Snapshot().Counts.Syncs
	if err := r.Client.CoreV1().PersistentVolumeClaims("ns").Delete(t.Context(), "c0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "it has looked", func() bool { return r.c.Snapshot().Counts.Syncs > syncs && r.c.Len() == 0 })
	if !wanted() || r.attachment("n1") == nil {
		t.Error("the volume of a live pod is detached")
	}
	r.deletePod("web")
	fixture.Eventually(t, "it is detached when the pod is gone", func() bool { return r.attachment("n1") == nil && !r.lists("n1") })
}

func TestADriverThatNeedsNoAttaching(t *testing.T) {
	driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "csi.example"}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(true)}}
	r := run(t, Options{}, driver, reporting("n1", false), claim(0), pv(0), podOf("web", 0, "n1"), attachedTo("n1"))
	fixture.Eventually(t, "it is wanted", func() bool { return r.c.book.volume(nameOf(0)).pairs["n1"].wanted })
	now := driver.DeepCopy()
	now.Spec.AttachRequired = ptr.To(false)
	must(t)(r.Client.StorageV1().CSIDrivers().Update(t.Context(), now, metav1.UpdateOptions{}))
	fixture.Eventually(t, "it is detached", func() bool { return r.attachment("n1") == nil && !r.lists("n1") })
	must(t)(r.Client.StorageV1().CSIDrivers().Update(t.Context(), driver, metav1.UpdateOptions{}))
	r.attach("n1")
}

func TestALostAttachmentIsNoticedUnlessThatIsTurnedOff(t *testing.T) {
	for _, off := range []bool{false, true} {
		t.Run(fmt.Sprintf("off %t", off), func(t *testing.T) {
			r := run(t, Options{WithoutSync: off}, reporting("n1", false), claim(0), pv(0), podOf("web", 0, "n1"), attachedTo("n1"))
			fixture.Eventually(t, "it is known", func() bool { return r.c.book.volume(nameOf(0)).pairs["n1"].known })
			syncs := r.c.Snapshot().Counts.Syncs
			if err := r.Client.StorageV1().VolumeAttachments().Delete(t.Context(), attachmentName(nameOf(0), "n1"), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			if !off {
				r.attach("n1")
				fixture.Eventually(t, "the status lists it again", func() bool { return r.lists("n1") })
				return
			}
			fixture.Eventually(t, "it has looked", func() bool { return r.c.Snapshot().Counts.Syncs > syncs && r.c.Len() == 0 })
			if r.attachment("n1") != nil {
				t.Error("it was made again")
			}
		})
	}
}

func TestANodeThatIsGoneIsForgottenWithItsPods(t *testing.T) {
	r := run(t, Options{}, reporting("n1", false), claim(0), pv(0), podOf("web", 0, "n1"), attachedTo("n1"))
	fixture.Eventually(t, "it is wanted", func() bool { return r.c.book.volume(nameOf(0)).pairs["n1"].wanted })
	if err := r.Client.CoreV1().Nodes().Delete(t.Context(), "n1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "it is known to be gone", func() bool { return !r.c.book.standingThere("n1") })
	if !r.c.book.managed("n1") || r.attachment("n1") == nil {
		t.Error("its pods want their volume still")
	}
	r.deletePod("web")
	fixture.Eventually(t, "it is detached", func() bool { return r.attachment("n1") == nil })
	fixture.Eventually(t, "the node is forgotten", func() bool { return !r.c.book.managed("n1") })
	for _, a := range r.Client.Actions() {
		if a.Matches("patch", "nodes") {
			t.Error("the status of a node that is gone was written")
		}
	}
}

// standingThere reports whether the node is there as far as the book knows.
func (b *book) standingThere(node string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.nodes[node].gone
}
