// Package storageversiongc keeps StorageVersions free of API servers that are
// gone: the entries of such a server are removed, the version that all others have
// in common is computed again, and a StorageVersion without entries is deleted.
//
// An API server is there as long as its identity Lease is in kube-system; an
// expired one is for the API servers to remove. It reads those Leases and
// StorageVersions, and writes the status of StorageVersions or deletes them. A
// server is believed gone only after a live read of its Lease. Other Leases and
// StorageVersions without entries are left alone.
package storageversiongc
