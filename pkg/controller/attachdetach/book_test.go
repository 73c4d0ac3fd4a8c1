package attachdetach

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// at is the record of a volume that stands like this to node n1.
func at(p pair) record { return record{pairs: map[string]pair{"n1": p}} }

func sorted(names []volumes.Name) []volumes.Name {
	slices.Sort(names)
	return names
}

func TestAPodLeadsToAllItsVolumes(t *testing.T) {
	b := newBook(noon)
	wanted := pair{state: attached, wanted: true, pods: []podName{{NamespacedName: types.NamespacedName{Name: "web"}, uid: "web"}}}
	b.put("a", at(wanted))
	b.put("b", at(wanted))
	b.put("b", at(wanted))
	if got := sorted(b.wantedBy("web")); !slices.Equal(got, []volumes.Name{"a", "b"}) {
		t.Errorf("wants %v", got)
	}
	b.put("b", at(pair{state: attached}))
	if got := b.wantedBy("web"); !slices.Equal(got, []volumes.Name{"a"}) {
		t.Errorf("wants %v when it no longer wants b", got)
	}
}

// Its PersistentVolume may be gone by then.
func TestAnAttachmentLeadsToItsVolumeWhileThatHasARecord(t *testing.T) {
	c := controllerOf(t, fixture.New(fake.NewClientset(), noon), Options{})
	for _, tc := range []struct {
		name string
		is   record
		want int
	}{
		{"it is attached", at(pair{state: attached}), 1},
		{"it has left", record{}, 0},
	} {
		c.book.put(nameOf(0), tc.is)
		woken := 0
		if c.attachmentChanged(runner.Change[storagev1.VolumeAttachment]{Old: attachedTo("n1")}, nobody{&woken}); woken != tc.want {
			t.Errorf("%s: woke %d keys", tc.name, woken)
		}
	}
}

func TestAnAttachmentOfNoRecordIsKnownUntilItIsFound(t *testing.T) {
	b := newBook(noon)
	b.stray("a", "n1")
	b.stray("a", "n2")
	b.found("a", "n1")
	if got := b.straysOf("a"); !slices.Equal(got, []string{"n2"}) {
		t.Errorf("left on %v", got)
	}
	b.found("a", "n2")
	if got := b.straysOf("a"); len(got) > 0 {
		t.Errorf("left on %v when all are found", got)
	}
}

func TestAVolumeThatLeavesIsWokenByItsOwnWrite(t *testing.T) {
	b := newBook(noon)
	for _, name := range []volumes.Name{"a", "b", "c"} {
		b.put(name, at(pair{state: attached})) // changes 1 to 3
	}
	b.written("n1", reported{done: 3})
	b.put("a", at(pair{state: attached, leaving: true}))
	b.put("b", at(pair{state: attached, leaving: true}))
	for _, tc := range []struct {
		write string
		r     reported
		wakes []volumes.Name
	}{
		{"one that came before", reported{done: 3}, nil},
		{"the first", reported{done: 4}, []volumes.Name{"a"}},
		{"the first again", reported{done: 4}, nil},
		{"the second, which fails before the first is detached", reported{failed: 5, unsure: true}, []volumes.Name{"a", "b"}},
		{"the second, which fails again", reported{failed: 5, unsure: true}, nil},
		{"the second", reported{done: 5}, []volumes.Name{"b"}},
		{"one more", reported{done: 6}, nil},
		{"one that finds a volume lost", reported{done: 6, lost: []volumes.Name{"c"}}, []volumes.Name{"c"}},
	} {
		if got := sorted(b.written("n1", tc.r)); !slices.Equal(got, tc.wakes) {
			t.Errorf("%s wakes %v", tc.write, got)
		}
	}
}

