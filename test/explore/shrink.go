package explore

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
)

// shrinkFor is how long a difference is shrunk at most.
const shrinkFor = 8 * time.Minute

// Shrink returns a script with as few steps and fields as still show one of the
// findings, and what came of it in its last play. It removes halves, then quarters, and so
// on to single ones, and keeps what two plays show to be enough.
func (e *Explorer) Shrink(ctx context.Context, t testing.TB, pair *Pair, f *Family, script *Script, findings []compare.Finding, at int) (*Script, *Outcome) {
	wanted := map[string]bool{}
	for _, finding := range findings {
		wanted[key(finding)] = true
	}
	var last *Outcome
	end := time.Now().Add(e.shrinkFor())
	shows := func(s *Script) bool {
		if time.Now().After(end) || ctx.Err() != nil {
			return false
		}
		var outcome *Outcome
		// What a busy machine shows once would lead astray.
		for range 2 {
			var err error
			if outcome, err = e.play(ctx, t, pair, f, s); err != nil {
				return false
			}
			if !slices.ContainsFunc(e.unexplained(outcome), func(f compare.Finding) bool { return wanted[key(f)] }) {
				return false
			}
		}
		last = outcome
		return true
	}
	best := script.Clone()
	if at+1 < len(best.Steps) {
		best.Steps = best.Steps[:at+1]
	}
	best.Steps = fewer(best.Steps, func(steps []string) bool {
		s := best.Clone()
		s.Steps = steps
		return shows(s)
	})
	for _, name := range slices.Sorted(maps.Keys(best.Objects)) {
		if !best.applies(name) {
			delete(best.Objects, name)
			continue
		}
		whole := best.Objects[name]
		fewer(optional(whole), func(fields [][]string) bool {
			s := best.Clone()
			s.Objects[name] = only(whole, fields)
			if !shows(s) {
				return false
			}
			best = s
			return true
		})
	}
	return best, last
}

// fewer drops parts of a list for as long as the rest is enough.
func fewer[T any](list []T, enough func([]T) bool) []T {
	for size := max(len(list)/2, 1); len(list) > 0; size = max(size/2, 1) {
		dropped := false
		for from := 0; from < len(list); {
			rest := slices.Delete(slices.Clone(list), from, min(from+size, len(list)))
			if enough(rest) {
				list, dropped = rest, true
			} else {
				from += size
			}
		}
		if size == 1 && !dropped {
			break
		}
	}
	return list
}

// optional lists the fields of an object that it may do without.
func optional(o Object) [][]string {
	var paths [][]string
	var walk func(at Object, path []string)
	walk = func(at Object, path []string) {
		for _, name := range slices.Sorted(maps.Keys(at)) {
			here := append(slices.Clone(path), name)
			inner, isObject := at[name].(map[string]any)
			switch {
			case len(here) == 1 && !isObject:
			case kept(here):
				if isObject {
					walk(inner, here)
				}
			default:
				paths = append(paths, here)
			}
		}
	}
	walk(o, nil)
	return paths
}

// only is the object without the optional fields that are not listed.
func only(o Object, fields [][]string) Object {
	out := deepCopy(o)
	for _, path := range optional(o) {
		if !slices.ContainsFunc(fields, func(f []string) bool { return slices.Equal(f, path) }) {
			Remove(out, path)
		}
	}
	return out
}
