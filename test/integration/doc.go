// Package integration proves on a real etcd and kube-apiserver what a story
// cannot say: several processes, an API server that goes away, the flags of a
// kubeadm control plane.
//
// Tests that mostly wait run side by side; those that measure times run one after the
// other.
package integration
