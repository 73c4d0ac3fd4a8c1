package attachdetach

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// ago is a time before the plan.
func ago(d time.Duration) time.Time { return noon.Add(-d) }

// of is a view of volume h0, for one node only, with two nodes that are well.
func of(change ...func(*volumeView)) *volumeView {
	source, err := volumes.OfPV(pv(0))
	if err != nil {
		panic(err)
	}
	v := &volumeView{
		name: nameOf(0), record: record{source: source, pairs: map[string]pair{}, backoffs: map[string]backoff{}}, attachable: true, plugged: true,
		wants: map[string][]*corev1.Pod{}, attachments: map[string]*storagev1.VolumeAttachment{}, options: Options{SyncPeriod: time.Minute},
		nodes: map[string]nodeFacts{"n1": {ready: true, seen: 5, done: 3}, "n2": {ready: true, seen: 5, done: 3}},
	}
	for _, c := range change {
		c(v)
	}
	return v
}

func wants(node string, pods ...string) func(*volumeView) {
	return func(v *volumeView) {
		for _, name := range pods {
			pod := podOf(name, 0, node)
			if namespace, other, is := strings.Cut(name, "/"); is {
				pod.Namespace, pod.Name = namespace, other
			}
			v.wants[node] = append(v.wants[node], pod)
		}
	}
}

func has(node string, p pair) func(*volumeView) {
	return func(v *volumeView) { v.pairs[node] = p }
}

func facts(node string, change func(*nodeFacts)) func(*volumeView) {
	return func(v *volumeView) {
		f := v.nodes[node]
		change(&f)
		v.nodes[node] = f
	}
}

func cached(node string, status storagev1.VolumeAttachmentStatus, deleting bool) func(*volumeView) {
	return func(v *volumeView) {
		va := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: attachmentName(v.name, node), UID: "va"}, Status: status}
		va.Spec.NodeName = node
		if deleting {
			va.DeletionTimestamp = &metav1.Time{Time: noon}
		}
		v.attachments[node] = va
	}
}

func paused(scope string, b backoff) func(*volumeView) {
	return func(v *volumeView) { v.backoffs[scope] = b }
}

func shared(v *volumeView) {
	source := *v.source
	spec := *source.Spec
	spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	source.Spec = &spec
	v.source = &source
}

func withoutForce(v *volumeView) { v.options.WithoutForce = true }

var (
	there   = storagev1.VolumeAttachmentStatus{Attached: true}
	notYet  = storagev1.VolumeAttachmentStatus{}
	refused = storagev1.VolumeAttachmentStatus{AttachError: &storagev1.VolumeError{Message: "no room"}}
	stuck   = storagev1.VolumeAttachmentStatus{Attached: true, DetachError: &storagev1.VolumeError{Message: "busy"}}
	isThere = pair{state: attached, known: true}
	unused  = pair{state: attached, known: true, gone: ago(time.Minute), leaving: true, left: 3}
	maybe   = pair{state: uncertain, known: true, gone: ago(time.Minute), leaving: true, left: 3}
	// listed leaves a node whose status has it still.
	listed      = pair{state: attached, known: true, leaving: true, left: 4}
	exclusively = `tell web Multi-Attach error for volume "v0" Volume is already exclusively attached to one node and can't be attached to another`
	looked      = func(since time.Duration) pair { return pair{state: attached, known: true, looked: ago(since)} }
	attaching   = func(since time.Duration) operation {
		return operation{kind: attachKind, since: ago(since), pods: []*corev1.Pod{podOf("web", 0, "n1")}}
	}
	detaches = func(since time.Duration) operation { return operation{kind: detachKind, since: ago(since)} }
)

// steps are those of a plan, in words.
func steps(stages []act.Stage) string {
	var all []string
	for _, stage := range stages {
		for _, step := range stage.Steps {
			switch s := step.(type) {
			case act.Part:
				all = append(all, steps(s.Stages))
			case act.Event:
				all = append(all, fmt.Sprintf("tell %s %s", s.On.GetName(), s.Message))
			default:
				all = append(all, strings.TrimSpace(step.Verb()+" "+strings.TrimPrefix(fmt.Sprintf("%T", step.About()), "*v1.")+" "+nodeOf(step)))
			}
		}
	}
	return strings.Join(all, ", ")
}

