package attachdetach

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// withheld are the results of a plan whose last step somebody asked to wait.
func withheld(p act.Plan) act.Results {
	results := succeeded(p)
	last := len(results) - 1
	results[last].Became, results[last].Err = act.OnHold, &consistency.Withheld{Why: "paused"}
	return results
}

// A volume stays attached to its node as long as nobody was asked to detach it: another node
// must not get it.
func TestADetachThatIsWithheldBeginsOnceMore(t *testing.T) {
	late := unused
	late.gone = ago(time.Hour)
	v := of(has("n1", late), wants("n2", "web"), cached("n1", there, false), facts("n1", func(f *nodeFacts) { f.ready = false }))
	for range 2 {
		p := planVolume(v, noon)
		if got := steps(p.Stages); got != "check Node n1, delete VolumeAttachment n1" {
			t.Fatalf("it wants to %q because %q", got, p.Why)
		}
		begun, results := len(p.Counts(succeeded(p))), withheld(p)
		if begun != len(p.Counts(results))+1 {
			t.Errorf("%d counts, and %d while it is withheld", begun, len(p.Counts(results)))
		}
		if n := p.Note(results).(noted); n.again {
			t.Error("it is looked at again at once")
		}
		v = next(v, p, results)
		if now := v.pairs["n1"]; now.state != attached || now.op.kind != none || len(v.backoffs) > 0 {
			t.Errorf("it is %+v, with %v", now, v.backoffs)
		}
	}
}

func TestAnAttachThatIsWithheldBeginsOnceMore(t *testing.T) {
	v := of(wants("n1", "web"))
	for range 2 {
		p := planVolume(v, noon)
		if got := steps(p.Stages); got != "create VolumeAttachment n1" {
			t.Fatalf("it wants to %q because %q", got, p.Why)
		}
		v = next(v, p, withheld(p))
		if now := v.pairs["n1"]; now.state != absent || now.op.kind != none || len(v.backoffs) > 0 {
			t.Errorf("it is %+v, with %v", now, v.backoffs)
		}
	}
}

// The object of an attach under way that somebody has deleted is made again while a pod wants
// the volume, and not as fast as they can delete it.
func TestTheObjectOfAnAttachIsMadeAgain(t *testing.T) {
	const create = "create VolumeAttachment n1"
	going := pair{known: true, wanted: true, op: attaching(time.Second)}
	v := of(wants("n1", "web"), has("n1", going))
	for _, tc := range []struct {
		after time.Duration
		steps string
		due   time.Duration
	}{
		{0, create, 0}, {time.Millisecond, "", time.Second - time.Millisecond}, {time.Second, create, 0}, {time.Second + 1, "", time.Second - 1},
	} {
		now := noon.Add(tc.after)
		p := planVolume(v, now)
		if got := steps(p.Stages); got != tc.steps || tc.due > 0 && p.RequeueAt.Sub(now) != tc.due {
			t.Errorf("after %s: %q, looks again at %s", tc.after, got, p.RequeueAt)
		}
		v = next(v, p, succeeded(p))
	}
	unwanted := planVolume(of(has("n1", going)), noon)
	if got := steps(unwanted.Stages); got != "" || !strings.Contains(unwanted.Why, "attach under way") {
		t.Errorf("when no pod wants it: %q, because %q", got, unwanted.Why)
	}
}

// An event of a node between the look at a volume and the note that its detach waits wakes it
// all the same.
func TestANodeThatIsSeenInBetween(t *testing.T) {
	b := newBook(noon)
	b.nodeSeen("n1", true, true)
	looked := b.standing("a", "n1").seen
	waits := at(pair{state: attached, waits: true, waitsAt: looked})
	if b.put("a", waits); b.missed("a") {
		t.Error("nothing has happened in between")
	}
	_, waiting, _ := b.nodeSeen("n1", true, true)
	if !slices.Contains(waiting, "a") {
		t.Errorf("what waits is not woken: %v", waiting)
	}
	if b.put("a", waits); !b.missed("a") {
		t.Error("what happened in between is missed")
	}
}

func TestWhatIsTakenToBeInUseEndsWithTheNode(t *testing.T) {
	b := newBook(noon)
	b.nodeSeen("n1", true, true)
	p := pair{state: uncertain, assumed: true, seen: b.standing("a", "n1").seen}
	b.put("a", at(p))
	b.nodeGone("n1", []corev1.UniqueVolumeName{"b"})
	if f := b.standing("a", "n1"); f.seen == p.seen || f.inUse {
		t.Errorf("without the node %+v", f)
	}
}

// A node may be out of the cache before its last event has said what it had in use.
func TestANodeThatHasJustLeftTheCache(t *testing.T) {
	for name, tc := range map[string]struct {
		hear func(*book)
		want bool
	}{
		"was never seen":        {func(*book) {}, false},
		"is not known as gone":  {func(b *book) { b.nodeSeen("n1", true, true) }, true},
		"is gone, had it":       {func(b *book) { b.nodeGone("n1", []corev1.UniqueVolumeName{"a"}) }, true},
		"is gone, had it not":   {func(b *book) { b.nodeGone("n1", []corev1.UniqueVolumeName{"b"}) }, false},
		"is gone, and was seen": {func(b *book) { b.nodeSeen("n1", true, true); b.nodeGone("n1", nil) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Controller{book: newBook(noon), nodes: cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)}
			c.book.put("a", at(pair{state: attached}))
			tc.hear(c.book)
			if got := c.facts("a", "n1").inUse; got != tc.want {
				t.Errorf("in use: %v", got)
			}
		})
	}
}

func TestTheStatusOfANodeIsTriedSooner(t *testing.T) {
	p := newPauses()
	volume, node := key{volume: nameOf(0)}, key{node: "n1"}
	for range 12 {
		p.When(volume)
		p.When(node)
	}
	if of, at := p.When(volume), p.When(node); of != longestPause || at != longestNodePause {
		t.Errorf("after many failures a volume waits %s, and a node %s", of, at)
	}
	p.Forget(node)
	if first := p.When(node); first != firstNodePause || p.NumRequeues(node) != 1 || p.NumRequeues(volume) != 13 {
		t.Errorf("the first pause of a node is %s", first)
	}
}
