package persistentvolumebinder

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes/hostpath"
	"github.com/kube-kcm/kube-controller-manager/pkg/volumes/operations"
	"github.com/kube-kcm/kube-controller-manager/pkg/volumes/recycle"
)

// nfsPlugin is the name of the plugin of NFS, which only recycles.
const nfsPlugin = "kubernetes.io/nfs"

// BuiltInOptions say what the plugins that are left in the process may do.
type BuiltInOptions struct {
	// Disk is where host path volumes are.
	Disk Disk
	// ProvisionsHostPaths: host path volumes are provisioned (--enable-hostpath-provisioner).
	ProvisionsHostPaths bool
	// Recyclers are how volumes are recycled, and Recycle does it.
	Recyclers recycle.Recyclers
	Recycle   func(ctx context.Context, r *recycle.Recycler, pv *corev1.PersistentVolume, say func(eventType, message string)) error
	// Clock measures how long operations take; the real one by default.
	Clock clock.PassiveClock
}

// Disk makes and deletes directories.
type Disk interface {
	// Provision makes the directory with that id and returns its path.
	Provision(id types.UID) (string, error)
	// Delete deletes a directory; one that is gone is no error.
	Delete(path string) error
}

type builtIn struct {
	o             BuiltInOptions
	hostPath, nfs *Plugin
}

// BuiltIn returns the plugins that are left in the process: those of hostPath and NFS.
func BuiltIn(o BuiltInOptions) Plugins {
	operations.Register()
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	b := &builtIn{o: o}
	b.hostPath = &Plugin{Name: hostpath.Plugin, Provision: b.provision, Delete: b.remove, Recycle: b.recycle}
	b.nfs = &Plugin{Name: nfsPlugin, Recycle: b.recycle}
	if !o.ProvisionsHostPaths {
		b.hostPath.Disabled = `provisioning in volume plugin "` + hostpath.Plugin + `" is disabled`
	}
	return b
}

func (b *builtIn) Named(name string) *Plugin {
	switch name {
	case hostpath.Plugin:
		return b.hostPath
	case nfsPlugin:
		return b.nfs
	}
	return nil
}

func (b *builtIn) Of(pv *corev1.PersistentVolume) *Plugin {
	switch source := pv.Spec.PersistentVolumeSource; {
	case source.HostPath != nil:
		return b.hostPath
	case source.NFS != nil:
		return b.nfs
	}
	return nil
}

func (b *builtIn) provision(_ context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	began := b.o.Clock.Now()
	directory, err := b.directory(claim)
	b.measure("volume_provision", began, err)
	if err != nil {
		return nil, err
	}
	return hostpath.Volume(directory), nil
}

// directory makes one for a claim.
func (b *builtIn) directory(claim *corev1.PersistentVolumeClaim) (string, error) {
	if err := hostpath.Provisionable(claim); err != nil {
		return "", err
	}
	return b.o.Disk.Provision(uuid.NewUUID())
}

func (b *builtIn) remove(_ context.Context, pv *corev1.PersistentVolume) error {
	directory, err := hostpath.Directory(pv)
	if err != nil {
		return fmt.Errorf("failed to create deleter for volume %q: %w", pv.Name, err)
	}
	began := b.o.Clock.Now()
	err = b.o.Disk.Delete(directory)
	b.measure("volume_delete", began, err)
	return err
}

func (b *builtIn) measure(operation string, began time.Time, err error) {
	operations.Operation{Name: operation, Plugin: hostpath.Plugin}.Observe(b.o.Clock.Since(began), err)
}

func (b *builtIn) recycle(ctx context.Context, pv *corev1.PersistentVolume, say func(eventType, message string)) error {
	return b.o.Recycle(ctx, b.o.Recyclers.For(pv), pv, say)
}