// becomes is what a plan makes of the pairs if all its steps succeed.
func becomes(n noted) string {
	var all []string
	for _, node := range slices.Sorted(maps.Keys(n.pairs)) {
		p := n.pairs[node]
		words := node + " " + []string{"absent", "uncertain", "attached"}[p.state]
		for word, is := range map[string]bool{"leaving": p.leaving} {
			if is {
				words += " " + word
			}
		}
		if p.op.kind != none {
			words += " " + string(p.op.kind)
		}
		all = append(all, words)
	}
	return strings.Join(all, ", ")
}

func TestPlansOfAVolume(t *testing.T) {
	for name, tc := range map[string]struct {
		view                *volumeView
		steps, becomes, why string
		due                 time.Duration
	}{
		"wanted, and nothing is there":    {of(wants("n1", "web")), "create VolumeAttachment n1", "n1 absent volume_attach", "attaching", attachWait},
		"wanted, and the object is there": {of(wants("n1", "web"), cached("n1", there, false)), "", "n1 absent volume_attach", "attaching", 0},
		"the driver has not answered": {of(wants("n1", "web"), has("n1", pair{op: attaching(time.Second)}), cached("n1", notYet, false)),
			"", "n1 absent volume_attach", "attach under way", attachWait - time.Second},
		"the driver has attached it": {of(wants("n1", "web"), has("n1", pair{op: attaching(time.Second)}), cached("n1", there, false)),
			`tell web AttachVolume.Attach succeeded for volume "v0" `, "n1 attached", "attached", 0},
		"the driver has failed just now": {of(wants("n1", "web"), has("n1", pair{op: attaching(400 * time.Millisecond)}), cached("n1", refused, false)),
			"", "n1 absent volume_attach", "under way", 100 * time.Millisecond},
		"the driver has failed": {of(wants("n1", "web"), has("n1", pair{op: attaching(500 * time.Millisecond)}), cached("n1", refused, false)),
			`tell web AttachVolume.Attach failed for volume "v0" : no room`, "n1 uncertain", "failed", firstPause},
		"the object of an attach is going": {of(wants("n1", "web"), has("n1", pair{op: attaching(time.Second)}), cached("n1", there, true)),
			`tell web AttachVolume.Attach failed for volume "v0" : volume attachment is being deleted`, "n1 uncertain", "failed", firstPause},
		"the driver never answers": {of(wants("n1", "web"), has("n1", pair{op: attaching(attachWait)}), cached("n1", notYet, false)),
			`tell web AttachVolume.Attach failed for volume "v0" : timed out waiting for external-attacher of csi.example CSI driver to attach volume h0`,
			"n1 uncertain", "failed", firstPause},
		"the object of an attach is gone": {of(wants("n1", "web"), has("n1", pair{op: attaching(time.Second)})),
			"create VolumeAttachment n1", "n1 absent volume_attach", "under way", attachWait - time.Second},
		"the creation failed": {of(wants("n1", "web"), has("n1", pair{op: func() operation {
			o := attaching(0)
			o.failed = "kubernetes.io/csi: attacher.Attach failed: no"
			return o
		}()})),
			`tell web AttachVolume.Attach failed for volume "v0" : kubernetes.io/csi: attacher.Attach failed: no`, "n1 uncertain", "failed", firstPause},
		"an attach that failed waits": {of(wants("n1", "web"), has("n1", pair{state: uncertain, known: true}), paused("", backoff{attachKind, time.Second, noon.Add(time.Second)})),
			"", "n1 uncertain", "tried again", time.Second},
		"an attach that failed is tried again": {of(wants("n1", "web"), has("n1", pair{state: uncertain, known: true}), paused("", backoff{attachKind, time.Second, noon})),
			"create VolumeAttachment n1", "n1 uncertain volume_attach", "attaching", attachWait},
		"a detach that failed does not hold up an attach": {of(wants("n1", "web"), has("n1", maybe), paused("", backoff{detachKind, 2 * time.Second, noon.Add(time.Second)})),
			"create VolumeAttachment n1", "n1 uncertain volume_attach", "attaching", attachWait},
		"but for a moment": {of(wants("n1", "web"), has("n1", maybe), paused("", backoff{detachKind, time.Second, noon.Add(time.Second)})),
			"", "n1 uncertain leaving", "tried again", betweenPasses},
		"attached and wanted":                                {of(wants("n1", "web"), has("n1", isThere), cached("n1", there, false)), "", "n1 attached", "attached, and wanted by 1 pods", 0},
		"wanted again before it went":                        {of(wants("n1", "web"), has("n1", unused), cached("n1", there, false)), "", "n1 attached", "wanted by 1", 0},
		"its object is gone from the cache":                  {of(wants("n1", "web"), has("n1", isThere)), "check VolumeAttachment n1", "n1 absent", "looking live", 0},
		"the same, and it was there at a live look just now": {of(wants("n1", "web"), has("n1", looked(time.Second))), "", "n1 attached", "wanted by 1", 59 * time.Second},
		"the same, and it was there at one a minute ago":     {of(wants("n1", "web"), has("n1", looked(time.Minute))), "check VolumeAttachment n1", "n1 absent", "looking live", 0},
		"the driver says it is not attached":                 {of(wants("n1", "web"), has("n1", isThere), cached("n1", notYet, false)), "", "n1 absent volume_attach", "not attached any more", 0},
		"the driver says so, and it is not wanted":           {of(has("n1", isThere), cached("n1", notYet, false)), "", "n1 uncertain leaving", "not attached any more", 0},
		"the same, and the node has it in use": {of(has("n1", isThere), cached("n1", notYet, false), facts("n1", func(f *nodeFacts) { f.inUse = true })),
			"", "n1 uncertain", "detached by force from 12:06:00", 0},
		"not wanted, but in use": {of(has("n1", pair{state: attached, known: true}), cached("n1", there, false), facts("n1", func(f *nodeFacts) { f.inUse = true })),
			"", "n1 attached", "detached by force from 12:06:00 on if the node is no longer ready", 0},
		"not wanted for long, but in use": {of(has("n1", pair{state: attached, known: true, gone: ago(time.Hour)}), cached("n1", there, false), facts("n1", func(f *nodeFacts) { f.inUse = true })),
			"", "n1 attached", "detached by force if the node is no longer ready", 0},
		"not wanted, and not seen since": {of(has("n1", pair{state: uncertain, known: true, assumed: true, seen: 5}), cached("n1", there, false)),
			"", "n1 uncertain", "taken to be in use", 0},
		"not wanted, and seen since": {of(has("n1", pair{state: uncertain, known: true, assumed: true, seen: 4}), cached("n1", there, false)),
			"", "n1 uncertain leaving", "leaves the status", 0},
		"not wanted, and not in use": {of(has("n1", isThere), cached("n1", there, false)), "", "n1 attached leaving", "leaves the status", 0},
		"the status lists it still": {of(has("n1", pair{state: attached, known: true, leaving: true, left: 4}), cached("n1", there, false)),
			"", "n1 attached leaving", "no longer lists it", 0},
		"the status does not list it": {of(has("n1", unused), cached("n1", there, false)),
			"check Node n1, delete VolumeAttachment n1", "n1 attached leaving volume_detach", "detaching", 0},
		"its object is going already": {of(has("n1", maybe), cached("n1", there, true)), "check Node n1", "n1 uncertain leaving volume_detach", "detaching", 0},
		"its object is not cached":    {of(has("n1", maybe)), "check Node n1, check VolumeAttachment n1", "n1 uncertain leaving volume_detach", "detaching", 0},
		"the driver detaches": {of(has("n1", pair{state: attached, leaving: true, op: detaches(time.Second)}), cached("n1", there, true)),
			"", "n1 attached leaving volume_detach", "detach under way", attachWait - time.Second},
		"the driver has detached": {of(has("n1", pair{state: attached, leaving: true, op: detaches(time.Second)})), "", "", "detached", 0},
		"the driver cannot detach": {of(has("n1", pair{state: attached, leaving: true, op: detaches(time.Second)}), cached("n1", stuck, true)),
			"", "n1 uncertain leaving", "failed: busy", firstPause},
		"the driver never detaches": {of(has("n1", pair{state: attached, leaving: true, op: detaches(attachWait)}), cached("n1", there, true)),
			"", "n1 uncertain leaving", "timed out", firstPause},
		"a detach that began with nothing sent": {of(has("n1", pair{state: attached, leaving: true, op: operation{kind: detachKind, since: noon, failed: "in use", unsent: true}}), cached("n1", there, false)),
			"", "n1 attached leaving", "failed: in use", firstPause},
		"for one node, and known to be on another": {of(wants("n2", "web"), has("n1", isThere), wants("n1", "old"), cached("n1", there, false)),
			`tell web Multi-Attach error for volume "v0" Volume is already used by pod(s) old`, "n1 attached, n2 absent", "for one node only", 0},
		"for one node, and told": {of(wants("n2", "web"), has("n1", isThere), wants("n1", "old"), cached("n1", there, false), has("n2", pair{told: true})),
			"", "n1 attached, n2 absent", "for one node only", 0},
		"for one node, and only uncertain on another": {of(wants("n2", "web"), has("n1", maybe), cached("n1", there, true), paused("", backoff{detachKind, 2 * time.Second, noon.Add(time.Second)})),
			"create VolumeAttachment n2", "n1 uncertain leaving, n2 absent volume_attach", "attaching", time.Second},
		"for one node, and on its way off another": {of(wants("n2", "web"), has("n1", pair{state: uncertain, leaving: true, op: detaches(time.Second)}), cached("n1", there, true)),
			"", "n1 uncertain leaving volume_detach, n2 absent", "operation with node n1", attachWait - time.Second},
		"for one node, and off another now": {of(wants("n2", "web"), has("n1", pair{state: attached, leaving: true, op: detaches(time.Second)})),
			"create VolumeAttachment n2", "n2 absent volume_attach", "detached", attachWait},
		"for one node, and to go from another": {of(wants("n2", "web"), has("n1", isThere), cached("n1", there, false)),
			"", "n1 attached leaving, n2 absent", "n2: wanted; the volume leaves node n1 first", 0},
		"for one node, and another status lists it still": {of(wants("n2", "web"), has("n1", listed), cached("n1", there, false)),
			"", "n1 attached leaving, n2 absent", "n2: wanted; the volume leaves node n1 first", 0},
		"for one node, and another status is not written": {of(wants("n2", "web"), has("n1", listed), cached("n1", there, false), facts("n1", func(f *nodeFacts) { f.failed = 4 })),
			exclusively, "n1 attached leaving, n2 absent", "attached to another", 0},
		"for one node, and another has it in use": {of(wants("n2", "web"), has("n1", isThere), cached("n1", there, false), facts("n1", func(f *nodeFacts) { f.inUse = true })),
			exclusively, "n1 attached, n2 absent", "attached to another", 0},
		"for one node, and the detach from another failed": {of(wants("n2", "web"), has("n1", unused), cached("n1", there, false), paused("", backoff{detachKind, time.Second, noon.Add(time.Second)})),
			exclusively, "n1 attached leaving, n2 absent", "attached to another", time.Second},
		"for one node, and nobody can detach it from another": {of(wants("n2", "web"), has("n1", isThere), cached("n1", there, false), func(v *volumeView) { v.plugged = false }),
			exclusively, "n1 attached, n2 absent", "attached to another", firstPause},
		"for one node, and uncertain on another that has let it go": {of(wants("n2", "web"), has("n1", pair{state: uncertain, known: true}), cached("n1", there, false)),
			"", "n1 uncertain leaving, n2 absent", "n2: wanted; the volume leaves node n1 first", 0},
		"for one node, and uncertain on another whose status is not written": {of(wants("n2", "web"), has("n1", pair{state: uncertain, known: true, leaving: true, left: 4}), facts("n1", func(f *nodeFacts) { f.failed = 4 })),
			"create VolumeAttachment n2", "n1 uncertain leaving, n2 absent volume_attach", "attaching", attachWait},
		"for one node, and uncertain on another that was not seen since": {of(wants("n2", "web"), has("n1", pair{state: uncertain, known: true, assumed: true, seen: 5}), cached("n1", there, false)),
			"create VolumeAttachment n2", "n1 uncertain, n2 absent volume_attach", "attaching", attachWait},
		"for many nodes, and to go from another": {of(shared, wants("n2", "web"), has("n1", isThere), cached("n1", there, false)),
			"create VolumeAttachment n2", "n1 attached leaving, n2 absent volume_attach", "attaching", attachWait},
		"for many nodes": {of(shared, wants("n2", "web"), has("n1", isThere), wants("n1", "old"), cached("n1", there, false)),
			"create VolumeAttachment n2", "n1 attached, n2 absent volume_attach", "attaching", attachWait},
		"for one node, and going from another": {of(wants("n2", "web"), has("n1", pair{state: attached, leaving: true, op: detaches(time.Second)}), cached("n1", there, true)),
			"", "n1 attached leaving volume_detach, n2 absent", "operation with node n1", attachWait - time.Second},
		"an attach that its driver does not need": {of(has("n1", pair{assumed: true, seen: 5, op: attaching(time.Second)}), cached("n1", notYet, false), func(v *volumeView) { v.attachable = false }),
			"", "n1 uncertain leaving", "needs no attaching", 0},
		"the same, and it is done": {of(has("n1", pair{assumed: true, seen: 4, op: attaching(time.Second)}), cached("n1", there, false), func(v *volumeView) { v.attachable = false }),
			`tell web AttachVolume.Attach succeeded for volume "v0" `, "n1 attached leaving", "leaves the status", 0},
		"the same, and it has failed": {of(has("n1", pair{assumed: true, seen: 5, op: attaching(time.Second)}), cached("n1", refused, false), func(v *volumeView) { v.attachable = false }),
			"", "n1 uncertain leaving", "needs no attaching", 0},
		"a failed attach that its driver does not need": {of(has("n1", pair{state: uncertain, known: true, assumed: true, seen: 5, wanted: true}), paused("", backoff{attachKind, time.Second, noon}), func(v *volumeView) { v.attachable = false }),
			"", "n1 uncertain", "taken to be in use", 0},
		"not attached at all any more": {of(has("n1", isThere), func(v *volumeView) { v.attachable = false }), "", "n1 attached leaving", "leaves the status", 0},
		"known by a name of no plugin": {of(func(v *volumeView) { v.name, v.source, v.plugged = "kubernetes.io/aws-ebs/vol", nil, false }, has("n1", pair{state: attached})),
			"", "n1 attached", "no plugin knows", firstPause},
	} {
		t.Run(name, func(t *testing.T) {
			p := planVolume(tc.view, noon)
			n := p.Note(succeeded(p)).(noted)
			if got := steps(p.Stages); got != tc.steps {
				t.Errorf("wants %q", got)
			}
			if got := becomes(n); got != tc.becomes {
				t.Errorf("becomes %q", got)
			}
			if !strings.Contains(p.Why, tc.why) {
				t.Errorf("because %q", p.Why)
			}
			if due := p.RequeueAt; due.IsZero() != (tc.due == 0) && !n.again || !due.IsZero() && tc.due != 0 && due.Sub(noon) != tc.due {
				t.Errorf("looks again at %s", due)
			}
		})
	}
}

