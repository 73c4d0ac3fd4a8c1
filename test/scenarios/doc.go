// Package scenarios runs stories: text files that say what a cluster is given
// and what its controllers must then have done. Each *.txtar file here is one
// story; docs/scenarios.md describes the commands.
//
// A story runs against a real etcd and kube-apiserver and a built controller
// manager, in a namespace of its own. The same story runs under the reference
// binary, so that "behaves the same" is a test.
package scenarios
