// Package integration proves on a real etcd and kube-apiserver what a story
// cannot say: several processes, an API server that goes away, the flags of a
// kubeadm control plane.
//
// The tests run one after the other: they measure times on a small machine.
package integration
