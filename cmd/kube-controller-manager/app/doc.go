// Package app is the process around the controllers: its command line, the port
// it serves, leadership, and how controllers are started and stopped.
//
// What it keeps true:
//
//   - The secure port serves first and stops last. A process that waits for
//     leadership is healthy, ready and metered.
//   - Controllers run only while the lease is held. On a stop they take no new
//     keys, their work in flight ends, their events are written, and only then
//     is the lease released; work that does not end leaves the lease to expire.
//   - A lease that is lost ends the process at once, with the reason.
//   - A standby watches the lease and takes it as soon as it is released.
//   - A controller that cannot run here, because of a flag, a gate or an API that
//     is not served, costs nothing else; /debug/controllers/ says why it is not there.
//
// A controller is added with one row and one constructor in the register file of
// its API group. The constructor passes informers, flags and gates as plain values
// to the controller's New; it decides nothing about objects.
package app
