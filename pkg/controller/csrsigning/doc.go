// Package csrsigning signs approved CertificateSigningRequests for the signers
// kubernetes.io/kubelet-serving, kube-apiserver-client-kubelet,
// kube-apiserver-client and legacy-unknown, as far as each has the files of a
// certificate authority.
//
// It reads CertificateSigningRequests and these files; it writes, through the
// status subresource, the certificate, or the condition Failed when a request
// breaks the rules of its signer. It leaves alone what is not approved, is denied,
// has failed or has its certificate, and it approves and deletes nothing.
//
// The files are looked at before something is signed and once a minute. A pair
// that cannot be used does not replace the one from before; the log says so once.
// When a pair has changed, requests that failed to be signed are tried at once.
package csrsigning
