package daemonset

import (
	"container/heap"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// terms are what the facts about nodes depend on, besides the nodes and pods. When they
// change, all these facts are void.
type terms struct {
	uid        types.UID
	generation int64
	hash       string
}

// book remembers how a set stands to each node, with the sums over all of them, and
// which nodes have to be looked at again. A plan reads it through observe and changes it
// through its note, so that what was observed and came to nothing is observed again.
// It is safe for concurrent use.
type book struct {
	mu    sync.Mutex
	terms terms
	fits  placement
	// data is what a revision of the template holds, as of the terms dataOf.
	data   []byte
	dataOf terms
	// known is the hash of the template's revision if it is not the one that the
	// template leads to, as of the terms dataOf.
	known string

	// marks number the changes. A node that is marked is looked at again, and stays marked
	// until that is noted; whole marks all nodes.
	marks uint64
	whole uint64
	dirty map[string]uint64

	nodes            map[string]nodeState
	sums             sums
	waiting, leaving names          // nodes in these states of the rollout
	hashes           map[string]int // how many pods each revision has
	looks            looks
	dues             looks  // when nodes are tried again that rejected their pod
	after            string // the node that the rollout took last
	refused          string // the node for which something was refused last
}

func newBook() *book {
	b := &book{}
	b.clear()
	return b
}

func (b *book) clear() {
	b.marks++
	b.whole = b.marks
	b.dirty, b.nodes, b.hashes = map[string]uint64{}, map[string]nodeState{}, map[string]int{}
	b.waiting, b.leaving = nil, nil
	b.sums, b.looks, b.dues, b.after, b.refused = sums{}, nil, nil, "", ""
}

// under opens the book for a set with these terms, and forgets what was noted
// under others.
func (b *book) under(t terms, fits func() placement) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.terms != t {
		b.clear()
		b.terms, b.fits = t, fits()
	}
}

// dataFor returns the data of the present template, made when the set changes, and
// the hash of its revision if that is known to be another than the template's.
func (b *book) dataFor(t terms, data func() ([]byte, error)) ([]byte, string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.data != nil && b.dataOf == t {
		return b.data, b.known, nil
	}
	made, err := data()
	if err == nil {
		b.data, b.dataOf, b.known = made, t, ""
	}
	return made, "", err
}

// mark has a node looked at again.
func (b *book) mark(node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.marks++
	b.dirty[node] = b.marks
}

// markAll has all nodes looked at again.
func (b *book) markAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.marks++
	b.whole = b.marks
}

// marked returns the nodes to consider now, whether it is to be all that exist, and the
// number of the latest mark. The caller reads the caches after that: what changes later
// has a higher number.
func (b *book) marked(now time.Time) (nodes []string, whole bool, at uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.looks) > 0 && !b.looks[0].at.After(now) {
		due := heap.Pop(&b.looks).(look)
		if b.nodes[due.node].look.Equal(due.at) && b.dirty[due.node] == 0 {
			b.dirty[due.node] = b.marks
		}
	}
	nodes = slices.Collect(maps.Keys(b.dirty))
	if b.whole > 0 {
		nodes = slices.AppendSeq(nodes, maps.Keys(b.nodes)) // one that exists no more is considered too
	}
	slices.Sort(nodes)
	return slices.Compact(nodes), b.whole > 0, b.marks
}

// noted is what a plan has made of the nodes that it looked at.
type noted struct {
	terms terms
	// at is the number of the latest mark when they were observed, and whole that they
	// were all nodes.
	at      uint64
	whole   bool
	entries []entry
	// after is the node that the rollout took last; empty if it took none.
	after string
	// refused is the first node for which something was refused; empty if nothing was.
	refused string
	// hash is that of the template's revision if it is not the one that was expected;
	// then nothing was made of the nodes.
	hash string
	// failed are the backoffs of pods that have failed and go.
	failed []string
}

// entry is what is noted of one node. Again: it is to be looked at again, when the caches
// show what was done about it.
type entry struct {
	node string
	nodeState
	again bool
}

