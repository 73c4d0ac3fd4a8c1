// Package tainteviction is the taint-eviction-controller: it deletes pods from
// nodes whose NoExecute taints they do not tolerate, or no longer.
//
// What it keeps true:
//
//   - A pod that does not tolerate every NoExecute taint of its node is deleted
//     at once.
//   - A pod that tolerates them for a time is deleted when the shortest of those
//     times is over, counted from when this process saw taint and pod together.
//     Of several tolerations that match a taint, the first one counts.
//   - A deletion that waits is cancelled when the taints go, when the pod comes
//     to tolerate them without a limit, or when the pod goes by itself. When all
//     taints have gone it is, also if others have come before anybody could look.
//   - A pod has the condition DisruptionTarget with reason
//     DeletionByTaintManager before it is deleted.
//
// As in the original, a deletion that waits keeps its time when taints or
// tolerations change to another finite time, waiting starts again when the
// process does, and it goes on when the node is deleted. A delete that fails is
// retried by the loop, with backoff and until it succeeds.
//
// It reads nodes and pods; it writes pods/status and deletes pods. It never
// writes a node.
package tainteviction
