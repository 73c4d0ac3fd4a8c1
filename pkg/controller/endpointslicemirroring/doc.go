// Package endpointslicemirroring keeps EndpointSlices that offer what Endpoints
// written by hand do, for Services without a selector.
//
// What it keeps true: for each address family and set of ports of the Endpoints
// there is one slice, controlled by the Endpoints, with their labels and
// annotations. Slices of others are never touched, and an address that is not
// ready for a port is never shown as ready for it.
//
// A key is the name that the Endpoints, the Service and the slices have in common.
// plan.go says whether there is anything to mirror and which slices are written;
// canonical.go and slices.go say what is in them.
package endpointslicemirroring
