package storageversionmigrator

import (
	"fmt"
	"slices"
	"time"
)

const (
	// untilUnknown is how long a resource may be missing from discovery before
	// its migration fails: a definition may come a moment after the migration.
	untilUnknown = time.Minute
	// discoverAgain is the time between two looks at discovery.
	discoverAgain = 5 * time.Second
)

// step is what is to be done about the turn of a migration.
type step string

const (
	nothing step = ""
	start   step = "start"
	finish  step = "finish"
)

// plan says what one of the loops decided.
type plan struct {
	Step step   `json:"step,omitempty"`
	Why  string `json:"why"`
}

// turn decides whether a migration may begin or has to be closed. Peers are the
// migrations of the same resource; of those that wait the oldest is next.
func turn(m *migration, peers []*migration) plan {
	switch {
	case m == nil:
		return plan{Why: "the migration is gone"}
	case finished(m) && running(m):
		return plan{Step: finish, Why: "its objects are done"}
	case finished(m):
		return plan{Why: "it has ended"}
	case running(m):
		return plan{Why: "it is running"}
	}
	for _, peer := range peers {
		switch {
		case peer.Name == m.Name || finished(peer) && !running(peer):
		case running(peer) || before(peer, m):
			return plan{Why: fmt.Sprintf("%s comes first", peer.Name)}
		}
	}
	return plan{Step: start, Why: "it is its turn"}
}

// before orders migrations that wait.
func before(a, b *migration) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

// wantsVersion tells whether the migration waits for its resource version.
func wantsVersion(m *migration) bool {
	return running(m) && !finished(m) && m.Status.ResourceVersion == ""
}

// wantsObjects tells whether objects are to be migrated.
func wantsObjects(m *migration) bool {
	return running(m) && !finished(m) && m.Status.ResourceVersion != ""
}

// required is what a resource must offer to be migrated, as users are told.
var required = []string{"update", "patch", "list"}

// unable says why a resource cannot be migrated; empty if it can.
func unable(t target) string {
	if slices.ContainsFunc(required, func(verb string) bool { return !slices.Contains(t.verbs, verb) }) {
		return fmt.Sprintf("resource %q does not support discovery operations: %v", t.gvr.String(), required)
	}
	return ""
}

// missing decides about a resource that discovery does not have: give up, or
// look again after a while.
func missing(m *migration, now time.Time) (giveUp bool, again time.Duration) {
	left := runningSince(m).Add(untilUnknown).Sub(now)
	return left <= 0, min(max(left, 0), discoverAgain)
}
