// Package monitoring tries the files of build/monitoring on their own; that they fit the
// binary, test/integration shows.
package monitoring