// succeeded are the results of a plan all of whose steps succeed.
func succeeded(p act.Plan) act.Results {
	var all act.Results
	for _, stage := range p.Stages {
		for _, step := range stage.Steps {
			if part, is := step.(act.Part); is {
				all = append(all, succeeded(act.Plan{Stages: part.Stages})...)
			} else {
				all = append(all, act.Result{Step: step, Became: act.Done})
			}
		}
	}
	return all
}

// next is the view of the turn that follows a plan, when its steps have become this.
func next(v *volumeView, p act.Plan, results act.Results, change ...func(*volumeView)) *volumeView {
	after := *v
	after.record = p.Note(results).(noted).record
	for _, c := range change {
		c(&after)
	}
	return &after
}

func TestAnAttachCountsAsInUseUntilTheNodeIsSeenAgain(t *testing.T) {
	v := of(wants("n1", "web"))
	p := planVolume(v, noon)
	v = next(v, p, succeeded(p), cached("n1", there, false))
	p = planVolume(v, noon)
	v = next(v, p, succeeded(p), func(v *volumeView) { v.wants = nil })
	p = planVolume(v, noon)
	if !strings.Contains(p.Why, "taken to be in use until the node has been updated") {
		t.Errorf("when the pod has gone: %s", p.Why)
	}
	p = planVolume(next(v, p, nil, facts("n1", func(f *nodeFacts) { f.seen++ })), noon)
	if !strings.Contains(p.Why, "leaves the status") {
		t.Errorf("when the node was seen: %s", p.Why)
	}
}

