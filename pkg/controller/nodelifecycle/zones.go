package nodelifecycle

import "time"

// zoneState is how much of a zone is not ready.
type zoneState string

const (
	// stateInitial is of a zone that no pass has counted yet.
	stateInitial zoneState = "Initial"
	// stateNormal is of a zone in which nodes fail one by one, if at all.
	stateNormal zoneState = "Normal"
	// statePartial is of a zone in which so many are not ready that moving their pods may do harm.
	statePartial zoneState = "PartialDisruption"
	// stateFull is of a zone without a ready node.
	stateFull zoneState = "FullDisruption"
)

// fewFailures is how many nodes may be not ready in a zone of any size before it is disrupted.
const fewFailures = 2

// rates are how fast nodes may be tainted NoExecute in a zone, in nodes per second.
type rates struct {
	primary, secondary float32
	// large is how many nodes a zone must exceed for the secondary rate; up to
	// it, nothing is evicted while the zone is partly disrupted.
	large int
	// threshold is the share of nodes not ready from which a zone is disrupted.
	threshold float32
}

// stateOf is the state of a zone with such nodes.
func (r rates) stateOf(ready, notReady int) zoneState {
	switch {
	case ready == 0 && notReady > 0:
		return stateFull
	case notReady > fewFailures && float32(notReady)/float32(notReady+ready) >= r.threshold:
		return statePartial
	}
	return stateNormal
}

// of is the rate for a zone of this state and size. A fully disrupted zone has
// the primary rate: as other zones are well, its nodes are most likely dead.
func (r rates) of(state zoneState, size int) float32 {
	if state != statePartial {
		return r.primary
	}
	if size > r.large {
		return r.secondary
	}
	return 0
}

// zone is what is remembered of a zone from pass to pass.
type zone struct {
	state     zoneState
	evictions *evictions
	// members counts the nodes of the current pass; ready and notReady those
	// that are not excluded from disruption checks.
	members, ready, notReady int
}

func (z *zone) size() int { return z.ready + z.notReady }

// disruption is a change between some and none of the zones having a ready node.
type disruption string

const (
	unchanged disruption = ""
	entered   disruption = "no node of any zone is ready: evictions stop"
	left      disruption = "some nodes are ready again: evictions resume"
)

// moveZones moves the zones to the states of this pass and sets their rates. It reports
// whether there are nodes to judge by, and no zone has a ready one.
func moveZones(zones map[string]*zone, r rates, now time.Time) (change disruption, allDown bool) {
	counted, known, allAre, allWere := 0, 0, true, true
	for _, z := range zones {
		if z.size() == 0 {
			continue
		}
		counted++
		allAre = allAre && r.stateOf(z.ready, z.notReady) == stateFull
		if z.state != stateInitial {
			known++
			allWere = allWere && z.state == stateFull
		}
	}
	allAre, allWere = allAre && counted > 0, allWere && known > 0
	for _, z := range zones {
		z.move(r, allAre, allWere, now)
	}
	switch {
	case allAre && !allWere:
		return entered, allAre
	case allWere && !allAre:
		return left, allAre
	}
	return unchanged, allAre
}

// move moves one zone, given whether all zones are or were without a ready node.
func (z *zone) move(r rates, allAre, allWere bool, now time.Time) {
	if z.size() == 0 {
		if z.state != stateInitial { // it has no nodes any more
			z.state = stateInitial
			z.evictions.setRate(r.primary, now)
		}
		return
	}
	state := r.stateOf(z.ready, z.notReady)
	switch {
	case allAre:
		z.evictions.setRate(0, now)
	case allWere || state != z.state:
		z.evictions.setRate(r.of(state, z.size()), now)
	}
	z.state = state
}
