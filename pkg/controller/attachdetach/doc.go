// Package attachdetach is the persistentvolume-attach-detach-controller: it attaches
// volumes to the nodes whose pods want them, and detaches them when no pod does.
//
// What it keeps true:
//
//   - A volume that a live pod on a managed node wants has a VolumeAttachment for that
//     node, and stands in the volumesAttached of the node once it is attached.
//   - A volume that no pod on a node wants is detached when the node has it no longer
//     in use. It first leaves volumesAttached, then the node is read live, and only
//     then the VolumeAttachment is deleted.
//   - A volume for one node only is not attached to a second one while it is known to be
//     attached to the first, and only one operation at a time concerns it. A volume
//     that may leave its node is detached first; a pod on another node gets no
//     Multi-Attach event for it.
//   - A node that is not ready loses a volume that was in use six minutes after the last
//     pod that wanted it; one that is out of service at once.
//
// What is wanted is never stored: it is looked up by index from pods, claims and
// PersistentVolumes each time. What cannot be looked up is in the book: what was
// attached, by whom a volume was wanted, what is under way, since when something waits.
// After a restart the book is made again from the status of nodes and from the
// VolumeAttachments.
//
// A key is a volume, or a node whose status is written. Changes of objects and due
// times wake keys; nothing looks at all volumes.
//
// It reads pods, claims, PersistentVolumes, nodes, VolumeAttachments and CSIDrivers. It
// creates and deletes VolumeAttachments, patches status.volumesAttached of nodes, and
// runs the commands of FlexVolume drivers. It never changes a VolumeAttachment.
//
// Where to look: plan.go has the order of a turn, operation.go what becomes of an
// attach or a detach under way, detach.go and attach.go when one begins, multiattach.go
// who is in the way, report.go the status of a node, wanted.go what pods want, book.go
// what is remembered and recover.go what it begins with.
package attachdetach
