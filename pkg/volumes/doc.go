// Package volumes has what several controllers need to know of volumes: the name
// that distinguishes them, whatever objects speak of it, the plugin that it
// belongs to, and what the volumes of former in-tree plugins are for CSI drivers.
//
// Where to look: source.go has the volumes of PersistentVolumes and of pods,
// names.go the names, and claims.go how a pod comes to its PersistentVolume.
package volumes
