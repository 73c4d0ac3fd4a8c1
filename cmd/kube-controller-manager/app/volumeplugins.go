package app

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/persistentvolumebinder"
	"github.com/kube-kcm/kube-controller-manager/pkg/volumes/hostpath"
	"github.com/kube-kcm/kube-controller-manager/pkg/volumes/recycle"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// volumePlugins makes the plugins of volumes that are left in the process. Recycling ends
// with ctx.
func (cc ControllerContext) volumePlugins(ctx context.Context, hand reconcile.Hand) (persistentvolumebinder.Plugins, error) {
	volumes := cc.Config.PersistentVolumeBinderController.VolumeConfiguration
	recyclers, err := cc.recyclers()
	if err != nil {
		return nil, err
	}
	events, err := cc.eventsByName()
	if err != nil {
		return nil, err
	}
	pods, err := recycle.NewPods(cc.row.Name, cc.Informers.Core().V1().Pods(), events, ctx.Done(), hand)
	if err != nil {
		return nil, err
	}
	return persistentvolumebinder.BuiltIn(persistentvolumebinder.BuiltInOptions{
		Disk: hostpath.LocalDisk(), ProvisionsHostPaths: ptr.Deref(volumes.EnableHostPathProvisioning, false),
		Recyclers: recyclers, Recycle: pods.Recycle, Clock: cc.Clock,
	}), nil
}

// recyclers reads the templates of recycler pods.
func (cc ControllerContext) recyclers() (recycle.Recyclers, error) {
	o := cc.Config.PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration
	onHost, err := recycle.Template(o.PodTemplateFilePathHostPath)
	if err != nil {
		return recycle.Recyclers{}, fmt.Errorf("failed to probe volume plugins when starting persistentvolume controller: %w", err)
	}
	onNFS, err := recycle.Template(o.PodTemplateFilePathNFS)
	if err != nil {
		return recycle.Recyclers{}, fmt.Errorf("failed to probe volume plugins when starting persistentvolume controller: %w", err)
	}
	return recycle.Recyclers{
		HostPath: recycle.Recycler{Template: onHost, Minimum: o.MinimumTimeoutHostPath, Increment: o.IncrementTimeoutHostPath},
		NFS:      recycle.Recycler{Template: onNFS, Minimum: o.MinimumTimeoutNFS, Increment: o.IncrementTimeoutNFS},
	}, nil
}

// eventsByName watches events as the controller that is made now. Its role may not list them.
func (cc ControllerContext) eventsByName() (recycle.Events, error) {
	config, err := cc.configOf(cc.row)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make the client for events of %s: %w", cc.row.Account, err)
	}
	return func(ctx context.Context, namespace, name string) (watch.Interface, error) {
		return client.CoreV1().Events(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("involvedObject.name", name).String()})
	}, nil
}
