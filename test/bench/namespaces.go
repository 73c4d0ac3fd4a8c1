package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

func init() {
	register(&scenario{
		name: "namespaces", order: 8, quick: 10 * time.Minute, full: 45 * time.Minute,
		about: "Small namespaces are deleted all at once on a cluster with many kinds of custom resources, just after an aggregated API went down; it comes back some time later. Each holds a ConfigMap, a Secret, a custom object, and what controllers put there. Probes are the namespace controller's requests to the group that is down.",
		sizes: []size{
			{"count", 500, 40, "namespaces that are deleted at once"},
			{"kinds", 300, 40, "CustomResourceDefinitions"},
			{"down", 60, 15, "seconds for which the aggregated API is down"},
		},
		run: runNamespaces,
	})
}

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	probeWindow = 5 * time.Second
)

func runNamespaces(ctx context.Context, w *world) error {
	w.watch(ctx)
	if err := w.start(ctx, "--leader-elect=false"); err != nil {
		return err
	}
	config := *w.Config
	objects, err := dynamic.NewForConfig(&config)
	if err != nil {
		return fmt.Errorf("make the dynamic client: %w", err)
	}
	if err := w.define(ctx, objects, w.sizes["kinds"]); err != nil {
		return err
	}
	api, err := w.addAPI(ctx)
	if err != nil {
		return err
	}
	defer func() { api.down() }()
	if err := w.furnish(ctx, objects, w.sizes["count"]); err != nil {
		return err
	}
	if err := pause(ctx, w.settling()); err != nil {
		return err
	}
	return w.deleteAll(ctx, api)
}

func custom(i int) (kind string, resource schema.GroupVersionResource) {
	return fmt.Sprintf("Thing%d", i), schema.GroupVersionResource{Group: "bench.example.com", Version: "v1", Resource: fmt.Sprintf("things%d", i)}
}

// define makes kinds of custom objects and waits until they are served.
func (w *world) define(ctx context.Context, client dynamic.Interface, kinds int) error {
	if err := parallel(ctx, 4, kinds, func(i int) error {
		kind, r := custom(i)
		open := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		_, err := client.Resource(definitions).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": r.GroupResource().String()},
			"spec": map[string]any{"group": r.Group, "scope": "Namespaced",
				"names":    map[string]any{"plural": r.Resource, "kind": kind},
				"versions": []any{map[string]any{"name": r.Version, "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": open}}}},
		}}, metav1.CreateOptions{})
		return err
	}); err != nil {
		return err
	}
	return harness.WaitFor(ctx, 5*time.Minute, func(context.Context) error {
		served, err := w.Client.Discovery().ServerResourcesForGroupVersion("bench.example.com/v1")
		if err == nil && len(served.APIResources) < kinds {
			err = fmt.Errorf("%d of %d kinds are served", len(served.APIResources), kinds)
		}
		return err
	})
}

// furnish makes the namespaces with what they hold.
func (w *world) furnish(ctx context.Context, objects dynamic.Interface, count int) error {
	client, kinds := w.load(), w.sizes["kinds"]
	name := func(i int) string { return fmt.Sprintf("team-%d", i) }
	if err := parallel(ctx, workers, count, func(i int) error { return w.addNamespace(ctx, name(i)) }); err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Name: "settings"}
	if err := parallel(ctx, workers, count, func(i int) error {
		kind, r := custom(i % max(1, kinds))
		_, err := client.CoreV1().ConfigMaps(name(i)).Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{})
		if err == nil {
			_, err = client.CoreV1().Secrets(name(i)).Create(ctx, &corev1.Secret{ObjectMeta: meta}, metav1.CreateOptions{})
		}
		if err == nil && kinds > 0 {
			_, err = objects.Resource(r).Namespace(name(i)).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": r.GroupVersion().String(), "kind": kind, "metadata": map[string]any{"name": "settings"}}}, metav1.CreateOptions{})
		}
		return err
	}); err != nil {
		return err
	}
	return harness.WaitFor(ctx, 2*time.Minute, func(ctx context.Context) error {
		accounts, err := client.CoreV1().ServiceAccounts("").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=default"})
		if err == nil && len(accounts.Items) < count {
			err = fmt.Errorf("%d of %d namespaces have their service account", len(accounts.Items), count)
		}
		return err
	})
}

// deleteAll is the step that counts.
func (w *world) deleteAll(ctx context.Context, api *aggregated) error {
	count, client := w.sizes["count"], w.load()
	gone, err := w.expectGone(ctx, "namespaces are gone", count, w.watches.Core().V1().Namespaces().Informer(), func(object any) string {
		if ns, ok := object.(*corev1.Namespace); ok && strings.HasPrefix(ns.Name, "team-") {
			return ns.Name
		}
		return ""
	})
	if err != nil {
		return err
	}
	var down, back, seen, end time.Time
	mark := w.Audit.Mark()
	err = w.step(ctx, report.Step{Name: "delete", Objects: count, Unit: "namespace"}, func(ctx context.Context) ([]report.Latency, error) {
		down = time.Now()
		api.down()
		err := parallel(ctx, workers, count, func(i int) error {
			name := fmt.Sprintf("team-%d", i)
			gone.ask(name)
			return client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
		})
		if err := errors.Join(err, pause(ctx, time.Until(down.Add(time.Duration(w.sizes["down"])*time.Second))), api.up(ctx)); err != nil {
			return nil, err
		}
		back = time.Now()
		err = w.available(ctx)
		seen = time.Now()
		w.say("the API server saw the API again after %.1f s", seen.Sub(back).Seconds())
		took, waited := gone.wait(ctx)
		end = time.Now()
		return []report.Latency{report.Latencies("namespace gone", took)}, errors.Join(err, waited)
	})
	if err != nil {
		return err
	}
	w.addFigures(append(namespaceFigures(w.Audit.All(mark), count, down, back),
		report.Figure{Name: "all gone after the API was back", Unit: "s", Value: end.Sub(back).Seconds()},
		report.Figure{Name: "of it until the API server saw that it was", Unit: "s", Value: seen.Sub(back).Seconds()}))
	return nil
}

// most is how many of the times fall into one window at most.
func most(times []time.Time, window time.Duration) int {
	times = slices.SortedFunc(slices.Values(times), time.Time.Compare)
	best, first := 0, 0
	for i := range times {
		for times[i].Sub(times[first]) >= window {
			first++
		}
		best = max(best, i-first+1)
	}
	return best
}
