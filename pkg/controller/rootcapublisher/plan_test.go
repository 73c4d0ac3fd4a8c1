package rootcapublisher

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
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

func TestDecide(t *testing.T) {
	active := namespace(corev1.NamespaceActive)
	fresh := configMap(func(cm *corev1.ConfigMap) { cm.UID, cm.ResourceVersion = "", "" })
	for name, tc := range map[string]struct {
		namespace *corev1.Namespace
		published *corev1.ConfigMap
		want      plan
	}{
		"a missing config map is created": {active, nil, plan{create: fresh, Why: "the config map is missing"}},
		"a good one is left alone":        {active, configMap(nil), plan{Why: "nothing differs"}},
		"a description in other words stays": {active,
			configMap(func(cm *corev1.ConfigMap) { cm.Annotations[descriptionAnnotation] = "ours" }), plan{Why: "nothing differs"}},
		"a changed certificate is put right": {active,
			configMap(func(cm *corev1.ConfigMap) { cm.Data["ca.crt"] = "other" }),
			plan{update: configMap(nil), Why: "the config map was changed"}},
		"further keys are removed": {active,
			configMap(func(cm *corev1.ConfigMap) { cm.Data["more"] = "x" }),
			plan{update: configMap(nil), Why: "the config map was changed"}},
		"a lost description comes back, other annotations stay": {active,
			configMap(func(cm *corev1.ConfigMap) { cm.Annotations = map[string]string{"mine": "x"} }),
			plan{update: configMap(func(cm *corev1.ConfigMap) { cm.Annotations["mine"] = "x" }), Why: "the config map was changed"}},
		"one without any annotation gets the description": {active,
			configMap(func(cm *corev1.ConfigMap) { cm.Annotations = nil }),
			plan{update: configMap(nil), Why: "the config map was changed"}},
		"binary data is not ours to touch": {active,
			configMap(func(cm *corev1.ConfigMap) { cm.Data, cm.BinaryData = nil, map[string][]byte{"b": {1}} }),
			plan{update: configMap(func(cm *corev1.ConfigMap) { cm.BinaryData = map[string][]byte{"b": {1}} }), Why: "the config map was changed"}},
		"a terminating namespace gets nothing":  {namespace(corev1.NamespaceTerminating), nil, plan{Why: "the namespace is not active"}},
		"a namespace that is gone gets nothing": {nil, nil, plan{Why: "the namespace is gone"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.published.DeepCopy()
			got := decide(tc.namespace, tc.published, rootCA)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(plan{})); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, tc.published); diff != "" {
				t.Errorf("the cached object was changed: %s", diff)
			}
		})
	}
}