func TestANodeIsWrittenWhenWhatIsAttachedToItChanges(t *testing.T) {
	b := newBook(noon)
	for _, tc := range []struct {
		name  string
		is    record
		wakes bool
	}{
		{"it may be attached", at(pair{state: uncertain}), false},
		{"it is attached", at(pair{state: attached, device: "/dev/1"}), true},
		{"nothing has changed", at(pair{state: attached, device: "/dev/1"}), false},
		{"it has another device", at(pair{state: attached, device: "/dev/2"}), true},
		{"it leaves", at(pair{state: attached, leaving: true}), true},
		{"it has left", record{}, false},
		{"it is attached anew", at(pair{state: attached}), true},
		{"it is lost", record{}, true},
	} {
		before := b.node("n1").want
		if got := b.put("a", tc.is); len(got) > 0 != tc.wakes || b.node("n1").want > before != tc.wakes {
			t.Errorf("%s: writes %v, change %d after %d", tc.name, got, b.node("n1").want, before)
		}
	}
}

// The kubelet of a node that is not managed attaches its volumes itself, and says so.
func TestTheStatusOfANodeIsLeftAloneUnlessItHasVolumes(t *testing.T) {
	listing := node("n1")
	listing.Status.VolumesAttached = []corev1.AttachedVolume{{Name: nameOf(7)}}
	for name, volumes := range map[string]int{"none": 0, "one": 1} {
		c := controllerOf(t, fixture.New(fake.NewClientset(), noon), Options{})
		for i := range volumes {
			c.book.put(nameOf(i), at(pair{state: attached}))
		}
		woken := 0
		c.nodeChanged(runner.Change[corev1.Node]{Old: node("n1"), New: listing}, nobody{&woken})
		if woken != volumes {
			t.Errorf("with %s: woke %d keys", name, woken)
		}
	}
}

func TestTheStatusOfANodeThatIsMadeAgainIsWritten(t *testing.T) {
	c := controllerOf(t, fixture.New(fake.NewClientset(), noon), Options{})
	c.book.put(nameOf(0), at(pair{state: attached}))
	again, woken := node("n1"), 0
	again.UID = "another"
	if c.nodeChanged(runner.Change[corev1.Node]{Old: node("n1"), New: again}, nobody{&woken}); woken != 1 {
		t.Errorf("woke %d keys", woken)
	}
}

func TestAttachmentsAreComparedOnceAPeriod(t *testing.T) {
	const iscsi = "kubernetes.io/iscsi/p:i:0" // has no VolumeAttachment
	refused := attachedTo("n1")
	refused.Status.Attached = false
	for name, tc := range map[string]struct {
		options    Options
		volume     volumes.Name
		attachment *storagev1.VolumeAttachment
		lost, due  bool
	}{
		"it is attached":                     {Options{}, nameOf(0), attachedTo("n1"), false, true},
		"it is not":                          {Options{}, nameOf(0), refused, true, true},
		"it is gone":                         {Options{}, nameOf(0), nil, true, true},
		"it has none":                        {Options{}, iscsi, nil, false, true},
		"it is gone, and that is turned off": {Options{WithoutSync: true}, nameOf(0), nil, false, false},
		"nothing is attached":                {Options{}, "", nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			rig := fixture.New(fake.NewClientset(), noon)
			c := controllerOf(t, rig, tc.options)
			c.recover()
			if tc.attachment != nil {
				rig.Cache(t, tc.attachment)
			}
			if c.book.nodeSeen("n1", true, true); tc.volume != "" {
				c.book.put(tc.volume, at(pair{state: attached}))
			}
			look := func() (lost, due bool) {
				o, err := c.observe(t.Context(), key{node: "n1"})
				if err != nil {
					t.Fatal(err)
				}
				p := plan(o, rig.Clock.Now())
				n := p.Note(nil).(reported)
				c.note(key{node: "n1"}, n)
				return len(n.lost) > 0, p.RequeueAt.Equal(rig.Clock.Now().Add(defaultPeriod))
			}
			if lost, due := look(); lost || due != tc.due {
				t.Errorf("at first: lost %t, due %t", lost, due)
			}
			rig.Clock.Step(defaultPeriod)
			if lost, due := look(); lost != tc.lost || due != tc.due {
				t.Errorf("after a period: lost %t, due %t", lost, due)
			}
			if lost, _ := look(); lost {
				t.Error("lost at once again")
			}
		})
	}
}

