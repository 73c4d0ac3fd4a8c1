package storageversionmigrator

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	// untilUnknown is how long a resource may be missing from discovery before
	// its migration fails: a definition may come a moment after the migration.
	untilUnknown = time.Minute
	// discoverAgain is the time between two looks at discovery.
	discoverAgain = 5 * time.Second
	// seenSoon is how long a cache may take to show a write.
	seenSoon = 100 * time.Millisecond
)

// step is what is to be done about the turn of a migration.
type step string

const (
	nothing step = ""
	start   step = "start"
	finish  step = "finish"
)

// observedTurn is what the plan for the turn of a migration needs to know.
type observedTurn struct {
	m *migration
	// peers are the migrations of the same resource.
	peers []*migration
	// definition is that of a custom resource, nil for any other one.
	definition *definition
	// unseen is the name of a peer whose last write the cache does not show yet: it may be
	// running already.
	unseen string
}

// planTurn starts a migration when it is its turn, and closes it when it is done.
func planTurn(o observedTurn, now time.Time) act.Plan {
	do, why := turn(o.m, o.peers)
	switch {
	case do == start && o.unseen != "":
		return act.Plan{Why: "waiting until the cache shows what was written for " + o.unseen, RequeueAfter: seenSoon}
	case do == start:
		return o.written(why, started(o.m, now), beginning, now)
	case do == finish:
		return o.written(why, completed(o.m, now), ending, now)
	}
	return act.Plan{Why: why}
}

// written writes the status of the definition, if there is one to be reported, and then
// that of the migration.
func (o observedTurn) written(why string, m *migration, of func(*definition, *migration, time.Time) *report, now time.Time) act.Plan {
	p := act.Plan{Why: why}
	if o.definition != nil {
		if r := of(o.definition, o.m, now); r != nil {
			p.Stages = act.Stages(tell(o.definition, r))
		}
	}
	p.Stages = append(p.Stages, act.Stages(put(m))...)
	return p
}

// put writes the status of a migration under the version that was looked at.
func put(m *migration) act.Step { return act.Update{Object: m, Subresource: "status"} }

// turn decides whether a migration may begin or has to be closed. Peers are the
// migrations of the same resource; of those that wait the oldest is next.
func turn(m *migration, peers []*migration) (do step, why string) {
	switch {
	case finished(m) && running(m):
		return finish, "its objects are done"
	case finished(m):
		return nothing, "it has ended"
	case running(m):
		return nothing, "it is running"
	}
	for _, peer := range peers {
		switch {
		case peer.Name == m.Name || finished(peer) && !running(peer):
		case running(peer) || before(peer, m):
			return nothing, fmt.Sprintf("waiting for %s, which comes first", peer.Name)
		}
	}
	return start, "it is its turn"
}

// before orders migrations that wait.
func before(a, b *migration) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}

// observedVersion is what the plan for the version of a migration needs to know.
type observedVersion struct {
	m *migration
	// found is the resource, nil if discovery does not have it, and version its present one.
	found   *target
	version string
	// missed is since when discovery does not have it.
	missed time.Time
}

// planVersion writes down from which version on objects need no migration. A version that
// cannot be ordered would tell nothing of any object.
func planVersion(o observedVersion, now time.Time) act.Plan {
	switch {
	case !wantsVersion(o.m):
		return act.Plan{Why: "it does not wait for a resource version"}
	case o.found == nil:
		return missing(o.m, o.missed, now)
	}
	if why := unable(*o.found); why != "" {
		return fails(o.m, now, why)
	}
	if _, err := resourceversion.CompareResourceVersion(o.version, o.version); err != nil {
		return fails(o.m, now, fmt.Sprintf("latest resourceVersion for %s is not valid: %v", o.found.gvr.String(), err))
	}
	m := o.m.DeepCopy()
	m.Status.ResourceVersion = o.version
	return act.Plan{Why: "objects older than " + o.version + " are migrated", Stages: act.Stages(put(m))}
}

// wantsVersion reports whether the migration waits for its resource version.
func wantsVersion(m *migration) bool {
	return running(m) && !finished(m) && m.Status.ResourceVersion == ""
}

// wantsObjects reports whether objects are to be migrated.
func wantsObjects(m *migration) bool {
	return running(m) && !finished(m) && m.Status.ResourceVersion != ""
}

// required is what a resource must offer to be migrated, as the status says it.
var required = []string{"update", "patch", "list"}

// unable says why a resource cannot be migrated; empty if it can.
func unable(t target) string {
	if slices.ContainsFunc(required, func(verb string) bool { return !slices.Contains(t.verbs, verb) }) {
		return fmt.Sprintf("resource %q does not support discovery operations: %v", t.gvr.String(), required)
	}
	return ""
}

// missing looks again after a while for a resource that discovery does not have since then,
// and fails the migration when it does not come. One answer without it is not enough.
func missing(m *migration, since, now time.Time) act.Plan {
	if began := runningSince(m); since.Before(began) {
		since = began
	}
	if left := since.Add(untilUnknown).Sub(now); left > 0 {
		return act.Plan{Why: messageUnknown, RequeueAfter: min(left, discoverAgain)}
	}
	return fails(m, now, messageUnknown)
}

// fails ends the migration for this reason.
func fails(m *migration, now time.Time, why string) act.Plan {
	return act.Plan{Why: why, Stages: act.Stages(put(failure(m, now, why)))}
}
