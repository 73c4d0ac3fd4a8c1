package revisions

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// setDefaults fills in what the API server fills in when it stores a template
// (documented with the fields of k8s.io/api/core/v1). The template of an owner has
// all of it; a revision that an earlier release wrote lacks the defaults that have
// come since.
func setDefaults(template *corev1.PodTemplateSpec) {
	spec := &template.Spec
	fill(&spec.DNSPolicy, corev1.DNSClusterFirst)
	fill(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	fill(&spec.SchedulerName, corev1.DefaultSchedulerName)
	point(&spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	point(&spec.SecurityContext, corev1.PodSecurityContext{})
	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i].VolumeSource)
	}
	for i := range spec.InitContainers {
		defaultContainer(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		defaultContainer(&spec.Containers[i])
	}
}

// fill sets a field that is empty.
func fill[T comparable](field *T, value T) {
	var empty T
	if *field == empty {
		*field = value
	}
}

// point sets a field that is nil.
func point[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}

func defaultContainer(c *corev1.Container) {
	fill(&c.ImagePullPolicy, pullPolicy(c.Image))
	fill(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	fill(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		fill(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		if from := c.Env[i].ValueFrom; from != nil {
			defaultField(from.FieldRef)
			if from.FileKeyRef != nil {
				point(&from.FileKeyRef.Optional, false)
			}
		}
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		defaultProbe(probe)
	}
	if c.Lifecycle != nil {
		for _, hook := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if hook != nil {
				defaultRequest(hook.HTTPGet)
			}
		}
	}
}

// pullPolicy is Always for the image that moves on: the latest, which an image
// without a tag and a digest is too.
func pullPolicy(image string) corev1.PullPolicy {
	name, _, byDigest := strings.Cut(image, "@")
	path := name[strings.LastIndexByte(name, '/')+1:]
	_, tag, tagged := strings.Cut(path, ":")
	if tag == "latest" || !tagged && !byDigest {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

func defaultField(ref *corev1.ObjectFieldSelector) {
	if ref != nil {
		fill(&ref.APIVersion, "v1")
	}
}

func defaultProbe(p *corev1.Probe) {
	if p == nil {
		return
	}
	fill(&p.TimeoutSeconds, 1)
	fill(&p.PeriodSeconds, 10)
	fill(&p.SuccessThreshold, 1)
	fill(&p.FailureThreshold, 3)
	defaultRequest(p.HTTPGet)
	if p.GRPC != nil {
		point(&p.GRPC.Service, "")
	}
}

func defaultRequest(get *corev1.HTTPGetAction) {
	if get != nil {
		fill(&get.Path, "/")
		fill(&get.Scheme, corev1.URISchemeHTTP)
	}
}

func defaultVolume(v *corev1.VolumeSource) {
	if *v == (corev1.VolumeSource{}) {
		v.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	switch {
	case v.Secret != nil:
		point(&v.Secret.DefaultMode, corev1.SecretVolumeSourceDefaultMode)
	case v.ConfigMap != nil:
		point(&v.ConfigMap.DefaultMode, corev1.ConfigMapVolumeSourceDefaultMode)
	case v.DownwardAPI != nil:
		point(&v.DownwardAPI.DefaultMode, corev1.DownwardAPIVolumeSourceDefaultMode)
		defaultFiles(v.DownwardAPI.Items)
	case v.Projected != nil:
		defaultProjected(v.Projected)
	case v.HostPath != nil:
		point(&v.HostPath.Type, corev1.HostPathUnset)
	case v.Image != nil:
		fill(&v.Image.PullPolicy, pullPolicy(v.Image.Reference))
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		point(&v.Ephemeral.VolumeClaimTemplate.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	default:
		defaultDisk(v)
	}
}

func defaultProjected(p *corev1.ProjectedVolumeSource) {
	point(&p.DefaultMode, corev1.ProjectedVolumeSourceDefaultMode)
	for i := range p.Sources {
		if from := p.Sources[i].DownwardAPI; from != nil {
			defaultFiles(from.Items)
		}
		if token := p.Sources[i].ServiceAccountToken; token != nil {
			point(&token.ExpirationSeconds, 60*60)
		}
		if certificate := p.Sources[i].PodCertificate; certificate != nil {
			point(&certificate.MaxExpirationSeconds, 24*60*60)
		}
	}
}

func defaultFiles(files []corev1.DownwardAPIVolumeFile) {
	for i := range files {
		defaultField(files[i].FieldRef)
	}
}

// defaultDisk is for volumes of the kinds that one server or one cloud offers.
func defaultDisk(v *corev1.VolumeSource) {
	switch {
	case v.ISCSI != nil:
		fill(&v.ISCSI.ISCSIInterface, "default")
	case v.RBD != nil:
		fill(&v.RBD.RBDPool, "rbd")
		fill(&v.RBD.RadosUser, "admin")
		fill(&v.RBD.Keyring, "/etc/ceph/keyring")
	case v.AzureDisk != nil:
		point(&v.AzureDisk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		point(&v.AzureDisk.Kind, corev1.AzureSharedBlobDisk)
		point(&v.AzureDisk.FSType, "ext4")
		point(&v.AzureDisk.ReadOnly, false)
	case v.ScaleIO != nil:
		fill(&v.ScaleIO.StorageMode, "ThinProvisioned")
		fill(&v.ScaleIO.FSType, "xfs")
	}
}
