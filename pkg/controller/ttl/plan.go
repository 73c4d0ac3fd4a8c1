package ttl

import (
	"fmt"
	"math"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// stages are sizes of a cluster, in nodes, and the time that goes with them. They
// overlap: who is in one stays in it as long as the size allows.
var stages = []struct{ least, most, seconds int }{
	{0, 100, 0}, {90, 500, 15}, {450, 1000, 30}, {900, 2000, 60}, {1800, math.MaxInt, 300},
}

// follow returns the stage of a cluster with that many nodes that was in stage at.
func follow(at, nodes int) int {
	for nodes > stages[at].most {
		at++
	}
	for nodes < stages[at].least {
		at--
	}
	return at
}

// observed is a node and the seconds that it should say.
type observed struct {
	node    *corev1.Node
	seconds int
}

func plan(o observed, _ time.Time) act.Plan {
	if says(o.node, o.seconds) {
		return act.Plan{Why: fmt.Sprintf("its annotation is %d seconds, as it should be", o.seconds)}
	}
	return act.Plan{
		Why: fmt.Sprintf("its annotation is %q and should be %d seconds", o.node.Annotations[corev1.ObjectTTLAnnotationKey], o.seconds),
		Stages: act.Stages(act.Merge(o.node, map[string]any{
			"annotations": map[string]string{corev1.ObjectTTLAnnotationKey: strconv.Itoa(o.seconds)},
		})),
	}
}

// says reports whether the node has this time. A number counts however it is written.
func says(node *corev1.Node, seconds int) bool {
	has, err := strconv.Atoi(node.Annotations[corev1.ObjectTTLAnnotationKey])
	return err == nil && has == seconds
}
