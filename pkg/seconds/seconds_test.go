package seconds

import (
	"math"
	"testing"
	"time"
)

func TestOf(t *testing.T) {
	for n, want := range map[int64]time.Duration{
		-1: -time.Second, 0: 0, 90: 90 * time.Second, 9223372036: 9223372036 * time.Second,
		9223372037: math.MaxInt64, 18446744074: math.MaxInt64, math.MaxInt64: math.MaxInt64,
	} {
		if got := Of(n); got != want {
			t.Errorf("%d seconds are %s, want %s", n, got, want)
		}
	}
}
