// Package persistentvolumeexpander sees to claims that ask for more than they have.
//
// No volume is expanded by this process: CSI drivers do that with a resizer of their own.
// What is left is to say so. A claim gets the event ExternalExpanding; one whose volume was
// made by an in-tree plugin gets the annotation with the driver that looks after it now, by
// which its resizer knows that it is meant.
//
// A FlexVolume is expanded by the node. The new size is recorded in the claim and in the
// volume, in steps: what is under way is read from the claim, so that a restart goes on
// where the last process stopped.
//
// It reads claims and volumes, a volume live before it is written. It writes the status of
// claims (and that annotation through it), and the capacity and one annotation of
// FlexVolumes. It never touches the spec of a claim, nor a CSI volume.
package persistentvolumeexpander
