// Package serviceaccounttoken fills the secrets of type
// kubernetes.io/service-account-token with a signed token, the root CA and the
// namespace, and deletes those whose service account is gone.
//
// It reads service accounts and secrets of that type; it writes the data and the
// service account annotations of such secrets, deletes them, and takes the name
// of a deleted one out of the secrets list of its service account. A secret is
// deleted only after a live read has shown that its service account of that UID
// is gone. It never creates a secret and never replaces a token that is there.
//
// It works with the client of the process and not with an account of its own,
// because the tokens of all other controllers come from it.
package serviceaccounttoken
