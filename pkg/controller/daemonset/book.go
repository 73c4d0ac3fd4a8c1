package daemonset

import (
	"container/heap"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// terms are what the verdicts in a book depend on besides nodes and pods. With
// other terms all of them are void.
type terms struct {
	uid        types.UID
	generation int64
	hash       string
}

// sums are over the nodes of a book.
type sums struct {
	desired, current, misscheduled, ready, available, updated int
	// troubled are those that reject pods.
	troubled int
	// Of the rollout.
	down, surging, serving int
}

// book remembers how a set stands to each node, with the sums over all of them,
// and which nodes have to be judged again. It is safe for concurrent use.
type book struct {
	mu    sync.Mutex
	terms terms
	fits  placement
	// data is what a revision of the template holds, as of the terms dataOf.
	data   []byte
	dataOf terms
	// whole tells that every node has to be judged; dirty are those otherwise.
	whole bool
	dirty map[string]bool

	nodes   map[string]stance
	sums    sums
	waiting map[string]bool // nodes with a working old pod
	parting map[string]bool // nodes with an old pod that are to have no new one
	hashes  map[string]int  // how many pods each revision has
	looks   looks
	dues    looks // when nodes are tried again that rejected their pod
}

func newBook() *book {
	b := &book{}
	b.clear()
	return b
}

func (b *book) clear() {
	b.whole = true
	b.dirty, b.nodes = map[string]bool{}, map[string]stance{}
	b.waiting, b.parting, b.hashes = map[string]bool{}, map[string]bool{}, map[string]int{}
	b.sums, b.looks, b.dues = sums{}, nil, nil
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

// dataFor returns the data of the present template, made when the set changes.
func (b *book) dataFor(t terms, data func() ([]byte, error)) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.data != nil && b.dataOf == t {
		return b.data, nil
	}
	made, err := data()
	if err == nil {
		b.data, b.dataOf = made, t
	}
	return made, err
}

// mark has a node judged again.
func (b *book) mark(node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.whole {
		b.dirty[node] = true
	}
}

// markAll has all nodes judged again.
func (b *book) markAll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.whole = true
}

// take returns the nodes to judge now, and whether it is to be all that exist. The
// caller reads the caches after that: what changes later is marked again.
func (b *book) take(now time.Time) (nodes []string, whole bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.looks) > 0 && !b.looks[0].at.After(now) {
		due := heap.Pop(&b.looks).(look)
		if b.nodes[due.node].look.Equal(due.at) {
			b.dirty[due.node] = true
		}
	}
	whole = b.whole
	if whole {
		for node := range b.nodes {
			b.dirty[node] = true // one that exists no more is judged too
		}
	}
	nodes = make([]string, 0, len(b.dirty))
	for node := range b.dirty {
		nodes = append(nodes, node)
	}
	b.whole = false
	clear(b.dirty)
	return nodes, whole
}

// note takes a verdict into the sums. A node that is not as it should be is
// judged again at the next look, when the caches show what was done about it.
func (b *book) note(node string, v *verdict) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.nodes[node]
	b.add(node, before, -1)
	b.add(node, v.stance, 1)
	if v.runs || v.scheduled || len(v.hashes) > 0 || !v.look.IsZero() {
		b.nodes[node] = v.stance
	} else {
		delete(b.nodes, node)
	}
	if !v.look.IsZero() && !v.look.Equal(before.look) {
		heap.Push(&b.looks, look{v.look, node})
	}
	if !v.due.IsZero() && !v.due.Equal(before.due) {
		heap.Push(&b.dues, look{v.due, node})
	}
	if v.acts() {
		b.dirty[node] = true
	}
}

// add counts a stance in or out.
func (b *book) add(node string, s stance, by int) {
	tally := func(to *int, counts bool) {
		if counts {
			*to += by
		}
	}
	tally(&b.sums.desired, s.runs)
	tally(&b.sums.current, s.runs && s.scheduled)
	tally(&b.sums.misscheduled, s.exists && !s.runs && s.scheduled)
	tally(&b.sums.ready, s.runs && s.ready)
	tally(&b.sums.available, s.runs && s.available)
	tally(&b.sums.updated, s.runs && s.updated)
	tally(&b.sums.troubled, s.troubled)
	tally(&b.sums.down, s.down)
	tally(&b.sums.surging, s.surging)
	tally(&b.sums.serving, s.serves)
	list := func(in map[string]bool, is bool) {
		if by < 0 {
			delete(in, node)
		} else if is {
			in[node] = true
		}
	}
	list(b.waiting, s.waits)
	list(b.parting, s.departs)
	for _, hash := range s.hashes {
		if b.hashes[hash] += by; b.hashes[hash] <= 0 {
			delete(b.hashes, hash)
		}
	}
}

// concerns tells whether a node with this fit is not as noted.
func (b *book) concerns(node string, exists, runs, stays bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, known := b.nodes[node]
	if !known {
		return runs
	}
	return s.exists != exists || s.runs != runs || s.stays != stays
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

func (b *book) totals() sums {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sums
}

// some returns up to n nodes of those that wait, or that part, in no order: which
// go first is up to chance.
func (b *book) some(n int, parting bool) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	from := b.waiting
	if parting {
		from = b.parting
	}
	var chosen []string
	for node := range from {
		if len(chosen) >= n {
			break
		}
		chosen = append(chosen, node)
	}
	return chosen
}

// uses tells whether a pod is of the revision with this hash.
func (b *book) uses(hash string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hashes[hash] > 0
}

// nextLook is how long until time changes a verdict; zero if it does not.
func (b *book) nextLook(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.looks) > 0 && !b.nodes[b.looks[0].node].look.Equal(b.looks[0].at) {
		heap.Pop(&b.looks)
	}
	if len(b.looks) == 0 {
		return 0
	}
	return max(b.looks[0].at.Sub(now), time.Millisecond)
}

// look is when a node has to be judged again.
type look struct {
	at   time.Time
	node string
}

// looks is a heap of them, the next one first.
type looks []look

func (l looks) Len() int           { return len(l) }
func (l looks) Less(i, j int) bool { return l[i].at.Before(l[j].at) }
func (l looks) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }

// Push is for the heap.
func (l *looks) Push(x any) { *l = append(*l, x.(look)) }

// Pop is for the heap.
func (l *looks) Pop() any {
	last := (*l)[len(*l)-1]
	*l = (*l)[:len(*l)-1]
	return last
}
