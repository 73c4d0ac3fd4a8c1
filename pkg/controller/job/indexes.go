package job

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// span is a run of indexes, both ends in it.
type span struct{ first, last int }

// indexes is a set of completion indexes as ordered spans that neither touch nor
// overlap, so that it stays small where most have succeeded.
type indexes []span

// parseIndexes reads the form that statuses and success policies have, such as
// "1,3-5,7". Indexes from limit on are left out, as is what cannot be read.
func parseIndexes(text string, limit int) indexes {
	var spans []span
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		if err != nil || first < 0 {
			continue
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(to); err != nil {
				continue
			}
		}
		if last = min(last, limit-1); first <= last {
			spans = append(spans, span{first, last})
		}
	}
	return joined(spans)
}

// joined orders spans and joins those that touch or overlap.
func joined(spans []span) indexes {
	byStart := func(a, b span) int { return cmp.Compare(a.first, b.first) }
	if !slices.IsSortedFunc(spans, byStart) {
		slices.SortFunc(spans, byStart)
	}
	var set indexes
	for _, s := range spans {
		if n := len(set); n > 0 && s.first <= set[n-1].last+1 {
			set[n-1].last = max(set[n-1].last, s.last)
			continue
		}
		set = append(set, s)
	}
	return set
}

// String is the form that parseIndexes reads: a run of three or more is written
// by its ends.
func (x indexes) String() string {
	var b []byte
	for i, s := range x {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(s.first), 10)
		switch {
		case s.last == s.first:
			continue
		case s.last == s.first+1:
			b = append(b, ',')
		default:
			b = append(b, '-')
		}
		b = strconv.AppendInt(b, int64(s.last), 10)
	}
	return string(b)
}

func (x indexes) total() int {
	n := 0
	for _, s := range x {
		n += s.last - s.first + 1
	}
	return n
}

func (x indexes) has(i int) bool {
	_, found := slices.BinarySearchFunc(x, i, func(s span, i int) int {
		switch {
		case s.last < i:
			return -1
		case s.first > i:
			return 1
		}
		return 0
	})
	return found
}

// with is the set and these indexes.
func (x indexes) with(more ...int) indexes {
	if len(more) == 0 {
		return x
	}
	return x.and(of(more))
}

func of(list []int) indexes {
	spans := make([]span, len(list))
	for i, n := range list {
		spans[i] = span{n, n}
	}
	return joined(spans)
}

// and is the union of both sets.
func (x indexes) and(other indexes) indexes {
	if len(x) == 0 || len(other) == 0 {
		return append(x[:len(x):len(x)], other...)
	}
	return joined(slices.Concat(x, other))
}

// common counts the indexes that are in both sets.
func (x indexes) common(other indexes) int {
	n := 0
	for i, j := 0, 0; i < len(x) && j < len(other); {
		n += max(0, min(x[i].last, other[j].last)-max(x[i].first, other[j].first)+1)
		if x[i].last < other[j].last {
			i++
		} else {
			j++
		}
	}
	return n
}

// missing are the first n indexes below limit that are not in the set.
func (x indexes) missing(n, limit int) []int {
	var list []int
	next := 0
	for _, s := range append(x[:len(x):len(x)], span{limit, limit}) {
		for ; next < min(s.first, limit) && len(list) < n; next++ {
			list = append(list, next)
		}
		next = max(next, s.last+1)
	}
	return list
}
