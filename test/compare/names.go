package compare

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// generatedNames finds the objects whose names the server or a controller made
// up from a prefix.
func generatedNames(objects []map[string]any, requests []harness.AuditEvent) map[string]string {
	names := map[string]string{}
	add := func(o map[string]any) {
		meta := fields(o, "metadata")
		prefix, _ := meta["generateName"].(string)
		name, _ := meta["name"].(string)
		maps.Copy(names, claimNames(o, name))
		switch o["kind"] {
		case "ReplicaSet", "ReplicationController", "DaemonSet", "Job":
			// A condition may name a pod whose creation was refused.
			names[name+"-*"] = name + "-"
		}
		switch {
		case o["kind"] == "VolumeAttachment":
			// It is a hash of the volume, which may have the UID of its claim, and the node.
			spec := fields(o, "spec")
			names[name] = fmt.Sprintf("csi-%v-%v-", fields(spec, "source")["persistentVolumeName"], spec["nodeName"])
		case o["kind"] == "Workload" || o["kind"] == "PodGroup":
			// It ends with a hash that comes from the UID of a Job.
			spec := fields(o, "spec")
			from := fields(fields(spec, "podGroupTemplateRef"), "workload")["podGroupTemplateName"]
			if job := fields(spec, "controllerRef"); job != nil {
				from = job["name"]
			}
			if from != nil && name != "" {
				names[name] = fmt.Sprint(from) + "-"
			}
		case prefix != "" && strings.HasPrefix(name, prefix):
			names[name] = prefix
		case prefix == "" && o["kind"] == "EndpointSlice":
			// The original writes a slice that it takes for another purpose without its prefix.
			if service, ok := fields(meta, "labels")[discoveryv1.LabelServiceName].(string); ok && strings.HasPrefix(name, service+"-") {
				names[name] = service + "-"
			}
		case prefix != "":
			// A refused request has no name; the prefix alone helps.
			names[prefix+"*"] = prefix
		}
	}
	for _, object := range objects {
		add(object)
	}
	for _, request := range requests {
		add(decoded(request.RequestObject))
		add(decoded(request.ResponseObject))
	}
	return names
}

// claimNames are those of a pod's generated claims, which may be gone, by their prefixes.
func claimNames(pod map[string]any, name string) map[string]string {
	names := map[string]string{}
	statuses, _ := fields(pod, "status")["resourceClaimStatuses"].([]any)
	for _, status := range statuses {
		status, _ := status.(map[string]any)
		if claim, ok := status["resourceClaimName"].(string); ok {
			names[claim] = fmt.Sprintf("%s-%v-", name, status["name"])
		}
	}
	return names
}

func decoded(raw json.RawMessage) map[string]any {
	var o map[string]any
	if json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}
