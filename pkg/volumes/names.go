package volumes

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The names of plugins. That of a FlexVolume is the name of its driver.
const (
	CSI   = "kubernetes.io/csi"
	ISCSI = "kubernetes.io/iscsi"
	FC    = "kubernetes.io/fc"
)

// Name distinguishes volumes: it is the same for all objects that mean one volume, and
// stands in the status of nodes.
type Name = corev1.UniqueVolumeName

// CSIName is the name of the volume that a CSI driver knows by this handle.
func CSIName(driver, handle string) Name {
	return Name(CSI + "/" + driver + "^" + handle)
}

// ParseCSI returns the driver and the handle in the name of a CSI volume. A handle may
// have any characters; the name of a driver has no caret.
func ParseCSI(name Name) (driver, handle string, is bool) {
	rest, is := strings.CutPrefix(string(name), CSI+"/")
	if !is {
		return "", "", false
	}
	driver, handle, is = strings.Cut(rest, "^")
	return driver, handle, is && driver != "" && handle != ""
}

// Attachment is the name of the VolumeAttachment of a volume and a node.
func Attachment(driver, handle, node string) string {
	sum := sha256.Sum256([]byte(handle + driver + node))
	return "csi-" + hex.EncodeToString(sum[:])
}

func iscsiName(portal, iqn string, lun int32) Name {
	return Name(fmt.Sprintf("%s/%s:%s:%d", ISCSI, portal, iqn, lun))
}

// fcName is the name of a volume by its world wide names and unit, or else by its
// world wide identifiers; empty if it has neither.
func fcName(names []string, unit *int32, identifiers []string) Name {
	switch {
	case len(names) > 0 && unit != nil:
		return Name(FC + "/[" + strings.Join(names, " ") + "]:" + strconv.Itoa(int(*unit)))
	case len(identifiers) > 0:
		return Name(FC + "/[" + strings.Join(identifiers, " ") + "]")
	}
	return ""
}

// FlexName is the name of a volume of a FlexVolume driver, by the name of its
// PersistentVolume or of the volume of a pod.
func FlexName(driver, name string) Name { return Name(driver + "/" + name) }

// PluginOf is the plugin that the name alone shows: one of CSI, ISCSI and FC, or the
// driver of a FlexVolume.
func PluginOf(name Name) string {
	for _, plugin := range []string{CSI, ISCSI, FC} {
		if strings.HasPrefix(string(name), plugin+"/") {
			return plugin
		}
	}
	if i := strings.LastIndexByte(string(name), '/'); i > 0 {
		return string(name[:i])
	}
	return ""
}