func TestAnotherNodeWaitsUntilTheDriverHasDetached(t *testing.T) {
	v := of(has("n1", unused), wants("n2", "web"), cached("n1", there, false))
	p := planVolume(v, noon)
	v = next(v, p, succeeded(p), cached("n1", there, true))
	if p = planVolume(v, noon); len(p.Stages) > 0 || !strings.Contains(p.Why, "n2: wanted; an operation with node n1 is under way") {
		t.Errorf("while the driver detaches: %s, because %s", steps(p.Stages), p.Why)
	}
}

func TestADetachThatWasNotBegunLeavesTheVolumeAttached(t *testing.T) {
	for became, want := range map[act.Outcome]state{act.Refused: attached, act.Uncertain: uncertain} {
		v := of(has("n1", unused), cached("n1", there, false))
		p := planVolume(v, noon)
		results := succeeded(p)
		results[1].Became, results[1].Err = became, errLost
		v = next(v, p, results)
		p = planVolume(v, noon)
		if got := next(v, p, nil).pairs["n1"].state; got != want {
			t.Errorf("a deletion that is %v: in state %d", became, got)
		}
	}
}

func TestAnAttachThatFailsAgainWaitsForLonger(t *testing.T) {
	v := of(wants("n1", "web"))
	for i, want := range []time.Duration{firstPause, 2 * firstPause, 4 * firstPause} {
		now := noon.Add(time.Duration(i) * time.Hour)
		p := planVolume(v, now)
		results := succeeded(p)
		results[0].Became, results[0].Err = act.Refused, errLost
		v = next(v, p, results)
		p = planVolume(v, now)
		v = next(v, p, succeeded(p))
		if got := p.RequeueAt.Sub(now); got != want {
			t.Errorf("failure %d: tried again after %s", i, got)
		}
	}
}

