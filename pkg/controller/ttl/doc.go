// Package ttl says to the kubelets how long they may use the Secrets and
// ConfigMaps that they hold: the annotation node.alpha.kubernetes.io/ttl, in
// seconds, which grows with the cluster so that kubelets ask less often.
//
// Nodes are counted as they come and go. The size at which the time becomes
// longer lies above that at which it becomes shorter again, so that a node that
// comes and goes changes nothing. A node is patched when its annotation says
// something else; nothing else of it is touched.
package ttl
