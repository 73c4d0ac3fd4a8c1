package revisions

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func holding(spec string) []byte {
	return fmt.Appendf(nil, `{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"web"}},"spec":{%s}}}}`, spec)
}

func container(fields string) []byte {
	return holding(`"containers":[{"name":"c","image":"example.com/web:1",` + fields + `}]`)
}

func volume(source string) []byte {
	return holding(`"volumes":[{"name":"v"` + source + `}]`)
}

// TestDefaultsAreNoChange compares what users write with what an API server of
// 1.36 stores for it.
func TestDefaultsAreNoChange(t *testing.T) {
	for name, tc := range map[string]struct{ written, stored []byte }{
		"pod":            {holding(``), holding(`"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30`)},
		"container":      {container(`"resources":null`), container(`"imagePullPolicy":"IfNotPresent","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"`)},
		"init container": {holding(`"initContainers":[{"image":"web"}]`), holding(`"initContainers":[{"image":"web","imagePullPolicy":"Always","terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}]`)},
		"port":           {container(`"ports":[{"containerPort":80}]`), container(`"ports":[{"containerPort":80,"protocol":"TCP"}]`)},
		"environment": {container(`"env":[{"name":"A","valueFrom":{"fieldRef":{"fieldPath":"p"}}},{"name":"B","valueFrom":{"fileKeyRef":{"key":"k"}}},{"name":"C","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu"}}},{"name":"D"}]`),
			container(`"env":[{"name":"A","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"p"}}},{"name":"B","valueFrom":{"fileKeyRef":{"key":"k","optional":false}}},{"name":"C","valueFrom":{"resourceFieldRef":{"resource":"limits.cpu","divisor":"0"}}},{"name":"D"}]`)},
		"probes": {container(`"livenessProbe":{"httpGet":{"port":80}},"readinessProbe":{"grpc":{"port":80}},"startupProbe":{"exec":{},"timeoutSeconds":5}`),
			container(`"livenessProbe":{"failureThreshold":3,"httpGet":{"path":"/","port":80,"scheme":"HTTP"},"periodSeconds":10,"successThreshold":1,"timeoutSeconds":1},"readinessProbe":{"failureThreshold":3,"grpc":{"port":80,"service":""},"periodSeconds":10,"successThreshold":1,"timeoutSeconds":1},"startupProbe":{"exec":{},"failureThreshold":3,"periodSeconds":10,"successThreshold":1,"timeoutSeconds":5}`)},
		"hooks":      {container(`"lifecycle":{"preStop":{"httpGet":{"port":80}},"postStart":{"exec":{}}}`), container(`"lifecycle":{"preStop":{"httpGet":{"path":"/","port":80,"scheme":"HTTP"}},"postStart":{"exec":{}}}`)},
		"no source":  {volume(``), volume(`,"emptyDir":{}`)},
		"secret":     {volume(`,"secret":{}`), volume(`,"secret":{"defaultMode":420}`)},
		"config map": {volume(`,"configMap":{}`), volume(`,"configMap":{"defaultMode":420}`)},
		"downward":   {volume(`,"downwardAPI":{"items":[{"path":"p","fieldRef":{}},{"path":"q"}]}`), volume(`,"downwardAPI":{"defaultMode":420,"items":[{"path":"p","fieldRef":{"apiVersion":"v1"}},{"path":"q"}]}`)},
		"projected": {volume(`,"projected":{"sources":[{"serviceAccountToken":{"path":"t"}},{"downwardAPI":{"items":[{"fieldRef":{}}]}},{"configMap":{}},{"podCertificate":{}}]}`),
			volume(`,"projected":{"defaultMode":420,"sources":[{"serviceAccountToken":{"expirationSeconds":3600,"path":"t"}},{"downwardAPI":{"items":[{"fieldRef":{"apiVersion":"v1"}}]}},{"configMap":{}},{"podCertificate":{"maxExpirationSeconds":86400}}]}`)},
		"host path": {volume(`,"hostPath":{"path":"/x"}`), volume(`,"hostPath":{"path":"/x","type":""}`)},
		"image":     {volume(`,"image":{"reference":"x:1"}`), volume(`,"image":{"pullPolicy":"IfNotPresent","reference":"x:1"}`)},
		"ephemeral": {volume(`,"ephemeral":{"volumeClaimTemplate":{"spec":{}}}`), volume(`,"ephemeral":{"volumeClaimTemplate":{"metadata":{},"spec":{"volumeMode":"Filesystem"}}}`)},
		"iscsi":     {volume(`,"iscsi":{"lun":0}`), volume(`,"iscsi":{"iscsiInterface":"default","lun":0}`)},
		"rbd":       {volume(`,"rbd":{"image":"i"}`), volume(`,"rbd":{"image":"i","keyring":"/etc/ceph/keyring","pool":"rbd","user":"admin"}`)},
		"azure":     {volume(`,"azureDisk":{"diskName":"x"}`), volume(`,"azureDisk":{"cachingMode":"ReadWrite","diskName":"x","fsType":"ext4","kind":"Shared","readOnly":false}`)},
		"scaleio":   {volume(`,"scaleIO":{"system":"s"}`), volume(`,"scaleIO":{"fsType":"xfs","storageMode":"ThinProvisioned","system":"s"}`)},
		"unknown":   {holding(`"ofTheFuture":7`), holding(``)},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, Same(tc.written, tc.stored, true), true)
			check(t, Same(tc.written, tc.stored, false), false)
		})
	}
}

// TestOtherValuesAreAChange has one value that the API server copies from another
// field: that is no default, and has been stored ever since.
func TestOtherValuesAreAChange(t *testing.T) {
	for name, tc := range map[string]struct{ before, now []byte }{
		"restart policy":  {holding(``), holding(`"restartPolicy":"Never"`)},
		"grace":           {holding(``), holding(`"terminationGracePeriodSeconds":0`)},
		"pull policy":     {container(`"resources":{}`), container(`"imagePullPolicy":"Always"`)},
		"protocol":        {container(`"ports":[{"containerPort":80}]`), container(`"ports":[{"containerPort":80,"protocol":"UDP"}]`)},
		"period":          {container(`"livenessProbe":{}`), container(`"livenessProbe":{"periodSeconds":11}`)},
		"mode":            {volume(`,"secret":{}`), volume(`,"secret":{"defaultMode":256}`)},
		"another source":  {volume(``), volume(`,"configMap":{}`)},
		"service account": {holding(`"serviceAccountName":"web"`), holding(`"serviceAccountName":"api"`)},
	} {
		t.Run(name, func(t *testing.T) { check(t, Same(tc.before, tc.now, true), false) })
	}
}

func TestTheLatestImageIsAlwaysPulled(t *testing.T) {
	const digest = "@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for image, want := range map[string]corev1.PullPolicy{
		"web": corev1.PullAlways, "web:latest": corev1.PullAlways, "example.com:5000/web": corev1.PullAlways, "web:latest" + digest: corev1.PullAlways,
		"web:1": corev1.PullIfNotPresent, "example.com:5000/web:1": corev1.PullIfNotPresent, "web" + digest: corev1.PullIfNotPresent, "web:1" + digest: corev1.PullIfNotPresent,
	} {
		if got := pullPolicy(image); got != want {
			t.Errorf("%s: got %s", image, got)
		}
	}
}
