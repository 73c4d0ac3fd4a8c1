package persistentvolumebinder

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// prepare returns a controller whose caches have these objects, and whose API server has
// live ones.
func prepare(t *testing.T, plugins Plugins, cached []runtime.Object, live ...runtime.Object) (*Controller, *fixture.Rig) {
	t.Helper()
	rig := fixture.New(fake.NewClientset(live...), noon)
	c := newController(t, rig, rig.Hand(), plugins)
	rig.Cache(t, cached...)
	for _, object := range cached {
		if pv, is := object.(*corev1.PersistentVolume); is {
			c.pool.seen(pv)
		}
	}
	return c, rig
}

func keyed(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: name}
}

func TestAClaimIsLostOnlyWhenALiveLookSaysSo(t *testing.T) {
	whole := volume("v", of("c", "uid-c"), in(corev1.VolumeBound))
	bound := claim("c", boundOnce("v"))
	for name, tc := range map[string]struct {
		cached, live []runtime.Object
		fail         error
		want         string
		told         bool
	}{
		"it is gone":                        {[]runtime.Object{bound}, []runtime.Object{bound}, nil, "get persistentvolumes, update persistentvolumeclaims/status", true},
		"the cache does not show it yet":    {[]runtime.Object{bound}, []runtime.Object{bound, whole}, nil, "get persistentvolumes", false},
		"the cache shows it as it was once": {[]runtime.Object{bound, volume("v", of("c", ""))}, []runtime.Object{bound, whole}, nil, "get persistentvolumes", false},
		"nobody can look":                   {[]runtime.Object{bound}, []runtime.Object{bound}, errors.New("away"), "get persistentvolumes", false},
		"a proxy says that it is gone":      {[]runtime.Object{bound}, []runtime.Object{bound}, foreign("persistentvolumes"), "get persistentvolumes", false},
		"all is well":                       {[]runtime.Object{bound, whole}, nil, nil, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			c, rig := prepare(t, nil, tc.cached, tc.live...)
			if tc.fail != nil {
				rig.Fail("get", "persistentvolumes", tc.fail)
			}
			err := c.claims.Reconcile(t.Context(), keyed("c")).Err()
			if got := rig.Requests(); got != tc.want || (err != nil) != (tc.fail != nil) || (rig.Told() != "") != tc.told {
				t.Errorf("did %q, %v", got, err)
			}
		})
	}
}

func TestAVolumeIsReleasedOnlyWhenALiveLookSaysSo(t *testing.T) {
	bound := claim("c", boundOnce("v"))
	again := claim("c", func(c *corev1.PersistentVolumeClaim) { c.UID = "uid-again" })
	inUse, out := volume("v", left, in(corev1.VolumeBound)), volume("v", left, released)
	nowhere := volume("v", left, in(corev1.VolumeBound), func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.Namespace = "" })
	const release = "get persistentvolumeclaims, update persistentvolumes/status"
	for name, tc := range map[string]struct {
		volume *corev1.PersistentVolume
		cached *corev1.PersistentVolumeClaim
		live   *corev1.PersistentVolumeClaim
		fail   error
		want   string
	}{
		"its claim is gone":                         {inUse, nil, nil, nil, release},
		"the cache lacks its claim":                 {inUse, nil, bound, nil, "get persistentvolumeclaims"},
		"another claim has the name":                {inUse, again, again, nil, release},
		"the cache shows an earlier claim":          {inUse, again, bound, nil, "get persistentvolumeclaims"},
		"no claim is without a namespace":           {nowhere, nil, nil, nil, "update persistentvolumes/status"},
		"nobody can look":                           {inUse, nil, nil, errors.New("away"), "get persistentvolumeclaims"},
		"a proxy says that its claim is gone":       {inUse, nil, nil, foreign("persistentvolumeclaims"), "get persistentvolumeclaims"},
		"it is released and retained: nobody looks": {out, again, again, nil, ""},
		"its claim is cached":                       {inUse, bound, nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cached, live := []runtime.Object{tc.volume}, []runtime.Object{tc.volume}
			if tc.cached != nil {
				cached = append(cached, tc.cached)
			}
			if tc.live != nil {
				live = append(live, tc.live)
			}
			c, rig := prepare(t, nil, cached, live...)
			if tc.fail != nil {
				rig.Fail("get", "persistentvolumeclaims", tc.fail)
			}
			err := c.volumes.Reconcile(t.Context(), "v").Err()
			if got := rig.Requests(); got != tc.want || (err != nil) != (tc.fail != nil) {
				t.Errorf("did %q, %v", got, err)
			}
		})
	}
}

