package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
)

func init() {
	register(&scenario{
		name: "collection", order: 9, quick: 4 * time.Minute, full: 40 * time.Minute,
		about: "ConfigMaps belong to owners that are all deleted at once: first in the background, then as many others in the foreground. As many ConfigMaps of nobody must stay.",
		sizes: []size{
			{"owners", 50, 10, "owners of collection"},
			{"objects", 20000, 500, "ConfigMaps that belong to them, for each way of deleting"},
			{"bystanders", 500, 50, "ConfigMaps that belong to nobody"},
		},
		run: runCollection,
	})
}

func runCollection(ctx context.Context, w *world) error {
	if err := w.begin(ctx, 0); err != nil {
		return err
	}
	for i := range w.sizes["bystanders"] {
		if _, err := w.configMap(ctx, fmt.Sprintf("bystander-%d", i)); err != nil {
			return err
		}
	}
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		if err := w.collect(ctx, policy); err != nil {
			return err
		}
	}
	left, err := w.load().CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("count what is left: %w", err)
	}
	bystanders := 0
	for i := range left.Items {
		if left.Items[i].Labels["of"] == "bench" {
			bystanders++
		}
	}
	if bystanders != w.sizes["bystanders"] {
		return fmt.Errorf("%d of %d ConfigMaps of nobody are left", bystanders, w.sizes["bystanders"])
	}
	return nil
}

// configMap makes one ConfigMap of the scenario.
func (w *world) configMap(ctx context.Context, name string, owners ...metav1.OwnerReference) (*corev1.ConfigMap, error) {
	return w.load().CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"of": "bench"}, OwnerReferences: owners},
		Data:       map[string]string{"key": "value"},
	}, metav1.CreateOptions{})
}

// collect makes owners and what belongs to them, and measures how all of it goes.
func (w *world) collect(ctx context.Context, policy metav1.DeletionPropagation) error {
	owners, objects := w.sizes["owners"], w.sizes["objects"]
	client := w.load().CoreV1().ConfigMaps(namespace)
	owned := make([]metav1.OwnerReference, owners)
	yes := true
	for i := range owners {
		owner, err := w.configMap(ctx, fmt.Sprintf("owner-%s-%d", way(policy), i))
		if err != nil {
			return err
		}
		owned[i] = metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID, BlockOwnerDeletion: &yes}
	}
	made := parallel(ctx, workers, objects, func(i int) error {
		_, err := w.configMap(ctx, fmt.Sprintf("%s-%d", way(policy), i), owned[i%owners])
		return err
	})
	if made != nil {
		return made
	}
	gone, err := w.expectGone(ctx, "ConfigMaps are gone", objects+owners, w.watches.Core().V1().ConfigMaps().Informer(), func(object any) string {
		if o, ok := object.(*corev1.ConfigMap); ok && o.Namespace == namespace {
			return o.Name
		}
		return ""
	})
	if err != nil {
		return err
	}
	if err := pause(ctx, tail); err != nil { // all has been seen
		return err
	}
	return w.step(ctx, report.Step{Name: "delete, " + way(policy), Objects: objects, Unit: "object"}, func(ctx context.Context) ([]report.Latency, error) {
		deleted := parallel(ctx, workers, owners, func(i int) error {
			return client.Delete(ctx, owned[i].Name, metav1.DeleteOptions{PropagationPolicy: &policy})
		})
		took, err := gone.wait(ctx)
		return []report.Latency{report.Latencies("object", took)}, errors.Join(deleted, err)
	})
}

// way is the policy as names of objects can have it.
func way(policy metav1.DeletionPropagation) string { return strings.ToLower(string(policy)) }
