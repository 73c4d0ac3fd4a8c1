// Package devicetainteviction is the device-taint-eviction-controller: it deletes pods
// that use devices whose NoExecute taints they do not tolerate, or no longer.
//
// What it keeps true:
//
//   - A device has the taints that the newest generation of its pool gives it, and those
//     of the DeviceTaintRules that select it, if their gate is on.
//   - A pod is on a node, and an allocated claim that it uses is reserved for it. It has to
//     go when the first taint that the allocation does not tolerate was added, or when the
//     time for which a toleration holds has passed since then. An allocation tolerates what
//     its own tolerations say, not those of the claim.
//   - That time is in the API: it does not begin again with another process.
//   - A deletion that waits is cancelled when its reason goes.
//   - A pod has the condition DisruptionTarget with reason DeletionByDeviceTaintManager
//     before it is deleted. It is looked at live before that, and deleted by its UID, once.
//   - The condition EvictionInProgress of a DeviceTaintRule says how many pods have to go,
//     or would have to. It is written at once for a new spec, and then when ten seconds have
//     passed since it changed last. A dry run (effect None) is reported once for each spec.
//
// It reads pods, ResourceClaims, ResourceSlices and DeviceTaintRules; it writes pods/status
// and devicetaintrules/status, and deletes pods. It writes no claim, slice or taint.
package devicetainteviction
