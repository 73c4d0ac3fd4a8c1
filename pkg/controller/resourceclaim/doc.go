// Package resourceclaim makes the ResourceClaims that pods ask for by a template, and gives
// devices back that nobody uses any more.
//
// For a pod it creates each claim that the pod names a template for, once: a claim that the
// pod controls and that has the annotation resource.kubernetes.io/pod-claim-name. It records
// all of them in status.resourceClaimStatuses of the pod, always the whole list. A pod that
// has its node already is put into status.reservedFor of its allocated claims, in the order
// of its spec and up to the first that is missing; for all others the scheduler does that.
//
// For a claim it takes pods out of status.reservedFor that have ended, that are being
// deleted and have no node, or that are gone: a cache that lacks a pod is no proof, a seen
// deletion or a live read is. With the last one the allocation and the finalizer
// resource.kubernetes.io/delete-protection go too. A claim that a pod controls which has
// ended is deleted; that of a pod that is gone is left to the garbage collector.
//
// Behind the gate DRAWorkloadResourceClaims, PodGroups have claims in the same way, which
// their pods share.
//
// It never allocates, does not touch consumers that it does not know, leaves the claims of a
// pod alone that is being deleted and may still run, and leaves an allocation alone that
// nobody has reserved.
package resourceclaim
