package options

import (
	"strings"
	"testing"
)

func TestThePauseIsInKubeSystem(t *testing.T) {
	for value, says := range map[string]string{
		"":                         "",
		"kube-system/kcm-pause":    "",
		"kube-system/a.b-c":        "",
		"kcm-pause":                "--pause-configmap=kcm-pause: has to be a namespace and a name",
		"default/kcm-pause":        "--pause-configmap=default/kcm-pause: has to be in namespace kube-system",
		"/kcm-pause":               "--pause-configmap=/kcm-pause: has to be in namespace kube-system",
		"kube-system/":             `--pause-configmap=kube-system/: "" is not the name of a ConfigMap`,
		"kube-system/KCM":          `"KCM" is not the name of a ConfigMap`,
		"kube-system/a/b":          `"a/b" is not the name of a ConfigMap`,
		"kube-system/kcm-pause ":   `"kcm-pause " is not the name of a ConfigMap`,
		"kube-system /kcm-pause":   "has to be in namespace kube-system",
		"kube-system/kcm-pause,x":  `"kcm-pause,x" is not the name of a ConfigMap`,
		"KUBE-SYSTEM/kcm-pause":    "has to be in namespace kube-system",
		"kube-system.kcm-pause":    "has to be a namespace and a name",
		"configmap/kcm-pause":      "has to be in namespace kube-system",
		"kube-system/configmap/ab": "is not the name of a ConfigMap",
	} {
		t.Run(value, func(t *testing.T) {
			p := &problems{}
			(&KubeControllerManagerOptions{PauseConfigMap: value}).checkPause(p)
			got := ""
			if err := p.message(); err != nil {
				got = err.Error()
			}
			if (got == "") != (says == "") || !strings.Contains(got, says) {
				t.Errorf("said %q, want %q", got, says)
			}
		})
	}
}