func TestPodsThatUseAVolumeAreNamedWithTheirNamespace(t *testing.T) {
	user := &corev1.Pod{}
	user.Namespace, user.Name = "ns", "a"
	user.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}
	c, _ := prepare(t, nil, []runtime.Object{volume("v", left, released, policy(recyclePolicy), nfs), user})
	o, err := c.observeVolume(t.Context(), "v")
	if err != nil || !slices.Equal(o.users, []string{"ns/a"}) {
		t.Errorf("got %q, %v", o.users, err)
	}
}

func TestAVolumeIsGivenBackWhateverBecomesOfItsClaim(t *testing.T) {
	for name, fail := range map[string]error{"it is bound": nil, "the write is refused": errors.New("no")} {
		t.Run(name, func(t *testing.T) {
			c, rig := prepare(t, nil, []runtime.Object{volume("v"), claim("c")}, volume("v"), claim("c"))
			if fail != nil {
				rig.Fail("update", "persistentvolumes", fail)
			}
			if err := c.claims.Reconcile(t.Context(), keyed("c")).Err(); (err != nil) != (fail != nil) {
				t.Errorf("ended with %v", err)
			}
			if len(c.pool.lent) > 0 {
				t.Error("the volume is lent still")
			}
		})
	}
}

// slowly is a plugin that counts what it is asked for.
type slowly struct {
	twoPlugins
	err   error
	asked int
}

func (p *slowly) Of(pv *corev1.PersistentVolume) *Plugin {
	plugin := *p.twoPlugins.Of(pv)
	plugin.Delete = func(context.Context, *corev1.PersistentVolume) error {
		p.asked++
		return p.err
	}
	return &plugin
}

