// Package daemonset is the daemonset-controller: it runs one pod of each
// DaemonSet on every node that the set's pods fit on.
//
// What it keeps true: a node whose name, labels and taints admit the pods of a
// set has one of them, made for that node by an affinity to its name; a node that
// does not has none, except that a pod stays where only new ones are kept off.
// Failed and ended pods are replaced, more and more slowly on a node where they
// keep failing. With --rejected-pod-backoff a pod that its node rejected stays until
// the one after it is there, which carries on since when that node rejects pods. A
// new template goes out by deleting old pods or, with a surge, by making new ones
// beside them, within the set's bounds; OnDelete leaves that to users. With a surge
// an old pod that works where no new one may be made stays until enough others
// work. Each template that was used is kept in a ControllerRevision, up to the
// history limit and as long as pods of it are there. Pods and revisions that match
// the selector and have no controller are adopted, those that no longer match are
// let go.
//
// It reads DaemonSets, ControllerRevisions, pods and nodes. It writes pods
// (create, delete, owner references and the label of the revision),
// ControllerRevisions, the status of DaemonSets and events. It never changes the
// spec of a DaemonSet, nor a node.
//
// What a set makes of one node follows from that node and its pods alone: where pods
// are to be (placement.go), what the node lacks (needs.go), what it means for the rollout
// (rollout.go) and when it is tried again after it has rejected pods (rejected.go). It is
// remembered as the state of the node, with the sums over all nodes (nodestate.go,
// book.go). A change of a node or of a pod has only that node looked at again, so that it
// costs the same among ten nodes and ten thousand; a new template has all of them considered.
//
// observe.go reads the nodes to consider, the sums over the others, and as many nodes as the
// bounds of a rollout may leave room for. plan.go and draft.go say what follows for the
// set, history.go what becomes of the revisions, status.go what is reported. Nodes are
// taken by name, and by a rollout from the one on that it took last. What a plan has made
// of nodes is noted when it has been carried out; until then they count as not considered.
package daemonset
