// Package tokencleaner deletes the secrets of bootstrap tokens when they expire,
// and at once those that have expired or whose expiration cannot be read.
//
// It reads and deletes secrets of type bootstrap.kubernetes.io/token in
// kube-system, each in the state in which it was judged. It touches none that
// has no expiration, and writes nothing else.
package tokencleaner