func TestAnOperationThatFailsPausesEverLonger(t *testing.T) {
	plugins := &slowly{err: errors.New("busy")}
	pv := volume("v", left, released, policy(deletePolicy), hostPath("/tmp/a"))
	c, rig := prepare(t, plugins, []runtime.Object{pv}, pv)
	op := operation{Kind: deletes, Volume: "v", UID: "uid-v"}
	try := func() int {
		before := plugins.asked
		if c.start(op); c.ledger.running[op] {
			_ = c.perform(t.Context(), op)
		}
		return plugins.asked - before
	}
	var tried []int
	for _, wait := range []time.Duration{0, 499 * time.Millisecond, time.Millisecond, 999 * time.Millisecond, time.Millisecond, time.Hour, 121 * time.Second} {
		rig.Clock.Step(wait)
		tried = append(tried, try())
	}
	if want := []int{1, 0, 1, 0, 1, 1, 1}; !equal(tried, want) {
		t.Errorf("tried %v, want %v", tried, want)
	}
	c.ledger.forget("uid-v")
	if len(c.ledger.paused) > 0 {
		t.Error("the pause of what is gone is kept")
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

func TestAFailureIsOfTheClaimOfThatTime(t *testing.T) {
	l := newLedger()
	l.failed("uid-v", "uid-c", failure{failedDelete, "busy"})
	l.empty("uid-v", "uid-c")
	if failed, emptied := l.of("uid-v", "uid-d"); failed != nil || emptied {
		t.Error("the next claim gets the event")
	}
	if failed, emptied := l.of("uid-v", "uid-c"); failed == nil || !emptied {
		t.Error("there is no event")
	}
	l.reported("uid-v")
	if failed, _ := l.of("uid-v", "uid-c"); failed != nil {
		t.Error("the event is sent twice")
	}
}

func TestNothingIsKeptOfAClaimThatIsGone(t *testing.T) {
	c, _ := prepare(t, nil, nil)
	c.volumeGone(volume("v", left))
	// A look may end after the claim has gone, and note what it has written.
	c.own.Store(keyed("c"), "7")
	c.timers.provisioning(keyed("c"), "p", noon)
	err := c.claims.Reconcile(t.Context(), keyed("c")).Err()
	if _, own := c.own.Load(keyed("c")); err != nil || own || len(c.timers.claims) > 0 {
		t.Errorf("keeps its own write %t, %v, %v", own, c.timers.claims, err)
	}
	c.loud.Range(func(key, _ any) bool {
		t.Errorf("still keeps %v", key)
		return true
	})
}

func TestNothingIsDeletedThatIsWantedByThen(t *testing.T) {
	cached := volume("v", left, released, policy(deletePolicy), hostPath("/tmp/a"))
	for name, tc := range map[string]struct {
		live []runtime.Object
		want int
	}{
		"it is as it was":              {[]runtime.Object{cached}, 1},
		"it is gone":                   {nil, 0},
		"it was made again":            {[]runtime.Object{volume("v", left, released, policy(deletePolicy), hostPath("/tmp/a"), func(pv *corev1.PersistentVolume) { pv.UID = "again" })}, 0},
		"it is to be retained now":     {[]runtime.Object{volume("v", left, released, hostPath("/tmp/a"))}, 0},
		"it is free now":               {[]runtime.Object{volume("v", hostPath("/tmp/a"), policy(deletePolicy))}, 0},
		"it is left to a driver now":   {[]runtime.Object{volume("v", left, released, policy(deletePolicy), hostPath("/tmp/a"), noted("pv.kubernetes.io/migrated-to", "x"))}, 0},
		"its claim is there after all": {[]runtime.Object{cached, claim("c", boundOnce("v"))}, 0},
		"its claim has another volume": {[]runtime.Object{cached, claim("c", boundOnce("other"))}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			plugins := &slowly{}
			c, _ := prepare(t, plugins, []runtime.Object{cached}, tc.live...)
			op := operation{Kind: deletes, Volume: "v", UID: "uid-v"}
			if err := c.perform(t.Context(), op).Err(); err != nil || plugins.asked != tc.want {
				t.Errorf("deleted %d times, %v", plugins.asked, err)
			}
		})
	}
}

func TestADeletedVolumeLosesItsFinalizerFirst(t *testing.T) {
	pv := volume("v", left, released, policy(deletePolicy), hostPath("/tmp/a"), finalizers(deletionProtection, "other"))
	c, rig := prepare(t, &slowly{}, []runtime.Object{pv}, pv)
	if err := c.perform(t.Context(), operation{Kind: deletes, Volume: "v", UID: "uid-v"}).Err(); err != nil {
		t.Fatal(err)
	}
	if got := rig.Requests(); got != "get persistentvolumes, get persistentvolumeclaims, get persistentvolumes, update persistentvolumes, delete persistentvolumes" {
		t.Errorf("did %s", got)
	}
}

// wakes are keys and when they are reconciled.
type wakes map[types.NamespacedName]time.Duration

func (w wakes) Add(key types.NamespacedName)                       { w[key] = 0 }
func (w wakes) AddAfter(key types.NamespacedName, d time.Duration) { w[key] = d }

func TestWhichClaimsAVolumeWakes(t *testing.T) {
	older := func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour)) }
	newer := func(c *corev1.PersistentVolumeClaim) { c.CreationTimestamp = metav1.NewTime(noon) }
	lost := func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }
	free := in(corev1.VolumeAvailable)
	for name, tc := range map[string]struct {
		claims []*corev1.PersistentVolumeClaim
		volume *corev1.PersistentVolume
		want   wakes
	}{
		"the one that asks for most, with others": {[]*corev1.PersistentVolumeClaim{claim("small", wants("8Gi"), older), claim("large", wants("20Gi")), claim("huge", wants("30Gi"))},
			volume("v", holds("20Gi"), free), wakes{keyed("large"): together}},
		"of those the oldest":              {[]*corev1.PersistentVolumeClaim{claim("a", newer), claim("b", older), claim("c", newer)}, volume("v", free), wakes{keyed("b"): together}},
		"those that name it, and no other": {[]*corev1.PersistentVolumeClaim{claim("a"), claim("b", wantsVolume("v"))}, volume("v", free), wakes{keyed("b"): 0}},
		"another when that cannot have it": {[]*corev1.PersistentVolumeClaim{claim("a"), claim("b", wantsVolume("v"), wants("50Gi"))}, volume("v", free), wakes{keyed("a"): together, keyed("b"): 0}},
		"one that has lost it":             {[]*corev1.PersistentVolumeClaim{claim("a"), claim("b", boundOnce("v"), lost)}, volume("v", free), wakes{keyed("b"): 0}},
		"at once when it is there again":   {[]*corev1.PersistentVolumeClaim{claim("a"), claim("b", boundOnce("v"), lost)}, volume("v", in(corev1.VolumePending)), wakes{keyed("b"): 0}},
		"none while it is another's":       {[]*corev1.PersistentVolumeClaim{claim("a"), claim("b", boundOnce("v"))}, volume("v", of("b", "uid-b"), in(corev1.VolumeBound)), wakes{}},
	} {
		t.Run(name, func(t *testing.T) {
			var cached []runtime.Object
			for _, c := range tc.claims {
				cached = append(cached, c)
			}
			c, _ := prepare(t, nil, cached)
			got := wakes{}
			c.volumeChangedForClaims(runner.Change[corev1.PersistentVolume]{New: tc.volume}, got)
			if !maps.Equal(got, tc.want) {
				t.Errorf("wakes %v", got)
			}
		})
	}
}

