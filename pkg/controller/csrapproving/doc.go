// Package csrapproving approves the requests of kubelets for client certificates
// when an access review says that the requestor may have one.
//
// It reads CertificateSigningRequests and asks for SubjectAccessReviews; it adds
// the condition Approved, through the approval subresource, to requests for the
// signer kubernetes.io/kube-apiserver-client-kubelet that nobody has decided on. It
// never denies: a request whose requestor may not have one stays for a human, and
// is asked about again at growing intervals, since roles change.
package csrapproving
