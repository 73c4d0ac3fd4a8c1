package persistentvolumebinder

import (
	"fmt"
	"testing"
	"time"
)

func TestAResyncWakesAllAndNeverManyTogether(t *testing.T) {
	const period = 15 * time.Second
	for name, tc := range map[string]struct{ keys, together int }{
		"none":  {0, 0},
		"few":   {60, 60},
		"many":  {10_000, 201},
		"a lot": {100_000, 2001},
	} {
		t.Run(name, func(t *testing.T) {
			var all []borrower
			for i := range tc.keys {
				all = append(all, borrower{volume: fmt.Sprint(i)})
			}
			var r round
			now := noon
			for begin := range 3 {
				woken, took, parts := map[borrower]bool{}, time.Duration(0), 0
				for {
					keys, wait := r.next(now, period, func() []borrower { return all })
					if len(keys) > tc.together {
						t.Fatalf("%d are woken together, want at most %d", len(keys), tc.together)
					}
					if parts++; parts > shares {
						t.Fatalf("they are woken in more than %d parts", shares)
					}
					for _, key := range keys {
						woken[key] = true
					}
					now = now.Add(wait)
					if len(woken) == tc.keys {
						break
					}
					if took += wait; took > period/2 || wait == 0 {
						t.Fatalf("%d of %d are woken after %s", len(woken), tc.keys, took)
					}
				}
				if want := noon.Add(time.Duration(begin+1) * period); !now.Equal(want) {
					t.Fatalf("round %d begins at %s, want %s", begin+1, now, want)
				}
			}
		})
	}
}
