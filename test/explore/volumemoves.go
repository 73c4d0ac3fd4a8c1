package explore

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/compare"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

func init() {
	claims, volumes, pods, nodes := []string{"a", "b"}, []string{"$NS-v", "$NS-w", "pvc-*"}, []string{"p", "q"}, []string{"$NS-a", "$NS-b"}
	register(&Family{
		Name: "volume",
		Start: []string{"persistentvolume-binder-controller", "persistentvolume-attach-detach-controller", "persistentvolume-expander-controller",
			"persistentvolumeclaim-protection-controller", "persistentvolume-protection-controller", "volumeattributesclass-protection-controller", "ephemeral-volume-controller"},
		// What the original notices at its next resync only is to be noticed while both sides are waited for.
		Flags:    []string{"--pvclaimbinder-sync-period=3s", "--attach-detach-reconcile-sync-period=5s", "--enable-hostpath-provisioner"},
		Compared: []string{"persistentvolumes", "persistentvolumeclaims", "volumeattachments", "volumeattributesclasses", "pods", "nodes"},
		Quiet:    1200 * time.Millisecond,
		Fresh:    true,
		Begin:    beginVolumes,
		Explains: waitsForItsNode,
		Moves: slices.Concat([]Move{
			{8, About([]string{"a", "b", "b", "v", "w", "w", "p", "q", "q"}, "apply %s.yaml")},
			{5, About(claims, "delete persistentvolumeclaims/%s", "delete persistentvolumeclaims/%s\napply %s.yaml", `patch persistentvolumeclaims/%s {"metadata":{"finalizers":null}}`)},
			{4, About(claims, `patch persistentvolumeclaims/%s {"spec":{"resources":{"requests":{"storage":"8Gi"}}}}`, `patch persistentvolumeclaims/%s {"spec":{"resources":{"requests":{"storage":"3Gi"}}}}`,
				`patch persistentvolumeclaims/%s {"spec":{"volumeAttributesClassName":"$NS-gold"}}`, `patch persistentvolumeclaims/%s {"spec":{"volumeAttributesClassName":"$NS-silver"}}`,
				`patch persistentvolumeclaims/%s {"spec":{"storageClassName":"$NS-fast"}}`)},
			{2, About(claims, `annotate persistentvolumeclaims/%s volume.kubernetes.io/selected-node=$NS-a`, `annotate persistentvolumeclaims/%s volume.kubernetes.io/selected-node-`,
				`annotate persistentvolumeclaims/%s pv.kubernetes.io/bind-completed-`, `annotate persistentvolumeclaims/%s pv.kubernetes.io/bound-by-controller-`,
				`annotate persistentvolumeclaims/%s volume.kubernetes.io/storage-provisioner-`, `status persistentvolumeclaims/%s {"phase":"Pending"}`, `status persistentvolumeclaims/%s {"phase":"Lost"}`)},
			{4, About(volumes, "delete persistentvolumes/%s", `patch persistentvolumes/%s {"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`,
				`patch persistentvolumes/%s {"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`, `patch persistentvolumes/%s {"spec":{"persistentVolumeReclaimPolicy":"Recycle"}}`,
				`patch persistentvolumes/%s {"spec":{"claimRef":null}}`, `patch persistentvolumes/%s {"spec":{"claimRef":{"uid":null}}}`)},
			{2, About(volumes, `patch persistentvolumes/%s {"metadata":{"finalizers":null}}`, `annotate persistentvolumes/%s pv.kubernetes.io/bound-by-controller-`,
				`annotate persistentvolumes/%s pv.kubernetes.io/provisioned-by=csi.example`, `annotate persistentvolumes/%s volume.alpha.kubernetes.io/pre-resize-capacity=1Gi`,
				`status persistentvolumes/%s {"phase":"Released"}`, `status persistentvolumes/%s {"phase":"Failed","message":"m"}`, `status persistentvolumes/%s {"phase":"Available"}`,
				`patch persistentvolumes/%s {"spec":{"capacity":{"storage":"9Gi"}}}`, `patch persistentvolumes/%s {"spec":{"volumeAttributesClassName":"$NS-gold"}}`)},
			{4, About(pods, "kill %s", "kill %s now", "lose %s", "fail %s", "succeed %s", `patch pods/%s {"metadata":{"finalizers":null}}`, "kill %s now\napply %s.yaml")},
			{3, About([]string{"attach", "detach", "provision", "delete", "resize", "modify"}, "csi csi.example %s works", "csi csi.example %s fails out of order", "csi csi.example %s hangs")},
			{2, Line("csi csi.example off", "csi csi.example", "csi csi.example", "csi other.example attacher", "apply driver.yaml", "delete csidrivers/csi.example")},
			{2, About(nodes, "node %s silent", "node %s notready", "node %s back", "node %s back", "node %s taint node.kubernetes.io/out-of-service=x:NoExecute", "node %s untaint node.kubernetes.io/out-of-service",
				"annotate nodes/%s volumes.kubernetes.io/controller-managed-attach-detach=true", `status nodes/%s {"volumesInUse":[]}`)},
			{2, Line("delete volumeattachments/csi-*", `patch volumeattachments/csi-* {"metadata":{"finalizers":null}}`,
				`status volumeattachments/csi-* {"attachError":{"message":"m"}}`)},
			{2, Line("annotate storageclasses/$NS-fast storageclass.kubernetes.io/is-default-class=true", "annotate storageclasses/$NS-fast storageclass.kubernetes.io/is-default-class-",
				"delete storageclasses/$NS-late", "apply late.yaml", "delete volumeattributesclasses/$NS-gold", "apply gold.yaml", `patch volumeattributesclasses/$NS-silver {"metadata":{"finalizers":null}}`)},
			{2, Line("kubelet slow-unmount", "kubelet slow-stop", "kubelet slow-start", "kubelet volumes", "kubelet off")},
			{3, Line("kubelet on")},
			{1, Line("pass 4s")},
			{2, About([]string{"v", "w"}, `status pods/default/recycler-for-$NS-%s {"phase":"Succeeded"}`, `status pods/default/recycler-for-$NS-%s {"phase":"Failed","message":"m"}`)},
			{3, whileStopped("kill p now", "kill q now", "kill p now\napply p.yaml", "kill p now\napply q.yaml", "apply a.yaml", "apply w.yaml",
				`status nodes/$NS-a {"volumesInUse":null}`, "node $NS-a silent", "csi csi.example off", "csi csi.example",
				"delete persistentvolumes/$NS-v", "delete volumeattachments/csi-*", `patch persistentvolumes/$NS-v {"metadata":{"finalizers":null}}`,
				"delete persistentvolumeclaims/a\n"+`patch persistentvolumeclaims/a {"metadata":{"finalizers":null}}`,
				`patch persistentvolumeclaims/a {"spec":{"resources":{"requests":{"storage":"8Gi"}}}}`)},
		}, Disturbances("persistentvolumes", "persistentvolumeclaims", "volumeattachments", "nodes")),
	})
}

