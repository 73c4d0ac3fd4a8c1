package explore

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// labelOptions are SELinux options of a pod or container; nil at times.
func labelOptions(d *Draw) any {
	return One[any](d, nil, Object{"level": "s0:c1"}, Object{"level": "s0:c1"}, Object{"level": "s0:c2"}, Object{"level": "s0:c2"}, Object{"level": "s0:c1", "type": "a_t"}, Object{"type": "b_t"}, Object{"user": "u", "role": "r", "type": "a_t", "level": "s0:c1"}, Object{})
}

// labelledPod mounts a claim, and at times a second one or a directory of its own.
func labelledPod(d *Draw, name string) Object {
	security := Object{}
	if options := labelOptions(d); options != nil {
		security["seLinuxOptions"] = options
	}
	if d.Chance(50) {
		security["seLinuxChangePolicy"] = One(d, "MountOption", "Recursive", "Recursive")
	}
	volumes := []any{Object{"name": "data", "persistentVolumeClaim": Object{"claimName": One(d, "a", "a", "a", "a", "b")}}}
	mounts := []any{Object{"name": "data", "mountPath": "/data"}}
	if d.Chance(20) {
		volumes = append(volumes, Object{"name": "more", "persistentVolumeClaim": Object{"claimName": One(d, "b", "none")}})
		mounts = append(mounts, Object{"name": "more", "mountPath": "/more"})
	}
	if d.Chance(15) {
		volumes = append(volumes, Object{"name": "inline", "csi": Object{"driver": "$NS.example.com"}})
		mounts = append(mounts, Object{"name": "inline", "mountPath": "/inline"})
	}
	var containers, first []any
	for i := range d.Int(1, 2) {
		c := Object{"name": fmt.Sprintf("c%d", i), "image": "one", "volumeMounts": mounts}
		inside := Object{}
		if d.Chance(25) {
			if options := labelOptions(d); options != nil {
				inside["seLinuxOptions"] = options
			}
		}
		if d.Chance(10) {
			inside["privileged"] = true
		}
		c["securityContext"] = inside
		containers = append(containers, c)
	}
	if d.Chance(15) {
		first = append(first, Object{"name": "first", "image": "one", "volumeMounts": mounts, "securityContext": Object{"seLinuxOptions": Object{"level": "s0:c9"}}})
	}
	spec := Object{"containers": containers, "volumes": volumes, "securityContext": security, "automountServiceAccountToken": false, "restartPolicy": "Never", "terminationGracePeriodSeconds": 0}
	if first != nil {
		spec["initContainers"] = first
	}
	return Object{"apiVersion": "v1", "kind": "Pod", "metadata": d.Metadata(name), "spec": spec}
}

// boundPair is a claim and a volume that name each other.
func boundPair(d *Draw, name string) (claim, volume Object) {
	mode := One(d, "ReadWriteMany", "ReadWriteMany", "ReadWriteOncePod", "ReadWriteOnce")
	claim = Object{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": Object{"name": name}, "spec": Object{"accessModes": []any{mode}, "storageClassName": "", "volumeName": "$NS-" + name,
		"resources": Object{"requests": Object{"storage": "1Gi"}}}}
	spec := Object{"capacity": Object{"storage": "1Gi"}, "accessModes": []any{mode}, "persistentVolumeReclaimPolicy": "Retain", "claimRef": Object{"namespace": "$NS", "name": name, "uid": "$(persistentvolumeclaims/" + name + " .metadata.uid)"}}
	switch d.Int(0, 19) {
	case 0:
		spec["nfs"] = Object{"server": "nfs.example", "path": "/"}
	case 1:
		spec["iscsi"] = Object{"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2026-01.example:" + name, "lun": 0}
	default:
		spec["csi"] = Object{"driver": "$NS.example.com", "volumeHandle": One(d, "$NS-"+name, "$NS-"+name, "$NS-same")}
	}
	return claim, Object{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": Object{"name": "$NS-" + name}, "spec": spec}
}

