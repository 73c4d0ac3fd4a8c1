// Package csrcleaner deletes CertificateSigningRequests that nobody needs any
// more: an hour after they were issued, denied or failed, a day after they were
// made and nobody judged them or approved and nobody issued them, and when the
// certificate has run out.
//
// It looks at all of them once an hour, first when it starts. It changes nothing.
package csrcleaner
