package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
)

// classOf is the class that a claim asks for.
func classOf(claim *corev1.PersistentVolumeClaim) string {
	return volume.GetPersistentVolumeClaimClass(claim)
}

func judgeClaimHere(l *look, claim *corev1.PersistentVolumeClaim, _ []Controller) finding {
	var class *storagev1.StorageClass
	name, known := classOf(claim), l.indexed(classes) != nil
	if object, ok := l.get(classes, "", name); ok {
		class, known = object.(*storagev1.StorageClass) // of others there may be the metadata only
	}
	if !known && name != "" && claim.Spec.VolumeName == "" && claim.Status.Phase != corev1.ClaimLost {
		return finding{facts: claimFacts(claim, nil, l.podsUsing(claim))}.with(Unknown, "it is not bound, and its class is in no cache of a controller that runs here")
	}
	return judgeClaim(claim, class, l.podsUsing(claim))
}

// judgeClaim is about a claim of a class, nil when there is none, that these pods use.
func judgeClaim(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, pods []*corev1.Pod) finding {
	f := finding{facts: claimFacts(claim, class, pods)}
	switch claim.Status.Phase {
	case corev1.ClaimBound:
		for _, c := range claim.Status.Conditions {
			if c.Status == corev1.ConditionTrue && slices.Contains(resizing, c.Type) {
				return f.with(Progressing, fmt.Sprintf("it is bound to volume %s, and %s", claim.Spec.VolumeName, c.Type)).because(c.Message)
			}
		}
		return f.with(Complete, "it is bound to volume "+claim.Spec.VolumeName)
	case corev1.ClaimLost:
		return f.with(Blocked, "its volume "+claim.Spec.VolumeName+" is gone, or belongs to another claim")
	}
	provisioner := claim.Annotations[volume.AnnStorageProvisioner]
	name := classOf(claim)
	switch {
	case claim.Spec.VolumeName != "":
		return f.with(Waiting, fmt.Sprintf("it waits for volume %s, which it names", claim.Spec.VolumeName))
	case name == "":
		return f.with(Blocked, "no volume matches it, and it has no class that would provision one")
	case class == nil:
		return f.with(Blocked, fmt.Sprintf("no volume matches it, and its class %s is not there", name))
	case waitsForConsumer(class) && claim.Annotations[volume.AnnSelectedNode] == "":
		f.over = true // the pods say more about it than it says about them
		return f.with(Waiting, firstConsumer(name, pods))
	case provisioner != "":
		return f.with(Waiting, fmt.Sprintf("it waits for %s to provision a volume", provisioner))
	case class.Provisioner == volume.NotSupportedProvisioner:
		return f.with(Blocked, fmt.Sprintf("no volume of class %s matches it, and the class does not provision any", name))
	}
	return f.with(Progressing, "a volume is looked for")
}

var resizing = []corev1.PersistentVolumeClaimConditionType{
	corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending,
	corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError,
}

func waitsForConsumer(class *storagev1.StorageClass) bool {
	return ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate) == storagev1.VolumeBindingWaitForFirstConsumer
}

// firstConsumer says which pod a claim waits for.
func firstConsumer(class string, pods []*corev1.Pod) string {
	if len(pods) == 0 {
		return fmt.Sprintf("it waits for its first consumer: class %s binds when a pod is scheduled, and no pod uses the claim", class)
	}
	return fmt.Sprintf("it waits for its first consumer: class %s binds when a pod is scheduled, and %s not: %s", class, counted(len(pods), "pod", "is", "are"), namesOf(pods))
}

func namesOf(pods []*corev1.Pod) string {
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	return someOf(names)
}

// someOf lists names in a sentence, and of many the first.
func someOf(names []string) string {
	const most = 5
	slices.Sort(names)
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

func claimFacts(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, pods []*corev1.Pod) []string {
	facts := []string{"phase " + string(claim.Status.Phase)}
	if asked, ok := claim.Spec.Resources.Requests[corev1.ResourceStorage]; ok {
		said := "asks for " + asked.String()
		if has, ok := claim.Status.Capacity[corev1.ResourceStorage]; ok {
			said += ", has " + has.String()
		}
		facts = append(facts, said)
	}
	if class != nil {
		facts = append(facts, fmt.Sprintf("class %s binds %s", class.Name, ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate)))
	}
	if node := claim.Annotations[volume.AnnSelectedNode]; node != "" {
		facts = append(facts, "node "+node+" chosen")
	}
	return append(facts, plural(len(pods), "pod")+" use it")
}

func judgeVolume(pv *corev1.PersistentVolume) finding {
	f := finding{facts: []string{"phase " + string(pv.Status.Phase), "reclaim policy " + string(pv.Spec.PersistentVolumeReclaimPolicy)}}
	if size, ok := pv.Spec.Capacity[corev1.ResourceStorage]; ok {
		f.facts = append(f.facts, "capacity "+size.String())
	}
	claim := "none"
	if ref := pv.Spec.ClaimRef; ref != nil {
		claim = ref.Namespace + "/" + ref.Name
	}
	switch pv.Status.Phase {
	case corev1.VolumeBound:
		return f.with(Complete, "it is bound to claim "+claim)
	case corev1.VolumeAvailable:
		return f.with(Complete, "it is free to be bound")
	case corev1.VolumeFailed:
		return f.with(Blocked, "it could not be reclaimed").because(pv.Status.Message)
	case corev1.VolumeReleased:
		if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain {
			return f.with(Waiting, "its claim "+claim+" is gone, and it is kept for somebody to look at (Retain)")
		}
		return f.with(Progressing, "its claim "+claim+" is gone, and it is being reclaimed").because(pv.Status.Message)
	}
	return f.with(Progressing, "it has not been looked at yet")
}

// judgeAttachment is about a volume and a node.
func judgeAttachment(va *storagev1.VolumeAttachment) finding {
	s := &va.Status
	f := finding{facts: []string{"attacher " + va.Spec.Attacher, "node " + va.Spec.NodeName}}
	what := "the volume"
	if name := ptr.Deref(va.Spec.Source.PersistentVolumeName, ""); name != "" {
		what = "volume " + name
	}
	node := "node " + va.Spec.NodeName
	switch {
	case va.DeletionTimestamp != nil && s.DetachError != nil:
		return f.with(Blocked, what+" cannot be detached from "+node+lastTry(s.DetachError)).because(s.DetachError.Message)
	case va.DeletionTimestamp != nil:
		return f.with(Waiting, fmt.Sprintf("it waits for %s to detach %s from %s", va.Spec.Attacher, what, node))
	case s.Attached:
		return f.with(Complete, what+" is attached to "+node)
	case s.AttachError != nil:
		return f.with(Blocked, what+" cannot be attached to "+node+lastTry(s.AttachError)).because(s.AttachError.Message)
	}
	return f.with(Waiting, fmt.Sprintf("it waits for %s to attach %s to %s", va.Spec.Attacher, what, node))
}

func lastTry(e *storagev1.VolumeError) string {
	if e.Time.IsZero() {
		return ""
	}
	return " (last tried at " + e.Time.UTC().Format(time.RFC3339) + ")"
}

func judgeClass(class *storagev1.StorageClass) finding {
	f := finding{facts: []string{"provisioner " + class.Provisioner, "binds " + string(ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate))}}
	return f.with(Complete, "volumes of it are provisioned by "+class.Provisioner)
}
