// Package selinuxwarning warns of pods that could not run side by side on a node with
// SELinux: pods that mount one volume with different labels, or where one has the
// volume labelled by a mount option and the other file by file.
//
// It judges all pods that have not ended, on whatever node and in whatever namespace.
// It reads pods, claims, volumes and CSI drivers, and writes events only: one to each of
// two pods in conflict, which names nothing of a pod in another namespace. What conflicts
// at present is in a metric.
//
// The shared cache of pods has no volume mounts, so this controller has one of its own,
// which holds of each pod what is judged here (see trim.go).
//
// Where to look: labels.go has the labels of one pod, observe.go finds out which volumes
// it mounts, conflicts.go compares two pods, and book.go remembers which pods use a volume.
package selinuxwarning
