// Package clustertrustbundlepublisher publishes what the API server's serving
// certificate is verified by: one ClusterTrustBundle of the signer
// kubernetes.io/kube-apiserver-serving, named after its content.
//
// It reads the ClusterTrustBundles of that signer. It creates the bundle of the
// root CA that this process was started with, or puts a changed one right, and
// then deletes the other bundles of the signer, in this order, so that there is
// always one. Bundles of other signers it does not even see.
package clustertrustbundlepublisher
