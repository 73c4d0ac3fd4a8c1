//go:build !linux

package election

import "time"

// sinceBoot returns the time since the process started.
func sinceBoot() time.Duration { return time.Since(started) }

var started = time.Now()
