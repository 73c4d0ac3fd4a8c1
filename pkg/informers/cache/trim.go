package cache

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
)

// Trim is the transform of every shared informer. It drops managed fields from
// all objects, and from pods, nodes and slices of devices what no controller
// reads. The object is the informer's own at this point, so it is changed in place.
func Trim(object any) (any, error) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		trimmed, err := Trim(tombstone.Obj)
		tombstone.Obj = trimmed
		return tombstone, err
	}
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	switch o := object.(type) {
	case *corev1.Pod:
		trimPod(o)
	case *corev1.Node:
		delete(o.Annotations, corev1.LastAppliedConfigAnnotation)
		trimNodeStatus(&o.Status)
	case *resourcev1.ResourceSlice:
		trimSlice(&o.Spec)
	}
	return object, nil
}

// trimNodeStatus keeps conditions, addresses, volumes and what can be allocated;
// the rest is for schedulers and people.
func trimNodeStatus(s *corev1.NodeStatus) {
	*s = corev1.NodeStatus{
		Allocatable: s.Allocatable, Phase: s.Phase, Conditions: s.Conditions, Addresses: s.Addresses,
		VolumesInUse: s.VolumesInUse, VolumesAttached: s.VolumesAttached,
	}
}

// trimSlice keeps the names and the taints of devices; the rest is for schedulers.
func trimSlice(s *resourcev1.ResourceSliceSpec) {
	s.NodeSelector, s.SharedCounters = nil, nil
	for i := range s.Devices {
		s.Devices[i] = resourcev1.Device{Name: s.Devices[i].Name, Taints: s.Devices[i].Taints}
	}
}

func trimPod(pod *corev1.Pod) {
	delete(pod.Annotations, corev1.LastAppliedConfigAnnotation)
	trimContainers(pod.Spec.InitContainers)
	trimContainers(pod.Spec.Containers)
	trimVolumes(&pod.Spec)
	pod.Spec.EphemeralContainers = nil
	pod.Spec.Affinity = trimAffinity(pod.Spec.Affinity, pod.Spec.NodeName == "")
	pod.Spec.TopologySpreadConstraints = nil
	pod.Spec.DNSConfig = nil
	pod.Spec.ImagePullSecrets = nil
	pod.Spec.HostAliases = nil
	pod.Spec.NodeSelector = nil
	trimEphemeral(pod.Status.EphemeralContainerStatuses)
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			statuses[i].ImageID, statuses[i].ContainerID = "", ""
			statuses[i].VolumeMounts = nil
		}
	}
}

// trimEphemeral keeps whether debug containers run: volumes stay attached while one does.
func trimEphemeral(statuses []corev1.ContainerStatus) {
	for i := range statuses {
		statuses[i] = corev1.ContainerStatus{Name: statuses[i].Name, State: statuses[i].State}
	}
}

// trimAffinity keeps of the terms that reach into other namespaces what says so:
// quotas are about these. Of a pod that has no node yet it keeps which node it is
// made for.
func trimAffinity(a *corev1.Affinity, unscheduled bool) *corev1.Affinity {
	if a == nil {
		return nil
	}
	var kept corev1.Affinity
	if nodes := a.NodeAffinity; nodes != nil && unscheduled {
		kept.NodeAffinity = pinned(nodes.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if pods := a.PodAffinity; pods != nil {
		required, preferred := reachingOut(pods.RequiredDuringSchedulingIgnoredDuringExecution, pods.PreferredDuringSchedulingIgnoredDuringExecution)
		if len(required)+len(preferred) > 0 {
			kept.PodAffinity = &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required, PreferredDuringSchedulingIgnoredDuringExecution: preferred}
		}
	}
	if pods := a.PodAntiAffinity; pods != nil {
		required, preferred := reachingOut(pods.RequiredDuringSchedulingIgnoredDuringExecution, pods.PreferredDuringSchedulingIgnoredDuringExecution)
		if len(required)+len(preferred) > 0 {
			kept.PodAntiAffinity = &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required, PreferredDuringSchedulingIgnoredDuringExecution: preferred}
		}
	}
	if kept == (corev1.Affinity{}) {
		return nil
	}
	return &kept
}

// pinned keeps the terms that name fields of nodes, and of these the fields.
func pinned(selector *corev1.NodeSelector) *corev1.NodeAffinity {
	if selector == nil {
		return nil
	}
	var terms []corev1.NodeSelectorTerm
	for i := range selector.NodeSelectorTerms {
		if fields := selector.NodeSelectorTerms[i].MatchFields; len(fields) > 0 {
			terms = append(terms, corev1.NodeSelectorTerm{MatchFields: fields})
		}
	}
	if len(terms) == 0 {
		return nil
	}
	return &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}
}

func reachingOut(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) (r []corev1.PodAffinityTerm, p []corev1.WeightedPodAffinityTerm) {
	short := func(t *corev1.PodAffinityTerm) (corev1.PodAffinityTerm, bool) {
		return corev1.PodAffinityTerm{Namespaces: t.Namespaces, NamespaceSelector: t.NamespaceSelector}, len(t.Namespaces) > 0 || t.NamespaceSelector != nil
	}
	for i := range required {
		if term, ok := short(&required[i]); ok {
			r = append(r, term)
		}
	}
	for i := range preferred {
		if term, ok := short(&preferred[i].PodAffinityTerm); ok {
			p = append(p, corev1.WeightedPodAffinityTerm{PodAffinityTerm: term})
		}
	}
	return r, p
}

// trimVolumes keeps claims and what can be attached; the rest is for kubelets alone.
func trimVolumes(spec *corev1.PodSpec) {
	for i := range spec.Volumes {
		s := &spec.Volumes[i].VolumeSource
		s.HostPath, s.EmptyDir, s.GitRepo, s.Secret, s.DownwardAPI, s.ConfigMap, s.Projected, s.Image = nil, nil, nil, nil, nil, nil, nil, nil
	}
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return v.VolumeSource == corev1.VolumeSource{} })
	if len(spec.Volumes) == 0 {
		spec.Volumes = nil
	}
}

// trimContainers keeps names, ports, resources, restart policies and security
// contexts: what endpoints, quota, autoscaling, jobs and volumes look at.
func trimContainers(containers []corev1.Container) {
	for i := range containers {
		c := &containers[i]
		containers[i] = corev1.Container{
			Name: c.Name, Ports: c.Ports, Resources: c.Resources, ResizePolicy: c.ResizePolicy,
			RestartPolicy: c.RestartPolicy, RestartPolicyRules: c.RestartPolicyRules, SecurityContext: c.SecurityContext,
		}
	}
}
