package nodelifecycle

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodeutil "k8s.io/component-helpers/node/util"
)

// graces are the times a node may be silent.
type graces struct {
	// monitor is for nodes that have posted a status.
	monitor time.Duration
	// startup is for nodes that have not posted one yet.
	startup time.Duration
}

// heartbeat is when a node was last heard from. Only changes of what the node
// posts count, at the time they were noticed here: the node's own clock may be
// off by any amount.
type heartbeat struct {
	known   bool
	posted  bool      // the node has a Ready condition
	beat    time.Time // its last heartbeat time, in the node's clock
	leased  bool
	renewed time.Time // the renew time of its lease, in the node's clock
	probe   time.Time // when either last changed, in our clock

	// proven: a live look after the grace period has shown that neither has changed since.
	proven bool
	// ahead is the renew time of a lease that was read live and that the cache does not
	// show yet; zero if it does.
	ahead time.Time
}

// hear notes that the node was heard from.
func (h *heartbeat) hear(now time.Time) { h.probe, h.proven = now, false }

// see takes in what a node shows now. A node first seen with a Ready condition
// counts as heard from now, so that a restart costs no node its grace period;
// one without counts from its creation.
func (h *heartbeat) see(node *corev1.Node, lease *coordinationv1.Lease, now time.Time) {
	_, ready := nodeutil.GetNodeCondition(&node.Status, corev1.NodeReady)
	posted, news := ready != nil, false
	switch {
	case !h.known && !posted:
		h.probe = node.CreationTimestamp.Time
	case !h.known, posted != h.posted, posted && !ready.LastHeartbeatTime.Time.Equal(h.beat):
		h.hear(now)
		news = posted
	}
	h.known, h.posted = true, posted
	if posted {
		h.beat = ready.LastHeartbeatTime.Time
	}
	if lease == nil {
		return
	}
	renewed := renewTime(lease)
	switch {
	case !h.leased || renewed.After(h.renewed):
		h.leased, h.renewed = true, renewed
		h.hear(now)
	case news: // the node lives, so its clock was set back: renewals count from here
		h.renewed = renewed
	}
	if !renewed.Before(h.ahead) {
		h.ahead = time.Time{}
	}
}

// seeLive takes in the lease of the node as it was read live, nil if there is none, and
// reports whether it is newer than all that was seen of it.
func (h *heartbeat) seeLive(lease *coordinationv1.Lease, now time.Time) bool {
	if lease == nil {
		h.ahead = time.Time{}
		return false
	}
	renewed := renewTime(lease)
	if !h.leased || renewed.After(h.renewed) {
		h.leased, h.renewed, h.ahead = true, renewed, renewed
		h.hear(now)
		return true
	}
	if renewed.Before(h.ahead) { // somebody has set it back, and the cache may never show what it was
		h.ahead = time.Time{}
	}
	return false
}

func renewTime(lease *coordinationv1.Lease) time.Time {
	if lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Time
}

// silent reports whether the node was not heard from for its grace period.
func (h *heartbeat) silent(g graces, now time.Time) bool {
	grace := g.startup
	if h.posted {
		grace = g.monitor
	}
	return now.After(h.probe.Add(grace))
}

// readyStatus is the status of the Ready condition, empty if there is none.
func readyStatus(node *corev1.Node) corev1.ConditionStatus {
	if _, ready := nodeutil.GetNodeCondition(&node.Status, corev1.NodeReady); ready != nil {
		return ready.Status
	}
	return ""
}