func TestAVolumeThatARestoreTakesBackIsKnownAsItIs(t *testing.T) {
	c, _ := prepare(t, nil, nil)
	version := func(n string, with ...onVolume) *corev1.PersistentVolume {
		pv := volume("v", append(with, in(corev1.VolumeAvailable))...)
		pv.ResourceVersion = n
		return pv
	}
	before, restored := version("1000", of("c", "uid-c")), version("500")
	c.volumeChangedForClaims(runner.Change[corev1.PersistentVolume]{New: before}, wakes{})
	c.volumeChangedForClaims(runner.Change[corev1.PersistentVolume]{Old: before, New: restored}, wakes{})
	if got := c.pool.newest(restored); got != restored {
		t.Errorf("knows version %s", got.ResourceVersion)
	}
	if got := c.pool.matched(t, claim("d"), false); got != "v" {
		t.Errorf("a claim gets %q", got)
	}
}

func TestVolumesThatComeTogetherWakeAClaimEach(t *testing.T) {
	c, rig := prepare(t, nil, []runtime.Object{claim("a"), claim("b"), claim("c")})
	got := wakes{}
	for _, name := range []string{"v1", "v2", "v3", "v4"} {
		c.volumeChangedForClaims(runner.Change[corev1.PersistentVolume]{New: volume(name, in(corev1.VolumeAvailable))}, got)
	}
	if len(got) != 3 {
		t.Errorf("wake %v", got)
	}
	rig.Clock.Step(together)
	clear(got)
	if c.volumeChangedForClaims(runner.Change[corev1.PersistentVolume]{New: volume("v5", in(corev1.VolumeAvailable))}, got); len(got) != 1 {
		t.Errorf("a second later one more wakes %v", got)
	}
}

func TestPendingClaimsAreLookedAtQuietly(t *testing.T) {
	pending, other := claim("c", wantsClass("fast")), claim("d", wantsClass("slow"))
	c, _ := prepare(t, nil, []runtime.Object{pending, other, claim("e", boundOnce("x"), wantsClass("fast"))})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "a", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}},
		{Name: "b", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "e"}}}}}}
	byClass, byPod := wakes{}, wakes{}
	c.classChanged(runner.Change[storagev1.StorageClass]{New: class("fast", "p")}, byClass)
	c.podChanged(runner.Change[corev1.Pod]{New: pod}, byPod)
	for what, got := range map[string]wakes{"a class": byClass, "a pod": byPod} {
		if _, woken := got[keyed("c")]; len(got) != 1 || !woken || wasLoud(c) {
			t.Errorf("%s wakes %v", what, got)
		}
	}
	byVolume := wakes{}
	c.volumeChangedForClaims(runner.Change[corev1.PersistentVolume]{New: volume("v", ofClass("fast"))}, byVolume)
	if _, woken := byVolume[keyed("c")]; !woken || wasLoud(c) {
		t.Error("a volume that fits wakes its claim, and that tells nothing again")
	}
}

// wasLoud reports whether the events of claim c were to be sent once more, and forgets that.
func wasLoud(c *Controller) bool {
	_, loud := c.loud.LoadAndDelete(keyed("c"))
	return loud
}

func TestOwnWritesAreNotToldAgain(t *testing.T) {
	c, _ := prepare(t, nil, []runtime.Object{claim("c")})
	c.own.Store(keyed("c"), "7")
	mine, theirs := claim("c"), claim("c")
	mine.ResourceVersion, theirs.ResourceVersion = "7", "8"
	c.claimChanged(runner.Change[corev1.PersistentVolumeClaim]{Old: claim("c"), New: mine}, nil)
	if wasLoud(c) {
		t.Error("an own write sends events again")
	}
	c.claimChanged(runner.Change[corev1.PersistentVolumeClaim]{Old: mine, New: theirs}, nil)
	if !wasLoud(c) {
		t.Error("a change by another client sends no events again")
	}
}

func TestAClaimThatGotItsClassIsToldOf(t *testing.T) {
	c, _ := prepare(t, nil, []runtime.Object{claim("c"), class("fast", "p", byDefault(noon))}, claim("c"))
	if err := c.claims.Reconcile(t.Context(), keyed("c")).Err(); err != nil {
		t.Fatal(err)
	}
	if _, own := c.own.Load(keyed("c")); own {
		t.Error("its next look would tell nothing")
	}
}

