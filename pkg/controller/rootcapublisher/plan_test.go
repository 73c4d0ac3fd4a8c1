package rootcapublisher

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const rootCA = "-----BEGIN CERTIFICATE-----"

func namespace(phase corev1.NamespacePhase) *corev1.Namespace {
	ns := &corev1.Namespace{}
	ns.Name = "team"
	ns.Status.Phase = phase
	return ns
}

func configMap(change func(*corev1.ConfigMap)) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{Data: map[string]string{"ca.crt": rootCA}}
	cm.Namespace, cm.Name, cm.UID, cm.ResourceVersion = "team", ConfigMapName, "u", "7"
	cm.Annotations = map[string]string{descriptionAnnotation: description}
	if change != nil {
		change(cm)
	}
	return cm
}

// wants is what a plan is to say.
type wants struct {
	create, update *corev1.ConfigMap
	why            string
}

func TestPlan(t *testing.T) {
	active := namespace(corev1.NamespaceActive)
	fresh := configMap(func(cm *corev1.ConfigMap) { cm.UID, cm.ResourceVersion = "", "" })
	for name, tc := range map[string]struct {
		namespace *corev1.Namespace
		published *corev1.ConfigMap
		want      wants
	}{
		"a missing config map is created": {active, nil, wants{create: fresh, why: "the config map is missing"}},
		"a good one is left alone":        {active, configMap(nil), wants{why: "the config map is as it should be"}},
		"a description in other words stays": {active,
			configMap(func(cm *corev1.ConfigMap) { cm.Annotations[descriptionAnnotation] = "ours" }), wants{why: "the config map is as it should be"}},
		"a changed certificate is put right": {active,
			configMap(func(cm *corev1.ConfigMap) { cm.Data["ca.crt"] = "other" }),
			wants{update: configMap(nil), why: "the config map was changed"}},
		"further keys are removed": {active,
			configMap(func(cm *corev1.ConfigMap) { cm.Data["more"] = "x" }),
			wants{update: configMap(nil), why: "the config map was changed"}},
		"a lost description comes back, other annotations stay": {active,
			configMap(func(cm *corev1.ConfigMap) { cm.Annotations = map[string]string{"mine": "x"} }),
			wants{update: configMap(func(cm *corev1.ConfigMap) { cm.Annotations["mine"] = "x" }), why: "the config map was changed"}},
		"one without any annotation gets the description": {active,
			configMap(func(cm *corev1.ConfigMap) { cm.Annotations = nil }),
			wants{update: configMap(nil), why: "the config map was changed"}},
		"binary data is not ours to touch": {active,
			configMap(func(cm *corev1.ConfigMap) { cm.Data, cm.BinaryData = nil, map[string][]byte{"b": {1}} }),
			wants{update: configMap(func(cm *corev1.ConfigMap) { cm.BinaryData = map[string][]byte{"b": {1}} }), why: "the config map was changed"}},
		"one of a terminating namespace is put right": {namespace(corev1.NamespaceTerminating),
			configMap(func(cm *corev1.ConfigMap) { cm.Data["ca.crt"] = "the CA before" }),
			wants{update: configMap(nil), why: "the config map was changed"}},
		"a terminating namespace gets no new one": {namespace(corev1.NamespaceTerminating), nil, wants{why: "the namespace is not active"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.published.DeepCopy()
			p := plan(observed{tc.namespace, tc.published, rootCA}, time.Time{})
			got := wants{why: p.Why}
			for _, stage := range p.Stages {
				for _, step := range stage.Steps {
					switch s := step.(type) {
					case act.Create:
						got.create = s.Object.(*corev1.ConfigMap)
					case act.Update:
						got.update = s.Object.(*corev1.ConfigMap)
					}
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(wants{})); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, tc.published); diff != "" {
				t.Errorf("the cached object was changed: %s", diff)
			}
		})
	}
}
