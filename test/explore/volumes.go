package explore

// The classes of the family: one that provisions at once, one that does with the
// first pod, one that never does, and one of a driver that nobody runs, or of the host.
var classes = []string{"$NS-fast", "$NS-late", "$NS-manual", "$NS-gone"}

func storageClass(d *Draw, name, provisioner string) Object {
	o := Object{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": Object{"name": name}, "provisioner": provisioner,
		"volumeBindingMode": "Immediate", "reclaimPolicy": One(d, "Delete", "Delete", "Retain"), "allowVolumeExpansion": true}
	if name == "$NS-late" || name == "$NS-manual" {
		o["volumeBindingMode"] = "WaitForFirstConsumer"
	}
	return o
}

func attributesClass(name string) Object {
	return Object{"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttributesClass", "metadata": Object{"name": name},
		"driverName": "csi.example", "parameters": Object{"speed": name}}
}

// wantedVolume is a claim of any class, or for a volume of its choice.
func wantedVolume(d *Draw, name string) Object {
	spec := Object{"accessModes": []any{One(d, "ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod")},
		"resources": Object{"requests": Object{"storage": One(d, "1Gi", "2Gi", "4Gi")}}}
	if d.Chance(85) {
		spec["storageClassName"] = One(d, append([]string{"", "$NS-fast", "$NS-fast"}, classes...)...)
	}
	if d.Chance(15) {
		spec["volumeName"] = One(d, "$NS-v", "$NS-w", "$NS-none")
	}
	if d.Chance(10) {
		spec["selector"] = Object{"matchLabels": Object{"app": One(d, "web", "other")}}
	}
	if d.Chance(10) {
		spec["volumeAttributesClassName"] = One(d, "$NS-gold", "$NS-silver")
	}
	if d.Chance(10) {
		spec["volumeMode"] = "Block"
	}
	o := Object{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": d.Metadata(name), "spec": spec}
	d.Dress(o, 1, []string{"spec"}, "spec.resources", "spec.accessModes", "spec.volumeName")
	return o
}

// volumeSource is one of the kinds of volumes; only those of a driver are attached. Those of a host
// can be emptied, and deleted below /tmp. Nobody has the FlexVolume driver, and its volumes are expanded.
func volumeSource(d *Draw, name string) (string, Object) {
	switch d.Int(0, 11) {
	case 0:
		return "nfs", Object{"server": "nfs.example", "path": "/"}
	case 1:
		return "hostPath", Object{"path": One(d, "/data/", "/tmp/$NS-") + name}
	case 2:
		return "awsElasticBlockStore", Object{"volumeID": "vol-" + name}
	case 3:
		return "iscsi", Object{"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2026-01.example:" + name, "lun": 0}
	case 4:
		return "flexVolume", Object{"driver": "example.com/flex"}
	}
	return "csi", Object{"driver": One(d, "csi.example", "csi.example", "csi.example", "other.example"), "volumeHandle": "handle-" + name}
}

// ownVolume is a volume that somebody has made, for anybody or for one of the claims.
func ownVolume(d *Draw, name string) Object {
	kind, source := volumeSource(d, name)
	spec := Object{"capacity": Object{"storage": One(d, "1Gi", "2Gi", "5Gi")}, kind: source,
		"accessModes":                   One(d, []any{"ReadWriteOnce"}, []any{"ReadWriteOnce", "ReadWriteMany"}, []any{"ReadWriteOncePod"}),
		"persistentVolumeReclaimPolicy": One(d, "Retain", "Retain", "Delete", "Recycle")}
	if d.Chance(60) {
		spec["storageClassName"] = One(d, append([]string{"", ""}, classes...)...)
	}
	if d.Chance(25) {
		spec["claimRef"] = Object{"namespace": "$NS", "name": One(d, "a", "b")}
		if d.Chance(25) {
			Set(spec, []string{"claimRef", "uid"}, "00000000-0000-0000-0000-000000000001")
		}
	}
	if d.Chance(10) {
		spec["volumeMode"] = "Block"
	}
	metadata := d.Metadata("$NS-" + name)
	if d.Chance(15) {
		metadata["annotations"] = Object{"pv.kubernetes.io/provisioned-by": One(d, "csi.example", "kubernetes.io/aws-ebs", "other.example")}
	}
	return Object{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}
}

// mounting is a pod with volumes.
func mounting(d *Draw, name string) Object {
	volumes := []any{Object{"name": "data", "persistentVolumeClaim": Object{"claimName": One(d, "a", "a", "b")}}}
	if d.Chance(20) {
		volumes = append(volumes, Object{"name": "scratch", "ephemeral": Object{"volumeClaimTemplate": Object{"metadata": Object{"labels": Object{"of": name}},
			"spec": Object{"accessModes": []any{"ReadWriteOnce"}, "storageClassName": One(d, classes...), "resources": Object{"requests": Object{"storage": "1Gi"}}}}}})
	}
	if d.Chance(10) {
		volumes = append(volumes, Object{"name": "disk", "iscsi": Object{"targetPortal": "10.0.0.2:3260", "iqn": "iqn.2026-01.example:inline", "lun": 0}})
	}
	spec := Object{"containers": []any{Object{"name": "c", "image": "one"}}, "volumes": volumes, "restartPolicy": One(d, "Always", "Never")}
	if d.Chance(60) {
		spec["nodeName"] = One(d, "$NS-a", "$NS-b")
	}
	if d.Chance(25) {
		spec["terminationGracePeriodSeconds"] = One(d, 0, 1)
	}
	return Object{"apiVersion": "v1", "kind": "Pod", "metadata": d.Metadata(name), "spec": spec}
}

func beginVolumes(d *Draw, s *Script) {
	first := "csi csi.example"
	if d.Chance(80) {
		first += "\nkubelet volumes"
	}
	s.Steps = append(s.Steps, first+"\nnode $NS-a ready\nnode $NS-b ready")
	for _, class := range [][2]string{{"fast", "csi.example"}, {"late", "csi.example"}, {"manual", "kubernetes.io/no-provisioner"}, {"gone", One(d, "gone.example", "kubernetes.io/aws-ebs", "kubernetes.io/host-path")}} {
		s.Objects[class[0]+".yaml"] = storageClass(d, "$NS-"+class[0], class[1])
	}
	s.Objects["gold.yaml"], s.Objects["silver.yaml"] = attributesClass("$NS-gold"), attributesClass("$NS-silver")
	s.Steps = append(s.Steps, "apply fast.yaml\napply late.yaml\napply manual.yaml\napply gone.yaml\napply gold.yaml\napply silver.yaml")
	s.Objects["driver.yaml"] = Object{"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": Object{"name": "csi.example"}, "spec": Object{"attachRequired": d.Chance(50)}}
	for _, name := range []string{"v", "w"} {
		s.Objects[name+".yaml"] = ownVolume(d, name)
	}
	for _, name := range []string{"a", "b"} {
		s.Objects[name+".yaml"] = wantedVolume(d, name)
	}
	for _, name := range []string{"p", "q"} {
		s.Objects[name+".yaml"] = mounting(d, name)
	}
	// The pods that empty a volume are in default.
	s.Objects["account.yaml"] = Object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": Object{"name": "default", "namespace": "default"}}
	s.Steps = append(s.Steps, "apply account.yaml", "apply v.yaml", "apply a.yaml", "apply p.yaml")
}
