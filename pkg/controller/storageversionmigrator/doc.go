// Package storageversionmigrator carries out StorageVersionMigrations: it makes
// the API server write every object of a resource again, so that all are stored
// in the present storage version.
//
// A migration gets its turn (one at a time for a resource), then the resource
// version from which on everything is written again, then its objects are patched
// with nothing but their identity and version, page by page. Objects are read as
// metadata only and never cached. An object that changed, went away or was made
// again meanwhile needs no migration; one that the API server refuses to write
// fails the migration; any other error is retried.
//
// It writes the status of StorageVersionMigrations, and for custom resources the
// condition StorageMigrating and, after a success, the stored versions in the
// status of their definition.
package storageversionmigrator
