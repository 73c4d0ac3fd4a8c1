// Package volumeattributesclassprotection keeps a VolumeAttributesClass that a volume or
// a claim names from being deleted: it gives every class the finalizer
// kubernetes.io/vac-protection, and takes it off one that is being deleted as soon as
// nothing in the caches names it.
//
// A claim names a class in its spec, and in its status the one that it has and the one
// that it is to get; a volume in its spec. Those that are being deleted count. It writes
// the finalizer of classes and nothing else, and reads no parameter of a class.
package volumeattributesclassprotection
