package services

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// WakeItself wakes the Service that changed.
func WakeItself(change runner.Change[corev1.Service], w runner.Wake[types.NamespacedName]) {
	service := change.Now()
	w.Add(types.NamespacedName{Namespace: service.Namespace, Name: service.Name})
}

// WakeTouched wakes, after the batch period, the Services whose endpoints the
// pod's change shows in; those that an endpoint only joins are spaced. The pods of
// the first list wake none, because every Service of the first list is queued.
func WakeTouched(services toolscache.Indexer, batch time.Duration, spacing *Spacing, change runner.Change[corev1.Pod], w runner.Wake[types.NamespacedName]) {
	if change.Initial {
		return
	}
	touched, err := Touched(services, change.Old, change.New)
	if err != nil {
		utilruntime.HandleError(err)
		return
	}
	for _, touch := range touched {
		if touch.Leaves {
			spacing.AtOnce(w).AddAfter(touch.NamespacedName, batch)
		} else {
			w.AddAfter(touch.NamespacedName, batch)
		}
	}
}
