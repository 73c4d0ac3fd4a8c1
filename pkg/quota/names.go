package quota

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

var (
	// Pods are counted with what their containers ask for.
	Pods = schema.GroupResource{Resource: "pods"}
	// Services are counted with their load balancers and node ports.
	Services = schema.GroupResource{Resource: "services"}
	// Claims are persistent volume claims, counted with their storage.
	Claims = schema.GroupResource{Resource: "persistentvolumeclaims"}
	// DeviceClaims are the resource claims of dynamic resource allocation,
	// counted with the devices they ask for.
	DeviceClaims = schema.GroupResource{Group: resourceapi.GroupName, Resource: "resourceclaims"}
)

const (
	countPrefix        = "count/"
	storageClassMark   = ".storageclass.storage.k8s.io/"
	implicitDevices    = corev1.ResourceName(corev1.ResourceImplicitExtendedClaimsPerClass)
	nativeResourceMark = corev1.ResourceDefaultNamespacePrefix
)

// byName are the names that stand for one resource and need no look at their form.
var byName = map[corev1.ResourceName]schema.GroupResource{
	corev1.ResourcePods:                     Pods,
	corev1.ResourceCPU:                      Pods,
	corev1.ResourceMemory:                   Pods,
	corev1.ResourceEphemeralStorage:         Pods,
	corev1.ResourceRequestsCPU:              Pods,
	corev1.ResourceRequestsMemory:           Pods,
	corev1.ResourceRequestsEphemeralStorage: Pods,
	corev1.ResourceLimitsCPU:                Pods,
	corev1.ResourceLimitsMemory:             Pods,
	corev1.ResourceLimitsEphemeralStorage:   Pods,
	corev1.ResourceServices:                 Services,
	corev1.ResourceServicesNodePorts:        Services,
	corev1.ResourceServicesLoadBalancers:    Services,
	corev1.ResourcePersistentVolumeClaims:   Claims,
	corev1.ResourceRequestsStorage:          Claims,
	corev1.ResourceConfigMaps:               {Resource: "configmaps"},
	corev1.ResourceQuotas:                   {Resource: "resourcequotas"},
	corev1.ResourceReplicationControllers:   {Resource: "replicationcontrollers"},
	corev1.ResourceSecrets:                  {Resource: "secrets"},
}

// Counted returns the resources whose objects count towards each name in spec.hard; none
// for a name that means nothing to quota. Extended says whether some device class offers
// an extended resource of that name, or is what the name stands for.
func Counted(hard corev1.ResourceList, extended func(string) bool) map[corev1.ResourceName][]schema.GroupResource {
	all := make(map[corev1.ResourceName][]schema.GroupResource, len(hard))
	claims := false
	for name := range hard {
		all[name] = CountedFor(name, extended)
		claims = claims || slices.Contains(all[name], DeviceClaims)
	}
	for name := range all {
		// Claims of a class that does not exist count if the claims are counted anyway.
		if claims && strings.HasPrefix(string(name), string(implicitDevices)) {
			all[name] = []schema.GroupResource{Pods, DeviceClaims}
		}
	}
	return all
}

// CountedFor is Counted for one name alone.
func CountedFor(name corev1.ResourceName, extended func(string) bool) []schema.GroupResource {
	if resource, ok := byName[name]; ok {
		return []schema.GroupResource{resource}
	}
	text := string(name)
	switch {
	case strings.HasPrefix(text, countPrefix):
		return []schema.GroupResource{schema.ParseGroupResource(strings.TrimPrefix(text, countPrefix))}
	case strings.HasPrefix(text, corev1.ResourceHugePagesPrefix), strings.HasPrefix(text, corev1.ResourceRequestsHugePagesPrefix):
		return []schema.GroupResource{Pods}
	case strings.HasSuffix(text, storageClassMark+string(corev1.ResourcePersistentVolumeClaims)),
		strings.HasSuffix(text, storageClassMark+string(corev1.ResourceRequestsStorage)):
		return []schema.GroupResource{Claims}
	case strings.HasSuffix(text, corev1.ResourceClaimsPerClass):
		return []schema.GroupResource{DeviceClaims}
	}
	requested, isRequest := strings.CutPrefix(text, corev1.DefaultResourceRequestsPrefix)
	switch {
	case !isRequest || native(text) && !strings.HasPrefix(text, string(implicitDevices)):
		return nil
	case extended(requested):
		return []schema.GroupResource{Pods, DeviceClaims}
	}
	return []schema.GroupResource{Pods}
}

// countName is the name that counts the objects of a resource in storage.
func countName(resource schema.GroupResource) corev1.ResourceName {
	return corev1.ResourceName(countPrefix + resource.String())
}

// native reports whether the name of a resource is one of Kubernetes itself.
func native(name string) bool {
	return !strings.Contains(name, "/") || strings.Contains(name, nativeResourceMark)
}

// extended reports whether what a container requests under this name is an
// extended resource that a quota may limit.
func extended(name string) bool {
	if strings.HasPrefix(name, resourceapi.ResourceDeviceClassPrefix) {
		return true
	}
	return !native(name) && !strings.HasPrefix(name, corev1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+name)) == 0
}

func requestOf(name string) corev1.ResourceName {
	return corev1.ResourceName(corev1.DefaultResourceRequestsPrefix + name)
}
