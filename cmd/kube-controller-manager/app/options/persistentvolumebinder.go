package options

import (
	"github.com/spf13/pflag"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/volumes/recycle"
)

var persistentVolumeBinder = section{
	controller: names.PersistentVolumeBinderController,
	flags:      persistentVolumeFlags,
	check:      checkPersistentVolumes,
}

func persistentVolumeFlags(fs *pflag.FlagSet, c *configuration) {
	o := &c.PersistentVolumeBinderController
	v := &o.VolumeConfiguration
	r := &v.PersistentVolumeRecyclerConfiguration
	fs.DurationVar(&o.PVClaimBinderSyncPeriod.Duration, "pvclaimbinder-sync-period", o.PVClaimBinderSyncPeriod.Duration,
		"How often every volume and every claim is reconciled even if nothing changed.")
	fs.StringVar(&r.PodTemplateFilePathNFS, "pv-recycler-pod-template-filepath-nfs", r.PodTemplateFilePathNFS,
		"A file with the pod that recycles NFS volumes, in place of the built-in one.")
	fs.Int32Var(&r.MinimumTimeoutNFS, "pv-recycler-minimum-timeout-nfs", r.MinimumTimeoutNFS,
		"The smallest activeDeadlineSeconds of a pod that recycles an NFS volume.")
	fs.Int32Var(&r.IncrementTimeoutNFS, "pv-recycler-increment-timeout-nfs", r.IncrementTimeoutNFS,
		"How many seconds each Gi of an NFS volume adds to the activeDeadlineSeconds of the pod that recycles it.")
	fs.StringVar(&r.PodTemplateFilePathHostPath, "pv-recycler-pod-template-filepath-hostpath", r.PodTemplateFilePathHostPath,
		"File with the pod that recycles host path volumes, instead of the built-in one. For development only: it does not work with several nodes.")
	fs.Int32Var(&r.MinimumTimeoutHostPath, "pv-recycler-minimum-timeout-hostpath", r.MinimumTimeoutHostPath,
		"The smallest activeDeadlineSeconds of a pod that recycles a host path volume. For development only.")
	fs.Int32Var(&r.IncrementTimeoutHostPath, "pv-recycler-timeout-increment-hostpath", r.IncrementTimeoutHostPath,
		"How many seconds each Gi of a host path volume adds to the activeDeadlineSeconds of the pod that recycles it. For development only.")
	fs.BoolVar(v.EnableHostPathProvisioning, "enable-hostpath-provisioner", *v.EnableHostPathProvisioning,
		"Provision host path volumes when there is no cloud provider. For development only: it does not work with several nodes.")
	fs.BoolVar(v.EnableDynamicProvisioning, "enable-dynamic-provisioning", *v.EnableDynamicProvisioning,
		"Provision volumes for claims of a storage class.")
	fs.StringVar(&v.FlexVolumePluginDir, "flex-volume-plugin-dir", v.FlexVolumePluginDir,
		"The directory with the flex volume plugins.")
}

func checkPersistentVolumes(p *problems, s *settings) {
	o := s.PersistentVolumeBinderController
	r := o.VolumeConfiguration.PersistentVolumeRecyclerConfiguration
	p.positive("pvclaimbinder-sync-period", o.PVClaimBinderSyncPeriod.Duration)
	p.count("pv-recycler-minimum-timeout-nfs", r.MinimumTimeoutNFS)
	p.count("pv-recycler-increment-timeout-nfs", r.IncrementTimeoutNFS)
	p.count("pv-recycler-minimum-timeout-hostpath", r.MinimumTimeoutHostPath)
	p.count("pv-recycler-timeout-increment-hostpath", r.IncrementTimeoutHostPath)
	if s.enabled(names.PersistentVolumeBinderController) {
		p.podTemplate("pv-recycler-pod-template-filepath-nfs", r.PodTemplateFilePathNFS)
		p.podTemplate("pv-recycler-pod-template-filepath-hostpath", r.PodTemplateFilePathHostPath)
	}
}

// podTemplate refuses a file that no volume can be recycled with; no file is fine.
func (p *problems) podTemplate(flag, path string) {
	if path == "" {
		return
	}
	_, err := recycle.Read(path)
	p.with(flag, path, err)
}
