// Package ephemeralvolume creates the PersistentVolumeClaims of the generic ephemeral
// volumes of pods: <pod>-<volume>, from the template in the pod, which controls it. The
// garbage collector deletes them after the pod.
//
// A claim of that name which the pod does not control is left alone; the pod gets an
// event and is tried again, at once when the claim is gone. It creates claims and
// changes none. A pod that is being deleted gets no claim; one that has ended does.
package ephemeralvolume