func TestAProvisionedVolume(t *testing.T) {
	fast := class("fast", "kubernetes.io/host-path")
	wanting := claim("c", wantsClass("fast"))
	c, rig := prepare(t, twoPlugins{}, []runtime.Object{fast, wanting}, wanting)
	op := operation{Kind: provisions, Claim: keyed("c"), UID: "uid-c"}
	if err := c.perform(t.Context(), op).Err(); err != nil {
		t.Fatal(err)
	}
	pv, err := rig.Client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-uid-c", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ref := pv.Spec.ClaimRef; ref == nil || ref.UID != "uid-c" || ref.Kind != "PersistentVolumeClaim" || marks(pv) != "{b,"+deletionProtection+"}" ||
		pv.Spec.StorageClassName != "fast" || pv.Spec.PersistentVolumeReclaimPolicy != deletePolicy {
		t.Errorf("made %v", pv)
	}
	if told := rig.Told(); told != "Normal ProvisioningSucceeded Successfully provisioned volume pvc-uid-c using kubernetes.io/host-path" {
		t.Errorf("told %s", told)
	}
	if err := c.perform(t.Context(), op).Err(); err != nil || rig.Told() != "" || strings.Count(rig.Requests(), "create") != 1 {
		t.Errorf("what is there was made again: %v, %s", err, rig.Requests())
	}
}

func TestAProvisioningThatFails(t *testing.T) {
	chosen := says("volume.kubernetes.io/selected-node", "n")
	source := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "x", Name: "y"}
	}
	options := func(c *storagev1.StorageClass) { c.MountOptions = []string{"a", "b"} }
	broken := failing{errors.New("full"), ""}
	for name, tc := range map[string]struct {
		class   *storagev1.StorageClass
		claim   *corev1.PersistentVolumeClaim
		plugins Plugins
		want    string
	}{
		"from a data source": {class("fast", "kubernetes.io/host-path"), claim("c", wantsClass("fast"), source), twoPlugins{},
			`plugin "kubernetes.io/host-path" is not a CSI plugin. Only CSI plugin can provision a claim with a datasource`},
		"with mount options": {class("fast", "kubernetes.io/host-path", options), claim("c", wantsClass("fast")), twoPlugins{},
			`Mount options are not supported by the provisioner but StorageClass "fast" has mount options [a b]`},
		"for an unknown node":     {class("fast", "kubernetes.io/host-path"), claim("c", wantsClass("fast"), chosen), twoPlugins{}, `Failed to get target node: node "n" not found`},
		"for a node of no name":   {class("fast", "kubernetes.io/host-path"), claim("c", wantsClass("fast"), says(volumehelpers.AnnSelectedNode, "")), twoPlugins{}, `Failed to get target node: node "" not found`},
		"by the plugin":           {class("fast", "kubernetes.io/host-path"), claim("c", wantsClass("fast")), broken, `Failed to provision volume with StorageClass "fast": full`},
		"by a plugin that is off": {class("fast", "kubernetes.io/host-path"), claim("c", wantsClass("fast")), failing{nil, "it is off"}, `Failed to create provisioner: it is off`},
	} {
		t.Run(name, func(t *testing.T) {
			c, rig := prepare(t, tc.plugins, []runtime.Object{tc.class, tc.claim}, tc.claim)
			err := c.perform(t.Context(), operation{Kind: provisions, Claim: keyed("c"), UID: "uid-c"}).Err()
			if told := rig.Told(); told != "Warning ProvisioningFailed "+tc.want || !errors.Is(err, errReported) || len(c.ledger.paused) != 1 {
				t.Errorf("told %s, %v", told, err)
			}
		})
	}
}

// failing is a plugin that provisions nothing.
type failing struct {
	err      error
	disabled string
}

func (p failing) Named(string) *Plugin {
	return &Plugin{Name: "kubernetes.io/host-path", Disabled: p.disabled, Provision: func(context.Context, *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
		return nil, p.err
	}}
}

func (failing) Of(*corev1.PersistentVolume) *Plugin { return nil }

// A claim that was sent as protobuf may have any bytes in the old annotation.
func TestAClassThatIsNoTextIsCounted(t *testing.T) {
	odd := claim("c")
	odd.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "\xff"}
	c, _ := prepare(t, nil, []runtime.Object{odd})
	if c.claimStore.List()[0].(*corev1.PersistentVolumeClaim).Annotations[corev1.BetaStorageClassAnnotation] != "\xff" {
		t.Fatal("the claim is not cached as it is")
	}
	if _, err := legacyregistry.DefaultGatherer.Gather(); err != nil {
		t.Error(err)
	}
}
