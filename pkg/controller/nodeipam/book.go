package nodeipam

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	netutils "k8s.io/utils/net"
)

// node is what the book needs of a node.
type node struct {
	name  string
	uid   types.UID
	cidrs []string
}

// holding is what a node has, or is to get.
type holding struct {
	uid   types.UID
	cidrs []string
	spans []held
	// shown: the cache has shown this very node, so that it shows too when the node goes.
	shown bool
	// there: the node has the CIDRs, and they are not proposed only.
	there bool
}

// held are blocks of one of the cluster CIDRs.
type held struct {
	of *blocks
	span
}

// book has the blocks of all nodes. It is safe for concurrent use.
type book struct {
	mu       sync.Mutex
	ranges   []*blocks
	nodes    map[string]*holding
	starving []string // nodes for which there was no block, those that wait longest first
	// woken are those of them whose turn it is, and who have not come for their block yet.
	woken map[string]bool
}

func newBook(o Options) *book {
	b := &book{nodes: map[string]*holding{}, woken: map[string]bool{}}
	for _, r := range o.Ranges {
		blocks := newBlocks(r)
		for _, services := range o.Services {
			blocks.withhold(services)
		}
		b.ranges = append(b.ranges, blocks)
	}
	return b
}

// found notes what a node has, from a list that is not the cache's.
func (b *book) found(n node) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.nodes[n.name] == nil && len(n.cidrs) > 0 {
		b.nodes[n.name] = b.hold(n)
		b.nodes[n.name].there = true
	}
}

// show notes what the cache shows of a node that has CIDRs, and returns whose turn it is
// now, and what is wrong with the CIDRs. What was held for the node before, it does not
// have: CIDRs are never changed.
func (b *book) show(n node) (next []string, outside error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.served(n.name)
	before := b.nodes[n.name]
	if before == nil || before.uid != n.uid || !slices.Equal(before.cidrs, n.cidrs) {
		b.nodes[n.name] = b.hold(n) // before the other blocks become free: some may be in both
		b.release(before)
	}
	now := b.nodes[n.name]
	now.shown, now.there = true, true
	return b.turns(), b.outside(n.cidrs)
}

// hold makes the node a user of what it has.
func (b *book) hold(n node) *holding {
	h := &holding{uid: n.uid, cidrs: n.cidrs}
	for _, cidr := range n.cidrs {
		prefix, err := parse(cidr)
		if err != nil {
			continue
		}
		for _, r := range b.ranges {
			if of, inside := r.spanOf(prefix); inside {
				r.take(of)
				h.spans = append(h.spans, held{r, of})
			}
		}
	}
	return h
}

// outside returns what is wrong with the CIDRs of a node.
func (b *book) outside(cidrs []string) error {
	var errs []error
	for _, cidr := range cidrs {
		prefix, err := parse(cidr)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		in := func(r *blocks) bool { return r.CIDR.Overlaps(prefix) }
		if !slices.ContainsFunc(b.ranges, in) {
			errs = append(errs, fmt.Errorf("%s is in no cluster CIDR (%s)", cidr, b.names()))
		}
	}
	return errors.Join(errs...)
}

func (b *book) names() string {
	names := ""
	for i, r := range b.ranges {
		if i > 0 {
			names += ","
		}
		names += r.CIDR.String()
	}
	return names
}

// parse accepts what the API server accepts on nodes that are there.
func parse(cidr string) (netip.Prefix, error) {
	_, parsed, err := netutils.ParseCIDRSloppy(cidr)
	if err != nil {
		return netip.Prefix{}, err
	}
	return prefixOf(parsed), nil
}

// propose returns what a node that has no CIDRs is to get: what is held for it already, or
// a free block of each range, or nothing of any. What another node has got meanwhile it is
// to get only if it has it already, which a live look says.
func (b *book) propose(n node) proposal {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h := b.nodes[n.name]; h != nil {
		h.shown = true
		return proposal{cidrs: h.cidrs, there: h.there || h.shared()}
	}
	for _, r := range b.ranges {
		if r.used < r.all {
			continue
		}
		if !slices.Contains(b.starving, n.name) {
			b.starving = append(b.starving, n.name)
		}
		delete(b.woken, n.name) // somebody else was faster: its turn comes again
		return proposal{exhausted: fmt.Errorf("all %d blocks of %s are used", r.all, r.CIDR)}
	}
	h := &holding{uid: n.uid, shown: true}
	for _, r := range b.ranges {
		i := r.free()
		r.take(span{i, i})
		h.spans = append(h.spans, held{r, span{i, i}})
		h.cidrs = append(h.cidrs, r.block(i).String())
	}
	b.served(n.name)
	b.nodes[n.name] = h
	return proposal{cidrs: h.cidrs}
}

// proposal is what a node without CIDRs is to get.
type proposal struct {
	cidrs []string
	// there: a list has shown that the node has them; the cache is behind.
	there bool
	// exhausted is why there is none.
	exhausted error
}

// served takes a node off those that wait for a block.
func (b *book) served(name string) {
	if len(b.starving) == 0 {
		return
	}
	b.starving = slices.DeleteFunc(b.starving, func(s string) bool { return s == name })
	delete(b.woken, name)
}

// lost notes that a node does not have what is held for it, as after a restore of etcd.
// It stays held, unless another node has it.
func (b *book) lost(name string, uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.nodes[name]
	switch {
	case h == nil || h.uid != uid:
	case h.shared():
		delete(b.nodes, name)
		b.release(h)
	default:
		h.there = false
	}
}

// shared reports whether another node is a user of a block too.
func (h *holding) shared() bool {
	return slices.ContainsFunc(h.spans, func(s held) bool { return s.of.shared(s.span) })
}

// leaves takes a node that needs no block any more off those that wait, and returns whose
// turn it is in its place.
func (b *book) leaves(name string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.served(name)
	return b.turns()
}

// turns returns the waiting nodes to wake: as many have their turn as can be served, those
// that wait longest first. Who was woken is not woken again, and the next one is.
func (b *book) turns() (next []string) {
	left := b.left()
	for _, name := range b.starving {
		if uint64(len(b.woken)) >= left {
			break
		}
		if !b.woken[name] {
			b.woken[name] = true
			next = append(next, name)
		}
	}
	return next
}

// left is how many nodes can be served: each needs a block of each range.
func (b *book) left() uint64 {
	left := uint64(math.MaxUint64)
	for _, r := range b.ranges {
		left = min(left, r.all-r.used)
	}
	return left
}

// of returns the UID of the node that holds blocks under a name, and whether the cache has
// shown that node.
func (b *book) of(name string) (uid types.UID, shown, holds bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.nodes[name]
	if h == nil {
		return "", false, false
	}
	return h.uid, h.shown, true
}

// gone takes back what the node of that UID has, and returns whose turn it is now.
func (b *book) gone(name string, uid types.UID) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.served(name)
	if h := b.nodes[name]; h != nil && h.uid == uid {
		delete(b.nodes, name)
		b.release(h)
	}
	return b.turns()
}

// release takes a node off its blocks.
func (b *book) release(h *holding) {
	if h == nil {
		return
	}
	for _, s := range h.spans {
		s.of.release(s.span)
	}
}
