package persistentvolumeexpander

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// turn says whose turn it is in the expansion of a FlexVolume.
type turn int

const (
	// controllers: the size is to be recorded.
	controllers turn = iota
	// nodes: the size is recorded, and the node has yet to expand the file system.
	nodes
	// nodesAgain: the node has given up, and is to try again.
	nodesAgain
)

// aim says whose turn it is, and what size is aimed at: that of an expansion which has
// begun comes first. It is never less than the claim has.
func aim(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) (turn, resource.Quantity) {
	whose, size := asked(claim, volume)
	if least := has(claim); size.Cmp(*least) < 0 {
		size = *least
	}
	return whose, size
}

func asked(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) (turn, resource.Quantity) {
	request := *wants(claim)
	begun := request
	if recorded, is := claim.Status.AllocatedResources[corev1.ResourceStorage]; is {
		begun = recorded
	}
	state := stateOf(claim)
	if offers(volume).Cmp(request) < 0 {
		switch state {
		case "", corev1.PersistentVolumeClaimControllerResizeInfeasible:
			return controllers, request
		}
		return controllers, begun
	}
	switch state {
	case corev1.PersistentVolumeClaimNodeResizePending, corev1.PersistentVolumeClaimNodeResizeInProgress:
		return nodes, begun
	case corev1.PersistentVolumeClaimNodeResizeInfeasible:
		return nodesAgain, begun
	}
	return controllers, begun
}

// stateOf is how far the expansion of a claim is; empty if none is under way.
func stateOf(claim *corev1.PersistentVolumeClaim) corev1.ClaimResourceStatus {
	return claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
}

// nodeIsDone reports whether a claim has all that it asks for and that its volume offers.
func nodeIsDone(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	return has(claim).Cmp(*wants(claim)) >= 0 && has(claim).Cmp(*offers(volume)) >= 0
}