// passing is a conflict between a pod judged since its driver has changed and one judged before:
// only one of the two has a label, or is mounted with one.
var passing = regexp.MustCompile(`Conflict: SELinux(ChangePolicy "(Recursive" conflicts .*"MountOption"|MountOption" conflicts .*"Recursive")|Label "(" conflicts .*"[^"]+"|[^"]+" conflicts .*""))\. `)

// passesWithADriver finds events about such conflicts that only the original has, in a script in
// which a driver comes to mount with labels, or no longer does.
func passesWithADriver(s *Script, _ []harness.AuditEvent, finding *compare.Finding) string {
	changes := func(step string) bool { return strings.Contains(step, "csidrivers/") || step == "apply driver.yaml" }
	if finding.Kind == compare.KindEvent && !finding.More && passing.MatchString(finding.Subject) && slices.ContainsFunc(s.Steps[min(1, len(s.Steps)):], changes) {
		return "When seLinuxMount of a CSIDriver changes, the original compares pods that it has judged since with pods that it has not, and reports conflicts that do not exist."
	}
	return ""
}

func init() {
	pods := []string{"p", "q", "r"}
	bound := func(name string) string {
		return "apply " + name + "-claim.yaml\napply " + name + "-volume.yaml\nstatus persistentvolumeclaims/" + name + ` {"phase":"Bound"}`
	}
	register(&Family{
		Name:     "selinux",
		Start:    []string{"selinux-warning-controller"},
		Compared: []string{"pods", "persistentvolumeclaims"},
		Fresh:    true,
		Explains: passesWithADriver,
		Begin: func(d *Draw, s *Script) {
			s.Objects["driver.yaml"] = Object{"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": Object{"name": "$NS.example.com"}, "spec": Object{
				"attachRequired": false, "seLinuxMount": d.Chance(90), "volumeLifecycleModes": []any{"Persistent", "Ephemeral"}}}
			for _, name := range []string{"a", "b"} {
				s.Objects[name+"-claim.yaml"], s.Objects[name+"-volume.yaml"] = boundPair(d, name)
			}
			for _, pod := range pods {
				s.Objects[pod+".yaml"] = labelledPod(d, pod)
			}
			if d.Chance(95) {
				s.Steps = append(s.Steps, "apply driver.yaml")
			}
			s.Steps = append(s.Steps, bound("a"), "apply p.yaml", "apply q.yaml")
		},
		Moves: slices.Concat([]Move{
			{7, About(pods, "apply %s.yaml")},
			{5, About(pods, "delete pods/%s now", "delete pods/%s now\napply %s.yaml", "succeed %s", "fail %s", "label pods/%s team=x", `patch pods/%s {"metadata":{"finalizers":null}}`)},
			{4, Line(bound("a"), bound("b"))},
			{3, Lines([]string{`status persistentvolumeclaims/a {"phase":"Pending"}`, `status persistentvolumeclaims/a {"phase":"Bound"}`}, []string{"annotate persistentvolumes/$NS-a note=n"})},
			{3, About([]string{"a", "b"}, `status persistentvolumeclaims/%s {"phase":"Pending"}`, `status persistentvolumeclaims/%s {"phase":"Bound"}`, `status persistentvolumeclaims/%s {"phase":"Lost"}`, "delete persistentvolumeclaims/%s",
				"delete persistentvolumes/$NS-%s", `patch persistentvolumes/$NS-%s {"spec":{"claimRef":{"uid":"00000000-0000-0000-0000-000000000001"}}}`, "annotate persistentvolumes/$NS-%s note=n")},
			{1, Line("apply driver.yaml", "delete csidrivers/$NS.example.com", `patch csidrivers/$NS.example.com {"spec":{"seLinuxMount":false}}`, `patch csidrivers/$NS.example.com {"spec":{"seLinuxMount":true}}`, `patch csidrivers/$NS.example.com {"spec":{"seLinuxMount":null}}`)},
			{2, Line("kubelet off", "kubelet pending", "kubelet slow-stop")},
			{2, Line("kubelet on")},
			{1, Line("restart")},
		}, Disturbances("pods")),
	})
}
