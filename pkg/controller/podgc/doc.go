// Package podgc deletes the pods that nobody else will: the oldest terminated
// ones above a threshold, those bound to a node that is gone, those being deleted
// that never reached a node, and those being deleted on a node that is out of
// service.
//
// It reads pods and nodes from caches. A node that the cache does not have is
// looked up live after a quarantine before its pods are touched. It sets the
// phase of such pods to Failed, with the DisruptionTarget condition where their
// node is gone, and deletes them without a grace period, each by its UID. It
// writes no other field, and no node.
//
// A pass every 20 seconds reads indexes only: it costs what it finds, however
// many pods there are.
package podgc
