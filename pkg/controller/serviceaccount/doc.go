// Package serviceaccount keeps a service account named default in every active
// namespace.
//
// It reads namespaces and service accounts and creates service accounts. It
// never changes or deletes one, and leaves a namespace alone that is on its way
// out.
package serviceaccount