var attachedHere = regexp.MustCompile(`\A(  .*\n)*\+   volumesAttached:\n(\+ .*\n?)+(  .*\n?)*\z`)

// waitsForItsNode finds volumes that only ours has attached, after a node was handed to the
// controller that had pods already. The original looks at those three minutes later.
func waitsForItsNode(s *Script, _ []harness.AuditEvent, finding *compare.Finding) string {
	handsOver := func(step string) bool {
		return step == "kubelet volumes" || strings.Contains(step, "controller-managed-attach-detach=true")
	}
	attached := strings.HasPrefix(finding.Subject, "Node ") && attachedHere.MatchString(finding.Detail) ||
		strings.HasPrefix(finding.Subject, "VolumeAttachment ") && strings.HasPrefix(finding.Detail, "only with ours")
	if finding.Kind == compare.KindObject && attached && slices.ContainsFunc(s.Steps, handsOver) {
		return "A pod that was there before its node was handed over waits up to three minutes in the original."
	}
	return ""
}

// whileStopped draws some of the lines for a time in which no manager runs. As nobody acts on them,
// they are one step.
func whileStopped(lines ...string) func(*Draw, *Script) []string {
	return func(d *Draw, _ *Script) []string {
		step := "stop\n"
		for range d.Int(1, 3) {
			step += One(d, lines...) + "\n"
		}
		return []string{step + "start"}
	}
}
