package ttl

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// stage is a size of cluster and the time that goes with it.
type stage struct {
	// least and most are the numbers of nodes between which the stage is kept.
	least, most int
	seconds     int
}

// stages overlap: who is in one stays in it as long as the size allows.
var stages = []stage{
	{least: 0, most: 100, seconds: 0},
	{least: 90, most: 500, seconds: 15},
	{least: 450, most: 1000, seconds: 30},
	{least: 900, most: 2000, seconds: 60},
	{least: 1800, most: math.MaxInt, seconds: 300},
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

// plan says what becomes of a node's annotation.
type plan struct {
	Set string `json:"set,omitempty"`
	Why string `json:"why"`
}

// decide compares what the node says with the time that it should say. A number
// counts however it is written.
func decide(node *corev1.Node, seconds int) plan {
	text, ok := node.Annotations[corev1.ObjectTTLAnnotationKey]
	set := strconv.Itoa(seconds)
	if !ok {
		return plan{Set: set, Why: "it has no time yet"}
	}
	switch has, err := strconv.Atoi(text); {
	case err != nil:
		return plan{Set: set, Why: fmt.Sprintf("its time %q is no number", text)}
	case has != seconds:
		return plan{Set: set, Why: fmt.Sprintf("the size of the cluster asks for another time than %d", has)}
	}
	return plan{Why: "it has the right time"}
}

// patch returns the merge patch, which the server refuses when the node has been replaced.
func (p plan) patch(node *corev1.Node) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": node.UID, "annotations": map[string]string{corev1.ObjectTTLAnnotationKey: p.Set},
	}})
}
