// Package nodeipam gives every node one block of each cluster CIDR, for its pods. It
// writes spec.podCIDR and spec.podCIDRs of nodes that have none, once, and events about
// nodes. What a node has, whoever gave it, is never changed.
//
// Which blocks are used is in memory (book.go, blocks.go), and is made from the nodes:
// before the first block is handed out, from a list that the API server answers itself and
// no cache, so that it has everything that a leader before this one wrote. From then on the
// cache of nodes shows what comes and goes.
//
// A block that is proposed for a node stays the node's, whatever becomes of the write,
// until it is certain that the node does not have it: because the node is gone, or has
// another. So a write whose answer was lost is repeated with the same block, and no block
// is on two nodes. What a node on its way out has is used until it is gone.
//
// A node whose CIDR is in none of the cluster CIDRs is named in an event and in the log. All
// others are served.
package nodeipam
