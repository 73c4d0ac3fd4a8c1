// Package certificates holds what several controllers need to know of
// CertificateSigningRequests: how a request is read, what its conditions mean,
// what makes it a kubelet's, and the pair of a certificate authority.
package certificates