// A volume for one node has one pause: when it is over, it is the turn of another node.
func TestANodeWithWhichEveryTryFailsStarvesNoOther(t *testing.T) {
	for name, v := range map[string]*volumeView{
		"attach": of(wants("n1", "a"), wants("n2", "b")),
		"detach": of(has("n1", maybe), has("n2", maybe), cached("n1", there, false), cached("n2", there, false)),
	} {
		t.Run(name, func(t *testing.T) {
			var tried []string
			for i := range 8 {
				p := planVolume(v, noon.Add(time.Duration(i)*time.Hour))
				results := succeeded(p)
				for i := range results {
					results[i].Became, results[i].Err = act.Refused, errLost
					if node := nodeOf(results[i].Step); node != "" {
						tried = append(tried, node)
					}
				}
				v = next(v, p, results)
			}
			if got := strings.Join(slices.Compact(tried), " "); got != "n1 n2 n1 n2" {
				t.Errorf("tried with %s", got)
			}
		})
	}
}

// With many nodes at once the last object may be made long after the plan: the driver has
// two minutes from then.
func TestTheDriverHasItsTimeFromWhenItIsAsked(t *testing.T) {
	v, made := of(wants("n1", "web")), noon.Add(attachWait+time.Minute)
	p := planVolume(v, noon)
	results := succeeded(p)
	results[0].At = made
	v = next(v, p, results)
	cached("n1", notYet, false)(v)
	if p = planVolume(v, made.Add(time.Second)); strings.Contains(p.Why, "timed out") || !p.RequeueAt.Equal(made.Add(attachWait)) {
		t.Errorf("looked at again at %s: %s", p.RequeueAt, p.Why)
	}
	v = next(v, p, nil)
	if p = planVolume(v, made.Add(attachWait)); !strings.Contains(p.Why, "timed out") {
		t.Errorf("after its time: %s", p.Why)
	}
}

