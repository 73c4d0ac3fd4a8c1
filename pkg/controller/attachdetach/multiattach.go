package attachdetach

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// parts is a node from which the volume, which is for one node only, is about to go: all that
// its detach waits for is the status of the node, and no write of that has failed. To detach
// and to attach are one pass in the original, so that the attach finds the detach under way.
func (d *draft) parts(node string) (string, bool) {
	if !d.exclusive(node) || len(d.parting) == 0 {
		return "", false
	}
	return d.parting[0], true
}

// elsewhere reports whether the volume is for one node only and known to be attached to
// another. One that is uncertain there is in nobody's way: else a node that is lost would
// keep its volumes.
func (d *draft) elsewhere(node string) bool {
	if !d.exclusive(node) {
		return false
	}
	for other, p := range d.pairs {
		if other != node && p.state == attached {
			return true
		}
	}
	return false
}

// refuse tells the pods on a node, once, that the volume is on another.
func (d *draft) refuse(node string) {
	p := d.pairs[node]
	d.say(node, "wanted, but the volume is for one node only and attached to another")
	if p.told {
		return
	}
	p.told = true
	d.pairs[node] = p
	for _, pod := range d.v.wants[node] {
		d.steps = append(d.steps, act.Event{On: pod, Type: corev1.EventTypeWarning, Reason: "FailedAttachVolume",
			Message: fmt.Sprintf("Multi-Attach error for volume %q %s", d.title(node), d.inTheWay(pod, node))})
	}
}

// inTheWay says which pods use the volume on other nodes. Pods of other namespaces are
// counted and not named.
func (d *draft) inTheWay(pod *corev1.Pod, node string) string {
	var names []string
	others := 0
	for _, other := range slices.Sorted(maps.Keys(d.pairs)) {
		if other == node || d.pairs[other].state != attached {
			continue
		}
		for _, user := range d.v.wants[other] {
			if user.Namespace == pod.Namespace {
				names = append(names, user.Name)
			} else {
				others++
			}
		}
	}
	slices.Sort(names)
	elsewhere := fmt.Sprintf("%d pod(s) in different namespaces", others)
	switch {
	case len(names) == 0 && others == 0:
		return "Volume is already exclusively attached to one node and can't be attached to another"
	case others == 0:
		return "Volume is already used by pod(s) " + strings.Join(names, ", ")
	case len(names) == 0:
		return "Volume is already used by " + elsewhere
	}
	return "Volume is already used by pod(s) " + strings.Join(names, ", ") + " and " + elsewhere
}
