// Package resourcequota keeps the status of every ResourceQuota: the limits that
// hold and what the objects of its namespace use of them.
//
// It reads quotas, device classes and every namespaced resource: pods, services,
// claims of volumes and of devices whole, all others as metadata. It writes the
// status of quotas and events about them, and nothing else. The API server
// charges a quota when an object is created; this controller gives back what is
// no longer used and puts right what was charged in vain.
//
// Usage is kept as it changes, in a ledger for each namespace that has a quota,
// so that a change costs what changed and not what is there. Every sync period
// the ledger is made again.
//
// What was charged and is not seen as an object yet may be under way, and stays
// in the usage: it is lowered for objects that went or shrank, and for charges
// whose object did not come for a while.
//
// A kind that cannot be read freezes the numbers that count it and no others:
// they stay as they were last written, an event on the quota says why, and the
// metric kcm_frozen_quotas says how many.
package resourcequota