// No event comes of an object that is going already.
func TestAFailureOfAnObjectThatIsGoingAlreadyCountsAfterAMoment(t *testing.T) {
	v, now := of(has("n1", maybe), cached("n1", stuck, true)), noon
	for range 3 {
		p := planVolume(v, now)
		if strings.Contains(p.Why, "failed: busy") {
			break
		}
		results := succeeded(p)
		if v = next(v, p, results); !p.Note(results).(noted).again {
			now = p.RequeueAt
		}
	}
	if got := now.Sub(noon); got != firstLook {
		t.Errorf("it counts after %s", got)
	}
}

func TestTheLogHasAVolumeOfNoPluginOnce(t *testing.T) {
	v := of(func(v *volumeView) { v.name, v.source, v.plugged = "kubernetes.io/aws-ebs/vol", nil, false }, has("n1", pair{state: attached}))
	for i := range 3 {
		now := noon.Add(time.Duration(i) * time.Hour)
		p := planVolume(v, now)
		if err := p.Retry(nil); (err != nil) != (i == 0) {
			t.Errorf("look %d: %v", i, err)
		}
		v = next(v, p, nil)
	}
}

func TestForce(t *testing.T) {
	inUse := facts("n1", func(f *nodeFacts) { f.inUse = true })
	notReady := facts("n1", func(f *nodeFacts) { f.inUse, f.ready = true, false })
	gone := facts("n1", func(f *nodeFacts) { *f = nodeFacts{inUse: true, done: 3} })
	out := facts("n1", func(f *nodeFacts) { f.inUse, f.outOfService = true, true })
	since := func(d time.Duration) func(*volumeView) {
		p := unused
		p.gone = ago(d)
		return has("n1", p)
	}
	for name, tc := range map[string]struct {
		view *volumeView
		goes bool
		due  time.Duration
	}{
		"in use by a node that is well":                {of(inUse, since(time.Hour)), false, 0},
		"in use by a node that is not, for less":       {of(notReady, since(forceAfter)), false, time.Millisecond},
		"in use by a node that is not, for long":       {of(notReady, since(forceAfter+1)), true, 0},
		"in use by a node that is gone, for less":      {of(gone, since(time.Minute)), false, 5*time.Minute + time.Millisecond},
		"in use by a node that is gone, for long":      {of(gone, since(forceAfter+1)), true, 0},
		"the same, and that is turned off":             {of(gone, since(time.Hour), withoutForce), false, 0},
		"not ready for long, and that is turned off":   {of(notReady, since(time.Hour), withoutForce), false, 0},
		"out of service at once":                       {of(out, since(0)), true, 0},
		"out of service, with the other turned off":    {of(out, since(0), withoutForce), true, 0},
		"in use by a node that is not, wanted by none": {of(notReady, has("n1", isThere)), false, forceAfter + time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			cached("n1", there, false)(tc.view)
			p := planVolume(tc.view, noon)
			if goes := strings.Contains(steps(p.Stages), "delete"); goes != tc.goes {
				t.Errorf("wants %q because %q", steps(p.Stages), p.Why)
			}
			if tc.due != 0 && p.RequeueAt.Sub(noon) != tc.due || tc.due == 0 && !p.RequeueAt.IsZero() {
				t.Errorf("looks again at %s", p.RequeueAt)
			}
		})
	}
}

