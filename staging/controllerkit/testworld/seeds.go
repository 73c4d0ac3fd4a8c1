package testworld

// raceShare is the part of the seeds that is run under the race detector, which makes
// a world some ten times as slow and has nothing to find where all is in one goroutine.
const raceShare = 3

// Seeds is how many seeds of n a test runs: all of them, or the first third under the
// race detector. There is at least one.
func Seeds(n uint64) uint64 {
	if raceEnabled {
		n /= raceShare
	}
	return max(1, n)
}
