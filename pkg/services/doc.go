// Package services answers which Services select a pod, and which Services a
// change of a pod concerns, at the cost of the Services found and not of all
// Services of the namespace.
//
// It reads Services and pods from caches and writes nothing. How the subsets of Endpoints
// say the same in another way stands in subsets.go.
package services