func TestALiveLookDecidesWhetherAVolumeMayLeave(t *testing.T) {
	live := func(change func(*corev1.Node)) *corev1.Node {
		n := node("n1")
		change(n)
		return n
	}
	using := func(n *corev1.Node) { n.Status.VolumesInUse = []volumes.Name{nameOf(0)} }
	for name, tc := range map[string]struct {
		node *corev1.Node
		f    force
		want error
	}{
		"not in use":                  {live(func(n *corev1.Node) { n.Status.VolumesInUse = []volumes.Name{nameOf(1)} }), force{}, nil},
		"in use":                      {live(using), force{}, errInUse},
		"in use, and late, but well":  {live(using), force{late: true}, errInUse},
		"in use, late and not well":   {live(func(n *corev1.Node) { using(n); n.Status.Conditions = nil }), force{late: true}, nil},
		"in use, and not well":        {live(func(n *corev1.Node) { using(n); n.Status.Conditions = nil }), force{}, errInUse},
		"in use, and back in service": {live(using), force{outOfService: true}, errInUse},
		"in use, and out of service":  {live(func(n *corev1.Node) { using(n); n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService}} }), force{}, nil},
		"listed still":                {live(func(n *corev1.Node) { n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: nameOf(0)}} }), force{}, errStillReported},
		"the node is gone":            {nil, force{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := &draft{v: of()}
			var got error
			if tc.node == nil {
				got = d.mayLeave(nil, tc.f)
			} else {
				got = d.mayLeave(tc.node, tc.f)
			}
			if !errors.Is(got, tc.want) || (got == nil) != (tc.want == nil) {
				t.Errorf("got %v", got)
			}
		})
	}
}

// A detach that has to wait for its turn must not take the words of what has ended with it.
func TestEventsComeBeforeWhatMayHaveToWait(t *testing.T) {
	d := &draft{v: of(), steps: []act.Step{act.Event{Message: "a"}, act.Part{}, act.Event{Message: "b"}, act.Call{}}}
	p := d.plan()
	if len(p.Stages) != 2 || len(p.Stages[0].Steps) != 2 || len(p.Stages[1].Steps) != 2 {
		t.Fatalf("got %+v", p.Stages)
	}
	for _, step := range p.Stages[0].Steps {
		if _, is := step.(act.Event); !is {
			t.Errorf("%T comes first", step)
		}
	}
}