func TestAnAttachmentOfWhatIsNeverAttachedMeansNothing(t *testing.T) {
	nfs := pv(0)
	nfs.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "s"}}
	rig := fixture.New(fake.NewClientset(), noon)
	c := controllerOf(t, rig, Options{})
	rig.Cache(t, nfs, attachedTo("n1"))
	c.recover()
	woken := 0
	if c.attachmentChanged(runner.Change[storagev1.VolumeAttachment]{New: attachedTo("n1")}, nobody{&woken}); woken > 0 || len(c.book.all()) > 0 {
		t.Errorf("woke %d keys, knows %v", woken, c.book.all())
	}
}

// delays are after what time keys are woken.
type delays map[key]time.Duration

func (d delays) Add(k key)                           { d[k] = 0 }
func (d delays) AddAfter(k key, after time.Duration) { d[k] = after }

// A CSIDriver that is made again, to change it, is gone for a moment: nothing is attached for
// pods that run without.
func TestADriverThatIsGoneIsNoReasonToAttachAtOnce(t *testing.T) {
	rig := fixture.New(fake.NewClientset(), noon)
	c := controllerOf(t, rig, Options{})
	rig.Cache(t, pv(0))
	driver := func(required bool) *storagev1.CSIDriver {
		return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "csi.example"}, Spec: storagev1.CSIDriverSpec{AttachRequired: &required}}
	}
	for name, tc := range map[string]struct {
		change runner.Change[storagev1.CSIDriver]
		want   delays
	}{
		"it goes":                           {runner.Change[storagev1.CSIDriver]{Old: driver(false)}, delays{{volume: nameOf(0)}: 3 * time.Minute}},
		"it comes, and needs none":          {runner.Change[storagev1.CSIDriver]{New: driver(false)}, delays{{volume: nameOf(0)}: 0}},
		"it changes":                        {runner.Change[storagev1.CSIDriver]{Old: driver(false), New: driver(true)}, delays{{volume: nameOf(0)}: 0}},
		"one goes whose volumes were so":    {runner.Change[storagev1.CSIDriver]{Old: driver(true)}, delays{}},
		"one changes that has nothing here": {runner.Change[storagev1.CSIDriver]{Old: driver(false), New: driver(false)}, delays{}},
	} {
		t.Run(name, func(t *testing.T) {
			woken := delays{}
			if c.csiDriverChanged(tc.change, woken); !maps.Equal(woken, tc.want) {
				t.Errorf("woke %v, want %v", woken, tc.want)
			}
		})
	}
}

// On a node that somebody else manages their objects are none of an earlier process.
func TestAnAttachmentOnANodeOfOthersIsTheirs(t *testing.T) {
	for name, tc := range map[string]struct {
		node *corev1.Node
		want int
	}{
		"a node of this controller":    {reporting("n1", false), 1},
		"a node that is gone":          {nil, 1},
		"a node that others attach to": {&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			rig := fixture.New(fake.NewClientset(), noon)
			c := controllerOf(t, rig, Options{})
			rig.Cache(t, pv(0))
			if tc.node != nil {
				rig.Cache(t, tc.node)
				c.nodeChanged(runner.Change[corev1.Node]{New: tc.node}, delays{})
			}
			c.attachmentChanged(runner.Change[storagev1.VolumeAttachment]{New: attachedTo("n1")}, delays{})
			if strays := c.book.straysOf(nameOf(0)); len(strays) != tc.want {
				t.Errorf("taken up on %v", strays)
			}
		})
	}
}
