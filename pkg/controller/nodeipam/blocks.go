package nodeipam

import (
	"math/big"
	"net/netip"
	"slices"
)

// Range is a cluster CIDR, and the mask size of the blocks that it is cut into.
type Range struct {
	CIDR     netip.Prefix
	NodeMask int
}

// blocks is a cluster CIDR cut into blocks of one size, and who uses them. It is not safe
// for concurrent use.
type blocks struct {
	Range
	// all is how many there are.
	all uint64
	// withheld are spans that no node gets.
	withheld []span
	// users counts the nodes on a block, which may be several that were there before.
	users map[uint64]int
	// used is how many blocks are withheld or have users.
	used uint64
	// next is where the search for a free one begins: a block that has become free is not
	// the next one to be handed out.
	next   uint64
	counts counts
}

// span is blocks from the first to the last.
type span struct{ first, last uint64 }

func (s span) has(i uint64) bool { return s.first <= i && i <= s.last }

func (s span) size() uint64 { return s.last - s.first + 1 }

func newBlocks(r Range) *blocks {
	b := &blocks{Range: r, all: 1 << (r.NodeMask - r.CIDR.Bits()), users: map[uint64]int{}, counts: counts(r.CIDR.String())}
	b.counts.most(b.all)
	return b
}

// spanOf returns the blocks that a CIDR has a part in; none when it lies outside.
func (b *blocks) spanOf(cidr netip.Prefix) (span, bool) {
	switch {
	case !b.CIDR.Overlaps(cidr):
		return span{}, false
	case cidr.Bits() <= b.CIDR.Bits():
		return span{0, b.all - 1}, true
	}
	first := b.index(cidr.Masked().Addr())
	if cidr.Bits() >= b.NodeMask {
		return span{first, first}, true
	}
	return span{first, first + 1<<(b.NodeMask-cidr.Bits()) - 1}, true
}

// index is the number of the block that has the address.
func (b *blocks) index(a netip.Addr) uint64 {
	bits := new(big.Int).SetBytes(a.AsSlice())
	bits.Rsh(bits, uint(a.BitLen()-b.NodeMask))
	return bits.And(bits, new(big.Int).SetUint64(b.all-1)).Uint64()
}

// block is the CIDR of the block of that number.
func (b *blocks) block(i uint64) netip.Prefix {
	base := b.CIDR.Addr()
	bits := new(big.Int).SetUint64(i)
	bits.Lsh(bits, uint(base.BitLen()-b.NodeMask))
	bits.Or(bits, new(big.Int).SetBytes(base.AsSlice()))
	first, _ := netip.AddrFromSlice(bits.FillBytes(make([]byte, base.BitLen()/8)))
	return netip.PrefixFrom(first, b.NodeMask)
}

// withhold takes what the CIDR overlaps out of what nodes get; it is called before there
// are any. Of two CIDRs with common blocks one has all of the other's.
func (b *blocks) withhold(cidr netip.Prefix) {
	of, inside := b.spanOf(cidr)
	if !inside || b.covered(of) {
		return
	}
	before := b.used
	b.withheld = slices.DeleteFunc(b.withheld, func(s span) bool {
		if of.has(s.first) {
			b.used -= s.size()
		}
		return of.has(s.first)
	})
	b.withheld = append(b.withheld, of)
	b.used += of.size()
	b.counts.taken(b.used - before)
	b.counts.show(b)
}

// covered reports whether all of the blocks are withheld.
func (b *blocks) covered(of span) bool {
	s, withheld := b.withheldAt(of.first)
	return withheld && s.has(of.last)
}

// isUsed reports whether nobody else can have the block.
func (b *blocks) isUsed(i uint64) bool {
	if b.users[i] > 0 {
		return true
	}
	_, withheld := b.withheldAt(i)
	return withheld
}

func (b *blocks) withheldAt(i uint64) (span, bool) {
	for _, s := range b.withheld {
		if s.has(i) {
			return s, true
		}
	}
	return span{}, false
}

// shared reports whether one of the blocks has several users.
func (b *blocks) shared(of span) bool {
	for i := of.first; i <= of.last; i++ {
		if b.users[i] > 1 {
			return true
		}
	}
	return false
}

// take adds a user to the blocks.
func (b *blocks) take(of span) {
	for i := of.first; i <= of.last; i++ {
		if !b.isUsed(i) {
			b.used++
			b.counts.taken(1)
		}
		b.users[i]++
	}
	b.counts.show(b)
}

// release takes a user off the blocks.
func (b *blocks) release(of span) {
	free := uint64(0)
	for i := of.first; i <= of.last; i++ {
		if b.users[i]--; b.users[i] <= 0 {
			delete(b.users, i)
		}
		if !b.isUsed(i) {
			free++
		}
	}
	b.used -= free
	b.counts.freed(free)
	b.counts.show(b)
}

// free finds a block that nobody uses, the next after the last that was handed out. There
// must be one.
func (b *blocks) free() uint64 {
	for tries, i := 0, b.next; ; {
		s, withheld := b.withheldAt(i)
		switch {
		case withheld:
			tries += int(span{i, s.last}.size())
			i = s.last
		case b.users[i] > 0:
			tries++
		default:
			b.next = (i + 1) % b.all
			b.counts.tried(tries)
			return i
		}
		i = (i + 1) % b.all
	}
}