// note takes over what a plan has made of the nodes.
func (b *book) note(n noted) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n.hash != "" && n.terms.uid == b.dataOf.uid && n.terms.generation == b.dataOf.generation {
		b.known = n.hash
	}
	if n.hash != "" || n.terms != b.terms {
		return
	}
	for _, s := range n.entries {
		b.set(s, n.at)
	}
	if n.whole && b.whole <= n.at {
		b.whole = 0
	}
	if n.after != "" {
		b.after = n.after
	}
	if n.refused != "" {
		b.refused = n.refused
	}
}

// set takes an entry into the sums.
func (b *book) set(s entry, at uint64) {
	before := b.nodes[s.node]
	b.sums.add(&before, -1)
	b.sums.add(&s.nodeState, 1)
	count(b.hashes, before.hashes, -1)
	count(b.hashes, s.hashes, 1)
	b.waiting.put(s.node, s.rollout == rolloutWaiting)
	b.leaving.put(s.node, s.rollout == rolloutLeaving)
	if s.counts() {
		b.nodes[s.node] = s.nodeState
	} else {
		delete(b.nodes, s.node)
	}
	if !s.look.IsZero() && !s.look.Equal(before.look) {
		heap.Push(&b.looks, look{s.look, s.node})
	}
	if !s.due.IsZero() && !s.due.Equal(before.due) {
		heap.Push(&b.dues, look{s.due, s.node})
	}
	switch {
	case s.again && b.dirty[s.node] == 0:
		b.dirty[s.node] = at
	case !s.again && b.dirty[s.node] <= at:
		delete(b.dirty, s.node)
	}
}

// concerns reports whether a node that fits like this is not as noted. What is being
// considered just now may have been read before.
func (b *book) concerns(node string, is fit) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.whole > 0 || b.dirty[node] > 0 {
		return true
	}
	if s, known := b.nodes[node]; known {
		return s.fit != is
	}
	return is == fitOpen
}

// placement is where the set's pods are to be.
func (b *book) placement() placement {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fits
}

func (b *book) is(uid types.UID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.terms.uid == uid
}

// elsewhere is what is remembered of all nodes but those that are looked at.
type elsewhere struct {
	sums   sums
	hashes map[string]int
	// look is when the first of them has to be looked at again; zero if none has.
	look time.Time
	// setback is what those say that reject pods.
	setback setback
	// turn is the node that the rollout took last, refused that for which something was
	// refused last.
	turn, refused string
}

// besides sums up all nodes but these, which are sorted.
func (b *book) besides(nodes []string) elsewhere {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := elsewhere{sums: b.sums, hashes: maps.Clone(b.hashes), turn: b.after, refused: b.refused}
	for _, node := range nodes {
		before := b.nodes[node]
		e.sums.add(&before, -1)
		count(e.hashes, before.hashes, -1)
	}
	among := func(node string) bool { _, is := slices.BinarySearch(nodes, node); return is }
	if next := b.looks.first(among, func(l look) bool { return b.nodes[l.node].look.Equal(l.at) }); next != nil {
		e.look = next.at
	}
	if next := b.dues.first(among, func(l look) bool { return b.nodes[l.node].due.Equal(l.at) }); next != nil {
		e.setback = setback{node: next.node, due: next.at, reason: b.nodes[next.node].why}
	}
	return e
}

// inTurn returns up to n nodes of a list, with how the set stands to them, without those
// in but, which are sorted. It begins after the node that was taken last, so that a node
// whose pod stays holds up no other.
func (b *book) inTurn(n int, from func(*book) names, but []string) (nodes []entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := from(b)
	start, _ := slices.BinarySearch(all, b.after+"\x00")
	for i := 0; i < len(all) && len(nodes) < n; i++ {
		node := all[(start+i)%len(all)]
		if _, is := slices.BinarySearch(but, node); !is {
			nodes = append(nodes, entry{node: node, nodeState: b.nodes[node]})
		}
	}
	return nodes
}
