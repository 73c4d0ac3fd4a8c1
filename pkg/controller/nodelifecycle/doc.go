// Package nodelifecycle is the node-lifecycle-controller: it says which nodes
// are out of reach and keeps new pods away from nodes that are not well.
//
// What it keeps true:
//
//   - A node that was not heard from for the grace period has Ready,
//     MemoryPressure, DiskPressure and PIDPressure set to Unknown; a node that
//     was never heard from has them after the startup grace period. A node is
//     heard from when the heartbeat time of its Ready condition or the renew
//     time of its Lease in kube-node-lease changes; when that was is read from
//     this process's clock and never from the node's.
//
//   - The NoSchedule taints of a node follow its conditions and
//     spec.unschedulable at once.
//
//   - A node that is not ready gets the not-ready or unreachable NoExecute
//     taint, as fast as the rate of its zone allows; the taint is swapped when
//     Ready goes between False and Unknown, and goes when the node is ready.
//     When no node of any zone is ready, the fault is taken to be on this side:
//     the NoExecute taints are taken off and none is put on.
//
//   - Pods of a node that fell silent, and pods bound to a node that is not
//     ready, have Ready=False.
//
//   - The labels beta.kubernetes.io/os and beta.kubernetes.io/arch repeat the
//     labels without beta.
//
//   - Nobody is marked for what a cache fails to show: before a node counts as
//     silent its lease is read live, and while that fails it does not. While the
//     cache of leases is behind, live lists take its place. A time in which nobody
//     was heard from and nothing could be read counts for no grace period.
//
//   - With the brake (off by default), many nodes that fall silent while this process
//     has trouble itself are not marked before that is over.
//
// It reads nodes, pods and the leases of kube-node-lease. It writes the four
// conditions of nodes/status, those taints and labels of nodes, and the status
// of the Ready condition of pods; it touches no other taint, label or
// condition and deletes neither nodes nor pods.
//
// One pass over all nodes each monitor period decides from memory, and from the live
// leases that it asks for, which nodes are silent, which zones are disrupted and who may
// be tainted; it writes nothing. All writes of one node are made under the key of that
// node, from its latest cached state.
//
// docs/differences.md says where it differs from the original.
package nodelifecycle
