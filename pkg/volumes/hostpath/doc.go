// Package hostpath provisions and deletes volumes that are directories on the disk of the
// controller itself. They are for trying things out on one machine.
//
// Nothing outside of /tmp is ever made or deleted: a path is taken as it is written, and
// neither ".." nor a symbolic link leads out of it.
package hostpath
