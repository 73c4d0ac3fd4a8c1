// Package csrcleaner deletes CertificateSigningRequests that nobody needs any
// more: an hour after they were issued, denied or failed, a day after they were
// made and nobody judged them, and when the certificate has run out.
//
// It looks at all of them once an hour, first when it starts. A request that is
// approved and was never issued stays: its signer may be late. It changes nothing.
package csrcleaner
