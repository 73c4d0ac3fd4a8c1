// Package seconds turns numbers of seconds, as API fields hold them, into durations.
package seconds

import (
	"math"
	"time"
)

// Of is that many seconds, or the longest duration there is: the product would overflow.
func Of(n int64) time.Duration {
	if n > int64(math.MaxInt64/time.Second) {
		return math.MaxInt64
	}
	return time.Duration(n) * time.Second
}
