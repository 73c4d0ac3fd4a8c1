// Package publishing holds what the controllers that publish a certificate
// bundle share: the metrics of their syncs.
package publishing
