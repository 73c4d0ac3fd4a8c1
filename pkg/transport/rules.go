package transport

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// fields is a set of field numbers below 64; all that rules name are.
type fields uint64

func of(numbers ...protowire.Number) (f fields) {
	for _, n := range numbers {
		f |= 1 << n
	}
	return f
}

// has is false for a higher number: its bit is shifted out.
func (f fields) has(n protowire.Number) bool { return f&(1<<n) != 0 }

// rule says what is left of a message. The numbers are those of generated.proto
// in k8s.io/api and k8s.io/apimachinery.
type rule struct {
	// drop are fields that are left out.
	drop fields
	// keep, when not empty, are the only fields that are not left out.
	keep fields
	// into are messages within the message.
	into map[protowire.Number]*rule
}

var (
	objectMeta = &rule{drop: of(17)} // managedFields

	// container is kept as cache.Trim keeps it: name, ports, resources,
	// securityContext, resizePolicy, restartPolicy and restartPolicyRules.
	container = &rule{keep: of(1, 6, 8, 15, 23, 24, 25)}

	containerStatus = &rule{drop: of(7, 8, 12)} // imageID, containerID, volumeMounts
	debugStatus     = &rule{keep: of(1, 2)}     // name, state

	// volumeSource loses what only kubelets provide: hostPath, emptyDir, gitRepo,
	// secret, downwardAPI, configMap, projected, image.
	volumeSource = &rule{drop: of(1, 2, 5, 6, 16, 19, 26, 30)}
	volume       = &rule{into: map[protowire.Number]*rule{2: volumeSource}}

	// affinity is kept as far as it names other namespaces.
	affinityTerm = &rule{keep: of(2, 4)} // namespaces, namespaceSelector
	weightedTerm = &rule{keep: of(2), into: map[protowire.Number]*rule{2: affinityTerm}}
	podAffinity  = &rule{into: map[protowire.Number]*rule{1: affinityTerm, 2: weightedTerm}}
	// nodeAffinity is kept as far as it requires fields of nodes, such as the name.
	nodeTerm     = &rule{keep: of(2)} // matchFields
	nodeSelector = &rule{into: map[protowire.Number]*rule{1: nodeTerm}}
	nodeAffinity = &rule{keep: of(1), into: map[protowire.Number]*rule{1: nodeSelector}}
	affinity     = &rule{into: map[protowire.Number]*rule{1: nodeAffinity, 2: podAffinity, 3: podAffinity}}

	podSpec = &rule{
		// nodeSelector, imagePullSecrets, hostAliases, dnsConfig,
		// topologySpreadConstraints, ephemeralContainers.
		drop: of(7, 15, 23, 26, 33, 34),
		into: map[protowire.Number]*rule{1: volume, 2: container, 18: affinity, 20: container},
	}
	podStatus = &rule{
		into: map[protowire.Number]*rule{8: containerStatus, 10: containerStatus, 13: debugStatus},
	}

	// nodeStatus loses capacity, daemonEndpoints, nodeInfo, images, config,
	// runtimeHandlers, features and declaredFeatures.
	nodeStatus = &rule{drop: of(1, 6, 7, 8, 11, 12, 13, 14)}

	// device is kept as cache.Trim keeps it: name and taints. The slice loses its
	// nodeSelector and sharedCounters.
	device    = &rule{keep: of(1, 8)}
	sliceSpec = &rule{drop: of(4, 8), into: map[protowire.Number]*rule{6: device}}

	object = &rule{into: map[protowire.Number]*rule{1: objectMeta}}

	// byKind are the rules of single kinds, by apiVersion and kind.
	byKind = map[string]*rule{
		"v1/Pod":  {into: map[protowire.Number]*rule{1: objectMeta, 2: podSpec, 3: podStatus}},
		"v1/Node": {into: map[protowire.Number]*rule{1: objectMeta, 3: nodeStatus}},

		"resource.k8s.io/v1/ResourceSlice": {into: map[protowire.Number]*rule{1: objectMeta, 2: sliceSpec}},
	}
)

// ruleFor is the rule of a kind: at least the managed fields go.
func ruleFor(apiVersion, kind []byte) *rule {
	if r, ok := byKind[string(apiVersion)+"/"+string(kind)]; ok {
		return r
	}
	return object
}
