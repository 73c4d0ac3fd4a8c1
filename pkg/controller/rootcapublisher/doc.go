// Package rootcapublisher keeps the config map kube-root-ca.crt in every active
// namespace, with the certificate authority that pods verify the API server by.
//
// It reads namespaces and config maps of that one name; it creates such a config
// map, and writes its data and its description when they were changed. It leaves
// other annotations, labels and binary data alone, deletes nothing, and does
// nothing in a namespace that is on its way out.
package rootcapublisher
