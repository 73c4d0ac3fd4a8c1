package election

import (
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
)

// Identity is what this process holds leases as: the name of its host, "_" and a UID.
func (e *Elections) Identity() string { return e.identity }

// Host is the host in the identity of a process of a control plane; the whole identity
// where it has another shape.
func Host(identity string) string {
	if at := strings.LastIndex(identity, "_"); at > 0 {
		return identity[:at]
	}
	return identity
}

// Holder returns the identity that held the lease when this process last saw it; empty
// when nobody did, or when this process does not compete for it.
func (e *Elections) Holder(l Lease) string {
	held := e.lockOf(l)
	if held == nil {
		return ""
	}
	held.seen.Lock()
	defer held.seen.Unlock()
	return held.holder
}

// Failing returns why the last request for the lease failed; nil when it did not.
func (e *Elections) Failing(l Lease) error {
	held := e.lockOf(l)
	if held == nil {
		return nil
	}
	held.seen.Lock()
	defer held.seen.Unlock()
	return held.failed
}

func (e *Elections) follow(l Lease, held *lock) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.locks == nil {
		e.locks = map[Lease]*lock{}
	}
	e.locks[l] = held
}

func (e *Elections) lockOf(l Lease) *lock {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.locks[l]
}

// watched notes who holds a lease that is watched; nil for one that is gone. What a watch
// shows after this process has acquired the lease may be older than that.
func (l *lock) watched(lease *coordinationv1.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.acquired:
	case lease == nil:
		l.noteHolder("", "")
	default:
		l.noteHolder(ptr.Deref(lease.Spec.HolderIdentity, ""), ptr.Deref(lease.Spec.PreferredHolder, ""))
	}
}
