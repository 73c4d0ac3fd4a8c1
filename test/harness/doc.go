// Package harness runs what tests of the built binary need around it: an etcd
// and a kube-apiserver, the controller manager itself as a process, and a
// pretend kubelet with pretend nodes.
//
// Everything listens on loopback, on ports that are free at that moment, and
// keeps its files in one temporary directory. All processes end with the test,
// also when the test is killed. Waiting is polling with a deadline; nothing
// sleeps for a fixed time and hopes.
//
// The executables come from the directory that KCM_TOOLS names, or else from
// _output/tools/bin of this module.
package harness
