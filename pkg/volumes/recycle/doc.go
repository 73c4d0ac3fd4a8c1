// Package recycle says how a volume is emptied for its next claim: by a pod that mounts it
// and deletes all files. The pod is made from a template, the built-in one or that of a
// file; only volumes of hostPath and NFS are recycled.
//
// All of it is pure but [Read], which reads a template once at the start. Nobody changes a
// template: each pod is a copy.
package recycle
