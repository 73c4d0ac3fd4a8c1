package legacytokencleaner

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

func env(secret string) []corev1.EnvVar {
	return []corev1.EnvVar{{Name: "PLAIN", Value: "x"}, {Name: "REF", ValueFrom: &corev1.EnvVarSource{
		SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret}},
	}}, {Name: "FIELD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{}}}}
}

func TestSecretsOfAPod(t *testing.T) {
	local := func(name string) *corev1.LocalObjectReference { return &corev1.LocalObjectReference{Name: name} }
	volume := func(source corev1.VolumeSource) corev1.PodSpec {
		return corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: source}}}
	}
	for name, tc := range map[string]struct {
		spec corev1.PodSpec
		want []string
	}{
		"nothing":         {corev1.PodSpec{}, []string{}},
		"an image pull":   {corev1.PodSpec{ImagePullSecrets: []corev1.LocalObjectReference{{Name: "a"}, {Name: "b"}}}, []string{"a", "b"}},
		"a variable":      {corev1.PodSpec{Containers: []corev1.Container{{Env: env("a")}}}, []string{"a"}},
		"of another kind": {corev1.PodSpec{InitContainers: []corev1.Container{{Env: env("a")}}}, []string{"a"}},
		"all variables": {corev1.PodSpec{Containers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: *local("a")}}, {ConfigMapRef: &corev1.ConfigMapEnvSource{}},
		}}}}, []string{"a"}},
		"a debug container": {corev1.PodSpec{EphemeralContainers: []corev1.EphemeralContainer{
			{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Env: env("a")}}}}, []string{"a"}},
		"a volume":   {volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "a"}}), []string{"a"}},
		"azure file": {volume(corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "a"}}), []string{"a"}},
		"projected": {volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: *local("a")}}, {ConfigMap: &corev1.ConfigMapProjection{}},
		}}}), []string{"a"}},
		"cephfs":           {volume(corev1.VolumeSource{CephFS: &corev1.CephFSVolumeSource{SecretRef: local("a")}}), []string{"a"}},
		"cinder":           {volume(corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{SecretRef: local("a")}}), []string{"a"}},
		"csi":              {volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{NodePublishSecretRef: local("a")}}), []string{"a"}},
		"csi without one":  {volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{}}), []string{}},
		"flex":             {volume(corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{SecretRef: local("a")}}), []string{"a"}},
		"iscsi":            {volume(corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{SecretRef: local("a")}}), []string{"a"}},
		"rbd":              {volume(corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{SecretRef: local("a")}}), []string{"a"}},
		"scaleio":          {volume(corev1.VolumeSource{ScaleIO: &corev1.ScaleIOVolumeSource{SecretRef: local("a")}}), []string{"a"}},
		"storageos":        {volume(corev1.VolumeSource{StorageOS: &corev1.StorageOSVolumeSource{SecretRef: local("a")}}), []string{"a"}},
		"another volume":   {volume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}), []string{}},
		"an empty name":    {volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}), []string{}},
		"all in one place": {corev1.PodSpec{Containers: []corev1.Container{{Env: env("a")}, {Env: env("b")}}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "a"}}}, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			names := sets.New[string]()
			addSecretsOf(&corev1.Pod{Spec: tc.spec}, names)
			if diff := cmp.Diff(tc.want, sets.List(names)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
