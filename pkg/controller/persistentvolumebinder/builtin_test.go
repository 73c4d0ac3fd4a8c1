package persistentvolumebinder

import (
	"errors"
	"fmt"
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
)

func TestWhatTheBuiltInPluginsCanDo(t *testing.T) {
	off, on := BuiltIn(BuiltInOptions{}), BuiltIn(BuiltInOptions{ProvisionsHostPaths: true})
	host, server := volume("pv", hostPath("/tmp/a")), volume("pv", nfs)
	for _, p := range []Plugins{off, on} {
		if p.Named("kubernetes.io/host-path") != p.Of(host) || p.Named("kubernetes.io/nfs") != p.Of(server) || p.Of(volume("pv", csi)) != nil || p.Named("kubernetes.io/rbd") != nil {
			t.Error("a plugin is not found, or one is that is not there")
		}
		if h := p.Of(host); h.Name != "kubernetes.io/host-path" || h.Provision == nil || h.Delete == nil || h.Recycle == nil {
			t.Errorf("host path: %+v", h)
		}
		if n := p.Of(server); n.Name != "kubernetes.io/nfs" || n.Provision != nil || n.Delete != nil || n.Recycle == nil {
			t.Errorf("NFS: %+v", n)
		}
	}
	if got := off.Of(host).Disabled; got != `provisioning in volume plugin "kubernetes.io/host-path" is disabled` || on.Of(host).Disabled != "" {
		t.Errorf("disabled because %q", got)
	}
}

func TestOperationsOfBackendsAreMeasured(t *testing.T) {
	counted := func(operation, status string) uint64 {
		vec, err := testutil.GetHistogramVecFromGatherer(legacyregistry.DefaultGatherer, "storage_operation_duration_seconds", map[string]string{
			"volume_plugin": "kubernetes.io/host-path", "operation_name": operation, "status": status, "migrated": "false"})
		if err != nil {
			return 0 // none yet
		}
		return vec.GetAggregatedSampleCount()
	}
	for status, fail := range map[string]error{"success": nil, "fail-unknown": errors.New("no")} {
		plugin := BuiltIn(BuiltInOptions{Disk: &pretendDisk{fail: fail}}).Named("kubernetes.io/host-path")
		made, deleted := counted("volume_provision", status), counted("volume_delete", status)
		if _, err := plugin.Provision(t.Context(), claim("data")); !errors.Is(err, fail) {
			t.Errorf("provision: %v", err)
		}
		if err := plugin.Delete(t.Context(), volume("pv", hostPath("/tmp/a"))); !errors.Is(err, fail) {
			t.Errorf("delete: %v", err)
		}
		if counted("volume_provision", status) != made+1 || counted("volume_delete", status) != deleted+1 {
			t.Errorf("%s is not counted", status)
		}
	}
	d := &pretendDisk{}
	err := BuiltIn(BuiltInOptions{Disk: d}).Named("kubernetes.io/host-path").Delete(t.Context(), volume("pv", nfs))
	if fmt.Sprint(err) != `failed to create deleter for volume "pv": spec.PersistentVolumeSource.HostPath is nil` || len(d.did) > 0 {
		t.Errorf("a volume without a path: %v, did %v", err, d.did)
	}
}
