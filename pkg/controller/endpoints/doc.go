// Package endpoints keeps the Endpoints object of each Service that selects pods
// equal to the addresses of those pods: the older form of EndpointSlices, for
// clients that still read it.
//
// It reads Services, pods and Endpoints, and creates, updates and deletes the
// Endpoints with the name of the Service. It records events on the Endpoints.
// It writes the subsets, the labels (those of the Service, whether it is
// headless, and who manages the object) and two annotations: when the change
// that led to the write happened, and whether addresses were left out. Other
// annotations stay as they are. It never touches the Endpoints of a Service
// without a selector or with an external name, and writes nothing when the
// object already says what it should.
//
// Endpoints have no owner reference, so those of a Service that is gone are
// deleted here; after a start that holds for all Endpoints without a Service
// except those that are a leader-election record, and at any time for those of
// a creation whose answer was lost.
package endpoints
