// Package certs makes the certificate requests of tests from one line of text,
// and says in words what a certificate holds.
package certs
