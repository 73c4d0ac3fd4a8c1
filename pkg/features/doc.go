// Package features knows every feature gate that a control plane of Kubernetes
// 1.36 may be given, so that --feature-gates accepts, refuses and lists the same
// names everywhere.
//
// Importing it fills utilfeature.DefaultMutableFeatureGate: the gates of the
// published libraries as they declare them, and those of the table in this
// package. It also makes client-go read its gates there.
//
// The constants are the gates of the table that this program reads. Gates are
// read once, where controllers are wired; controllers receive plain values.
package features
