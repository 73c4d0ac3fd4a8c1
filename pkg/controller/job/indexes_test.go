package job

import (
	"slices"
	"testing"
)

func TestIndexes(t *testing.T) {
	for _, tc := range []struct {
		text  string
		limit int
		want  string
		total int
	}{
		{"", 10, "", 0},
		{"0", 10, "0", 1},
		{"1,3-5,7", 8, "1,3-5,7", 5}, // the published example
		{"1,3,4,5,7", 8, "1,3-5,7", 5},
		{"0,1", 8, "0,1", 2},
		{"0-1", 8, "0,1", 2},
		{"0-9", 5, "0-4", 5},
		{"4-9", 5, "4", 1},
		{"5-9", 5, "", 0},
		{"7,1-3,2-5", 10, "1-5,7", 6},
		{"3-1", 10, "", 0},
		{"-1,2", 10, "2", 1},
		{"a,2,b-3,4-c,", 10, "2", 1},
		{"1,2", 0, "", 0},
	} {
		set := parseIndexes(tc.text, tc.limit)
		check(t, set.String(), tc.want)
		check(t, set.total(), tc.total)
	}
}

func TestSetsOfIndexes(t *testing.T) {
	set := parseIndexes("1,3-5,7", 100)
	for i, want := range []bool{false, true, false, true, true, true, false, true, false} {
		check(t, set.has(i), want)
	}
	check(t, set.has(noIndex), false)
	check(t, set.with().String(), "1,3-5,7")
	check(t, set.with(2, 0, 6, 6).String(), "0-7")
	check(t, set.and(parseIndexes("4-9", 100)).String(), "1,3-9")
	check(t, indexes(nil).and(set).String(), "1,3-5,7")
	check(t, set.common(parseIndexes("0-4,7-9", 100)), 4)
	check(t, set.common(nil), 0)
	for _, tc := range []struct {
		n, limit int
		want     []int
	}{{10, 9, []int{0, 2, 6, 8}}, {2, 9, []int{0, 2}}, {10, 4, []int{0, 2}}, {0, 9, nil}, {3, 0, nil}} {
		if got := set.missing(tc.n, tc.limit); !slices.Equal(got, tc.want) {
			t.Errorf("got %v, want %v", got, tc.want)
		}
	}
	check(t, set.String(), "1,3-5,7")
}

func FuzzIndexes(f *testing.F) {
	for _, text := range []string{"", "1,3-5,7", "0-9", "-", "9-0", "1,,2", "99999999999999999999", "0-9223372036854775807", "5,4,3-9"} {
		f.Add(text, 10)
	}
	f.Fuzz(func(t *testing.T, text string, limit int) {
		limit %= 1 << 16
		set := parseIndexes(text, limit)
		if total := set.total(); total < 0 || total > max(limit, 0) {
			t.Fatalf("%q below %d: %d indexes", text, limit, total)
		}
		again := parseIndexes(set.String(), limit)
		if !slices.Equal(set, again) {
			t.Fatalf("%q: %v is read back as %v", text, set, again)
		}
		for i, s := range set {
			if s.first > s.last || (i > 0 && s.first <= set[i-1].last+1) {
				t.Fatalf("%q: %v is not in order", text, set)
			}
		}
		missing := set.missing(5, limit)
		for _, i := range missing {
			if set.has(i) || i < 0 || i >= limit {
				t.Fatalf("%q: %d is not missing", text, i)
			}
		}
		if more := set.with(missing...); more.total() != set.total()+len(missing) || more.common(set) != set.total() {
			t.Fatalf("%q: %v and %v make %v", text, set, missing, more)
		}
	})
}
