// Package endpointslice keeps the EndpointSlices of each Service that selects
// pods equal to the pods it selects.
//
// It reads Services, pods, nodes and EndpointSlices, and creates, updates and
// deletes those EndpointSlices that carry its managed-by label and the name of
// the Service. It records events on the Service. It never touches the slices of
// a Service without a selector or with an external name, nor slices that
// another controller manages; the slices of a Service that is gone are left to
// the garbage collector by their owner reference.
//
// What the slices should hold, how endpoints are packed into them and which
// hints they carry is decided by the published k8s.io/endpointslice, so that
// they are those of every other Kubernetes. This package decides when to look,
// gives that library a consistent picture, and records what it writes. The
// library expects a lister, a client and trackers of its own; pkg/slicewriter
// joins them to the kit.
package endpointslice