func TestWhoIsInTheWay(t *testing.T) {
	for name, tc := range map[string]struct {
		on   []string
		want string
	}{
		"nobody":            {nil, "Volume is already exclusively attached to one node and can't be attached to another"},
		"two":               {[]string{"b", "a"}, "Volume is already used by pod(s) a, b"},
		"two and others":    {[]string{"b", "a", "x/secret", "y/secret"}, "Volume is already used by pod(s) a, b and 2 pod(s) in different namespaces"},
		"those others only": {[]string{"x/secret"}, "Volume is already used by 1 pod(s) in different namespaces"},
	} {
		v := of(has("n1", isThere), wants("n1", tc.on...), wants("n2", "web"), cached("n1", there, false), facts("n1", func(f *nodeFacts) { f.inUse = true }),
			wants("n3", "perhaps"), has("n3", pair{state: uncertain, known: true, told: true}))
		want := `tell web Multi-Attach error for volume "v0" ` + tc.want
		if got := steps(planVolume(v, noon).Stages); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestBackoff(t *testing.T) {
	var b backoff
	var got []string
	for range 10 {
		b = b.after(detachKind, noon)
		got = append(got, b.pause.String())
	}
	if want := "500ms 1s 2s 4s 8s 16s 32s 1m4s 2m2s 2m2s"; strings.Join(got, " ") != want {
		t.Errorf("pauses %v", got)
	}
	if b = b.after(attachKind, noon); b.pause != firstPause || !b.until.Equal(noon.Add(firstPause)) {
		t.Errorf("another kind begins with %s", b.pause)
	}
}

func TestPlansOfANode(t *testing.T) {
	listing := func(names ...volumes.Name) []corev1.AttachedVolume {
		var all []corev1.AttachedVolume
		for _, name := range names {
			all = append(all, corev1.AttachedVolume{Name: name})
		}
		return all
	}
	with := func(names ...volumes.Name) *corev1.Node {
		n := node("n1")
		n.Status.VolumesAttached = listing(names...)
		return n
	}
	for name, tc := range map[string]struct {
		view *nodeView
		want string
	}{
		"all are listed, in another order": {&nodeView{node: with("b", "a"), attached: listing("a", "b")}, ""},
		"one is missing": {&nodeView{node: with("a"), attached: listing("a", "b")},
			`{"metadata":{"resourceVersion":"","uid":"uid-n1"},"status":{"volumesAttached":[{"name":"a","devicePath":""},{"name":"b","devicePath":""}]}}`},
		"the last one goes":          {&nodeView{node: with("a")}, `{"metadata":{"resourceVersion":"","uid":"uid-n1"},"status":{"volumesAttached":null}}`},
		"nothing, as it should be":   {&nodeView{node: with()}, ""},
		"nobody knows what is there": {&nodeView{node: with(), unsure: true}, `{"metadata":{"resourceVersion":"","uid":"uid-n1"},"status":{"volumesAttached":null}}`},
		"there is no such node":      {&nodeView{attached: listing("a"), unsure: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			tc.view.name, tc.view.want = "n1", 7
			p := planNode(tc.view, noon)
			got := ""
			if len(p.Stages) > 0 {
				patch := p.Stages[0].Steps[0].(act.Patch)
				if got = string(patch.Data); patch.Type != types.StrategicMergePatchType || patch.Subresource != "status" {
					t.Errorf("patches %s of type %s", patch.Subresource, patch.Type)
				}
			}
			if got != tc.want {
				t.Errorf("writes %s", got)
			}
			if n := p.Note(succeeded(p)).(reported); n.done != 7 || n.unsure {
				t.Errorf("notes %+v", n)
			}
			if len(p.Stages) > 0 {
				failed := act.Results{{Step: p.Stages[0].Steps[0], Became: act.Uncertain, Err: errLost}}
				if n := p.Note(failed).(reported); n.done != 0 || !n.unsure {
					t.Errorf("notes of a failure %+v", n)
				}
			}
		})
	}
}

func TestWhatAVolumeIsToTheNodeCounts(t *testing.T) {
	shared := pv(0)
	shared.Name, shared.Spec.AccessModes = "shared", []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	source, err := volumes.OfPV(shared)
	if err != nil {
		t.Fatal(err)
	}
	v := of(has("n1", pair{state: attached, known: true}), wants("n1", "a"), wants("n2", "b"))
	v.sources = map[string]*volumes.Source{"n2": source}
	d := &draft{v: v, now: noon, pairs: v.pairs, backoffs: v.backoffs}
	if d.elsewhere("n2") || *d.attachment("n2").Spec.Source.PersistentVolumeName != "shared" || d.title("n2") != "shared" {
		t.Errorf("n2: elsewhere %t, attaches %+v as %s", d.elsewhere("n2"), d.attachment("n2").Spec.Source, d.title("n2"))
	}
	if !d.elsewhere("n3") || d.title("n1") == "shared" {
		t.Errorf("n3: elsewhere %t; n1: %s", d.elsewhere("n3"), d.title("n1"))
	}
}
