// Package recycle empties a volume for its next claim: by a pod that mounts it and deletes
// all files. The pod is made from a template, the built-in one or that of a file; only
// volumes of hostPath and NFS are recycled.
//
// What the pod is, and what its state means, is pure (recycle.go). A template is read once
// at the start (template.go), and nobody changes it: each pod is a copy. [Pods] has a pod
// run to its end (pods.go).
package recycle
