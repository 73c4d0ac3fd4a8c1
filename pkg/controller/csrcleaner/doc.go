// Package csrcleaner deletes CertificateSigningRequests that nobody needs any more: an
// hour after they were issued, denied or failed; a day after they were made, if nobody
// has decided on them, or they are approved and not issued; and when the certificate has
// expired.
//
// It looks at all of them once an hour, first when it starts. It changes nothing.
package csrcleaner
