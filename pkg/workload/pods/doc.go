// Package pods answers what several controllers ask of a pod, and builds the
// pods and patches that several of them write.
//
// Everything here is pure: a pod and, where time matters, the time go in. No
// function changes a pod that it is given, so a cached one may be passed.
package pods
