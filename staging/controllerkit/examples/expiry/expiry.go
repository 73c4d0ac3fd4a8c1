package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// expires is the annotation with the time at which a ConfigMap is to be deleted.
const expires = "example.com/expires"

// Controller deletes ConfigMaps at their time; its keys are their names.
type Controller = reconcile.Controller[types.NamespacedName]

// New returns the controller, which is not running yet.
func New(configMaps cache.SharedIndexInformer, hand reconcile.Hand) (*Controller, error) {
	store := configMaps.GetStore()
	c := reconcile.New(reconcile.Options[types.NamespacedName]{
		Runner: runner.Options[types.NamespacedName]{Name: "expiry"},
		Hand:   hand,
		Caches: reconcile.Caches{corev1.Resource("configmaps"): store},
	}, reconcile.Observe[corev1.ConfigMap, types.NamespacedName](store), plan)
	return c, runner.Watch(c.Runner, configMaps, func(change runner.Change[corev1.ConfigMap], wake runner.Wake[types.NamespacedName]) {
		if change.New != nil && change.New.Annotations[expires] != "" {
			wake.Add(client.ObjectKeyFromObject(change.New))
		}
	})
}

// plan decides. It reads no clock and writes nothing.
func plan(m *corev1.ConfigMap, now time.Time) act.Plan {
	if m.DeletionTimestamp != nil {
		return act.Plan{Why: "it is being deleted"}
	}
	value := m.Annotations[expires]
	if value == "" {
		return act.Plan{Why: "it never expires"}
	}
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return act.Plan{Why: "its time cannot be read", Terminal: fmt.Errorf("annotation %s of %s/%s: %w", expires, m.Namespace, m.Name, err)}
	}
	if left := at.Sub(now); left > 0 {
		return act.Plan{Why: fmt.Sprintf("it expires in %s", left), RequeueAfter: left}
	}
	return act.Plan{Why: "it has expired", Stages: act.Stages(act.Delete{Of: m, Unchanged: true, MayRepeat: true})}
}
