package selinuxwarning

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// What two pods can disagree on, as events and the metric name it.
const (
	changePolicy = "SELinuxChangePolicy"
	seLinuxLabel = "SELinuxLabel"
)

// label is what a volume is mounted with: user:role:type:level. Without one it is
// labelled file by file.
type label string

// policy is how the volume gets its label.
func (l label) policy() corev1.PodSELinuxChangePolicy {
	if l == "" {
		return corev1.SELinuxChangePolicyRecursive
	}
	return corev1.SELinuxChangePolicyMountOption
}

// conflict is one thing that two pods on a volume disagree on, and the value of each.
type conflict struct {
	property, own, others string
}

// conflicts returns what pods with these labels disagree on.
func conflicts(own, others label) []conflict {
	var all []conflict
	if own.policy() != others.policy() {
		all = append(all, conflict{changePolicy, string(own.policy()), string(others.policy())})
	}
	if own.differs(others) {
		all = append(all, conflict{seLinuxLabel, string(own), string(others)})
	}
	return all
}

// differs reports whether the labels cannot be on one volume. Levels must be equal; of
// the other parts the one that is not given follows the other pod's.
func (l label) differs(other label) bool {
	a, b := l.parts(), other.parts()
	for i := range a {
		level := i == len(a)-1
		if a[i] != b[i] && (level || a[i] != "" && b[i] != "") {
			return true
		}
	}
	return false
}

// parts are user, role, type and level; only a level has colons.
func (l label) parts() (parts [4]string) {
	copy(parts[:], strings.SplitN(string(l), ":", len(parts)))
	return parts
}

// turned is the conflict as the other pod has it.
func (c conflict) turned() conflict { return conflict{c.property, c.others, c.own} }

// event tells a pod of the conflict. Of a pod in another namespace nothing is said, not
// even its value.
func (c conflict) event(to, other *corev1.Pod) (reason, message string) {
	reason = c.property + "Conflict"
	const end = "If both pods land on the same node, only one of them may access the volume."
	if to.Namespace != other.Namespace {
		return reason, fmt.Sprintf("%s%q conflicts with another pod that uses the same volume as this pod with a different %s. %s", c.property, c.own, c.property, end)
	}
	return reason, fmt.Sprintf("%s %q conflicts with pod %s that uses the same volume as this pod with %s %q. %s", c.property, c.own, other.Name, c.property, c.others, end)
}
