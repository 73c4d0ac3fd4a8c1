package nodeipam

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func rangeOf(cidr string, mask int) Range { return Range{netip.MustParsePrefix(cidr), mask} }

func TestBlocks(t *testing.T) {
	for name, tc := range map[string]struct {
		of               Range
		all              uint64
		first, third     string
		inThird, lastOne string
	}{
		"IPv4":                  {rangeOf("10.244.0.0/21", 24), 8, "10.244.0.0/24", "10.244.2.0/24", "10.244.2.77", "10.244.7.0/24"},
		"IPv4 of all addresses": {rangeOf("10.0.0.0/30", 32), 4, "10.0.0.0/32", "10.0.0.2/32", "10.0.0.2", "10.0.0.3/32"},
		"IPv4 by half a byte":   {rangeOf("10.244.0.0/16", 26), 1024, "10.244.0.0/26", "10.244.0.128/26", "10.244.0.130", "10.244.255.192/26"},
		"IPv6":                  {rangeOf("fd00:10:244::/56", 64), 256, "fd00:10:244::/64", "fd00:10:244:2::/64", "fd00:10:244:2::9", "fd00:10:244:ff::/64"},
		"IPv6, high bits only":  {rangeOf("fd00::/32", 44), 4096, "fd00::/44", "fd00:0:20::/44", "fd00:0:2f::1", "fd00:0:fff0::/44"},
		"IPv6, low bits only":   {rangeOf("fd00::/104", 120), 65536, "fd00::/120", "fd00::200/120", "fd00::2ff", "fd00::ff:ff00/120"},
		"IPv6 over the middle":  {rangeOf("fd00::/60", 70), 1024, "fd00::/70", "fd00::800:0:0:0/70", "fd00:0:0:0:900::1", "fd00:0:0:f:fc00::/70"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBlocks(tc.of)
			if b.all != tc.all || b.block(0).String() != tc.first || b.block(2).String() != tc.third || b.block(b.all-1).String() != tc.lastOne {
				t.Errorf("%d blocks: %s, %s ... %s", b.all, b.block(0), b.block(2), b.block(b.all-1))
			}
			if got := b.index(netip.MustParseAddr(tc.inThird)); got != 2 {
				t.Errorf("%s is in block %d", tc.inThird, got)
			}
			for i := uint64(0); i < b.all; i += 1 + b.all/100 {
				if got := b.index(b.block(i).Addr()); got != i {
					t.Fatalf("block %d is %s, which is number %d", i, b.block(i), got)
				}
			}
		})
	}
}

func TestSpanOf(t *testing.T) {
	four, six := newBlocks(rangeOf("10.244.0.0/21", 24)), newBlocks(rangeOf("fd00::/56", 64))
	for cidr, tc := range map[string]struct {
		of   *blocks
		want span
		in   bool
	}{
		"10.244.3.0/24":   {four, span{3, 3}, true},
		"10.244.3.64/26":  {four, span{3, 3}, true}, // a finer one takes the block that it is in
		"10.244.2.0/23":   {four, span{2, 3}, true}, // a coarser one takes all that are in it
		"10.244.0.0/21":   {four, span{0, 7}, true},
		"10.0.0.0/8":      {four, span{0, 7}, true},
		"10.244.8.0/24":   {four, span{}, false},
		"fd00::/64":       {four, span{}, false},
		"fd00:0:0:7::/64": {six, span{7, 7}, true},
		"10.244.0.0/24":   {six, span{}, false},
	} {
		if got, in := tc.of.spanOf(netip.MustParsePrefix(cidr)); got != tc.want || in != tc.in {
			t.Errorf("%s in %s: %v, %t", cidr, tc.of.CIDR, got, in)
		}
	}
}

// handOut takes free blocks until there is none, or n.
func handOut(b *blocks, n int) (got []uint64) {
	for range n {
		if b.used == b.all {
			return got
		}
		i := b.free()
		b.take(span{i, i})
		got = append(got, i)
	}
	return got
}

func TestTheNextBlockIsTheOneAfterTheLast(t *testing.T) {
	b := newBlocks(rangeOf("10.244.0.0/21", 24))
	if diff := cmp.Diff([]uint64{0, 1, 2}, handOut(b, 3)); diff != "" {
		t.Error(diff)
	}
	if b.release(span{1, 1}); b.used != 2 {
		t.Errorf("%d are used", b.used)
	}
	if diff := cmp.Diff([]uint64{3, 4, 5, 6, 7, 1}, handOut(b, 9)); diff != "" {
		t.Errorf("the freed block is not the last one: %s", diff)
	}
}

func TestAWithheldBlockIsHandedOutToNobody(t *testing.T) {
	for name, tc := range map[string]struct {
		services []string
		want     []uint64
	}{
		"a part of a block":             {[]string{"10.244.1.0/28"}, []uint64{0, 2, 3, 4, 5, 6, 7}},
		"several":                       {[]string{"10.244.2.0/23"}, []uint64{0, 1, 4, 5, 6, 7}},
		"the first and the last":        {[]string{"10.244.0.0/24", "10.244.6.0/23"}, []uint64{1, 2, 3, 4, 5}},
		"one within the other":          {[]string{"10.244.0.0/22", "10.244.1.0/24"}, []uint64{4, 5, 6, 7}},
		"one around the other":          {[]string{"10.244.1.0/24", "10.244.0.0/22"}, []uint64{4, 5, 6, 7}},
		"twice the same":                {[]string{"10.244.1.0/24", "10.244.1.0/24"}, []uint64{0, 2, 3, 4, 5, 6, 7}},
		"all of the cluster and more":   {[]string{"10.0.0.0/8"}, nil},
		"elsewhere, and other families": {[]string{"10.96.0.0/12", "fd00::/108"}, []uint64{0, 1, 2, 3, 4, 5, 6, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBlocks(rangeOf("10.244.0.0/21", 24))
			for _, s := range tc.services {
				b.withhold(netip.MustParsePrefix(s))
			}
			if want := b.all - uint64(len(tc.want)); b.used != want {
				t.Errorf("%d are used, want %d", b.used, want)
			}
			if diff := cmp.Diff(tc.want, handOut(b, 20)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestABlockOfTwoNodesIsFreeWhenBothAreGone(t *testing.T) {
	b := newBlocks(rangeOf("10.244.0.0/21", 24))
	b.withhold(netip.MustParsePrefix("10.244.7.0/24"))
	b.take(span{2, 2})
	b.take(span{0, 7}) // somebody's range covers all, Services included
	if b.used != 8 {
		t.Errorf("%d are used", b.used)
	}
	if b.release(span{0, 7}); b.used != 2 {
		t.Errorf("%d are used when the range is gone", b.used)
	}
	if b.release(span{2, 2}); b.used != 1 {
		t.Errorf("%d are used when both are gone", b.used)
	}
}

func BenchmarkHandOut(b *testing.B) {
	of := newBlocks(rangeOf("10.0.0.0/8", 24))
	for i := uint64(0); i < of.all-1; i++ {
		of.take(span{i, i})
	}
	for b.Loop() {
		i := of.free()
		of.take(span{i, i})
		of.release(span{i, i})
	}
}
