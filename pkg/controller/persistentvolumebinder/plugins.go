package persistentvolumebinder

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// Plugins are the volume plugins that are built in, and can do more than mount.
type Plugins interface {
	// Named returns the plugin of that name, such as kubernetes.io/host-path; nil if there is none.
	Named(name string) *Plugin
	// Of returns the plugin of the source of a volume; nil if there is none.
	Of(*corev1.PersistentVolume) *Plugin
}

// Plugin is what a plugin can do; a nil function is what it cannot. The functions are
// called beside the reconciles, and may take as long as they need. They end with ctx.
type Plugin struct {
	Name string
	// Disabled is why it provisions nothing although it could; "" if it does.
	Disabled string
	// Provision makes the backend of a volume for a claim, and returns what only the plugin
	// knows of the volume: its source and annotations.
	Provision func(context.Context, *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error)
	// Delete deletes the backend of a volume. It may be called again for one that is gone.
	Delete func(context.Context, *corev1.PersistentVolume) error
	// Recycle empties a volume, and reports the events for it on the way.
	Recycle func(ctx context.Context, pv *corev1.PersistentVolume, say func(eventType, message string)) error
}

// none are no plugins.
type none struct{}

func (none) Named(string) *Plugin                { return nil }
func (none) Of(*corev1.PersistentVolume) *Plugin { return nil }
